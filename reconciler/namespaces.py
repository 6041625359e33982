"""Controller: keeps the objects of governed namespaces in the caches, and removes those of other namespaces."""

from altershield.api.namespace import Namespace
from kube_base.access.queue import WorkQueue
from reconciler.cluster.caches import Caches, Key
from reconciler.subject import Controller, Parts, Subject


class NamespaceReconciler:
    """Its keys are an empty namespace and the name of the Namespace."""

    def __init__(self, caches: Caches) -> None:
        self._caches = caches

    async def reconcile(self, key: Key) -> float | None:
        """List the objects of the namespace into the caches if it is governed, else remove them from the caches."""
        namespace = key[1]
        filling = self._caches.filling(namespace)
        if (
            namespace == self._caches.system_namespace
        ):  # it is never governed, and its policies and gates are always kept
            self._caches.end_filling(namespace, filling)
            return None
        for informer in self._caches.namespaced:
            if not informer.synced:
                continue  # the informer has not listed yet, and its first list filters by namespace
            if self._caches.governed(namespace):
                await informer.refill(namespace)
            else:
                await informer.evict(namespace)
        self._caches.end_filling(namespace, filling)
        return None


class NamespaceRoutes:
    """Handlers for the events of the caches. `old` is None for a new object, `new` is None for a deleted one."""

    def __init__(self, caches: Caches, queue: WorkQueue[Key]) -> None:
        self._caches = caches
        self._queue = queue
        caches.namespaces.add_handler(self._namespace)

    def _namespace(self, old: Namespace | None, new: Namespace | None) -> None:
        if not self._caches.namespaces.synced:
            return  # other informers list their objects only after this one is filled
        for metadata in {each.metadata.name: each.metadata for each in (old, new) if each is not None}.values():
            if old is None or new is None or old.governed != new.governed or _is_deleting(old) != _is_deleting(new):
                self._caches.begin_filling(metadata.name)
                self._queue.add(("", metadata.name))


def _is_deleting(namespace: Namespace) -> bool:
    """Whether the namespace is being deleted."""
    return namespace.metadata.deletion_timestamp is not None


def start(parts: Parts[Key]) -> Controller[Key]:
    NamespaceRoutes(parts.caches, parts.queue)
    return Controller(reconcile=NamespaceReconciler(parts.caches).reconcile)


NAMESPACES = Subject("namespaces", start, workers=4, in_every_replica=True)  # each worker reads pages of objects
