"""Controller: what was released in a namespace before we saw that it is governed is looked at as well."""

from reconciler.caches import Caches, Key


class NamespacesController:
    def __init__(self, caches: Caches) -> None:
        self._caches = caches

    async def reconcile(self, key: Key) -> float | None:
        namespace = key[1]
        if self._caches.governed(namespace):
            await self._caches.unversioned.refill(namespace)
        return None
