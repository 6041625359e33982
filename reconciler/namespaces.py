"""Controller: keeps the objects of governed namespaces in the caches, and removes those of other namespaces."""

from reconciler.cluster.caches import Caches, Key


class NamespaceReconciler:
    """Its keys are an empty namespace and the name of the Namespace."""

    def __init__(self, caches: Caches) -> None:
        self._caches = caches

    async def reconcile(self, key: Key) -> float | None:
        """List the objects of the namespace into the caches if it is governed, else remove them from the caches."""
        namespace = key[1]
        if namespace == self._caches.system_namespace:
            return None  # it is never governed, and its DefensePolicies are always kept
        filling = self._caches.filling(namespace)
        for informer in self._caches.namespaced:
            if not informer.synced:
                continue  # the informer has not listed yet, and its first list filters by namespace
            if self._caches.governed(namespace):
                await informer.refill(namespace)
            else:
                await informer.evict(namespace)
        self._caches.end_filling(namespace, filling)
        return None
