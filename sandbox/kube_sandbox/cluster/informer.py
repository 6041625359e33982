"""Informers whose caches have the controllers' own writes at once."""

from kube_base.access import informer
from kube_base.access.client import Client, PatchType
from kube_base.access.objects import T
from kube_base.resources import Resource


class Informer(informer.Informer[T]):
    """The objects of `resource` that the selectors match, decoded to `as_`. There is no resync."""

    def __init__(
        self, client: Client, resource: Resource, as_: type[T], *, label_selector: str = "", field_selector: str = ""
    ) -> None:
        super().__init__(client, resource, as_, label_selector=label_selector, field_selector=field_selector, resync=0)
        self._client = client
        self._as = as_

    async def create(self, body: object, namespace: str = "") -> T:
        """Create an object and put it into the cache."""
        return self._cached(await self._client.create(self.resource, body, namespace, as_=self._as))

    async def fetch(self, name: str, namespace: str = "") -> T:
        """Get an object from the API server and put it into the cache."""
        return self._cached(await self._client.get(self.resource, name, namespace, as_=self._as))

    async def patch(
        self,
        patch: object,
        name: str,
        namespace: str = "",
        *,
        type_: PatchType = PatchType.MERGE,
        subresource: str = "",
    ) -> T:
        """Patch an object and put the result into the cache."""
        return self._cached(
            await self._client.patch(
                self.resource, patch, name, namespace, type_=type_, subresource=subresource, as_=self._as
            )
        )

    def _cached(self, obj: T) -> T:
        self.observe(obj)
        return obj
