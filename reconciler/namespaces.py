"""Controller: what is in a namespace is kept as long as it is governed."""

from reconciler.machinery.caches import Caches, Key


class NamespaceReconciler:
    def __init__(self, caches: Caches) -> None:
        self._caches = caches

    async def reconcile(self, key: Key) -> float | None:
        namespace = key[1]
        for informer in self._caches.namespaced:
            if not informer.synced:
                continue  # it lists what is kept by then
            if self._caches.governed(namespace):
                await informer.refill(namespace)
            else:
                await informer.evict(namespace)
        return None
