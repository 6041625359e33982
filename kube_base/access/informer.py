"""Informers: a cache of one resource that is kept up to date by a list and a watch.

Readers read the cache without waiting. `reflector` lists and watches. `cache` decides which received objects are newer
than the cached ones.
"""

import asyncio
import contextlib
import random
from collections.abc import Callable, Iterable
from typing import Any, Generic

import msgspec

from kube_base.access.cache import Cache, Handler
from kube_base.access.client import Client
from kube_base.access.errors import UnreachableError
from kube_base.access.objects import T
from kube_base.access.queue import as_backlog
from kube_base.access.reflector import Reflector, Selection
from kube_base.access.time_slices import time_slices
from kube_base.resources import Resource

_LISTED_SECONDS = 60.0
"""The list of a kind can fail for hours: a conversion webhook is down, or the definition of the kind was deleted."""


class Informer(Generic[T]):
    """A cache of the objects of `resource` in `namespace` (empty: in all) that match the selectors and for which `keep`
    is true. With `metadata_only`, the API server sends only their metadata. `name` distinguishes informers of the same
    resource.

    Objects are decoded as `as_`. `read` replaces this decoder, so that the cache keeps smaller objects. It raises
    msgspec.DecodeError or ValueError for other objects. When the result of `keep` changes for a namespace, call
    `refill` or `evict`. `resync`: seconds between two calls of the handlers for all objects; 0: there are no
    such calls.

    Handlers, index functions, `keep` and `read` run in the event loop and must not block. Errors of handlers and index
    functions are logged and have no other effect. Keys that handlers add to a WorkQueue go to its backlog if the object
    has not changed: in the first list, in a resync and in `refill`.
    """

    def __init__(
        self,
        client: Client,
        resource: Resource,
        as_: type[T],
        *,
        read: Callable[[bytes | msgspec.Raw], T] | None = None,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        metadata_only: bool = False,
        keep: Callable[[T], bool] = lambda _: True,
        name: str = "",
        resync: float = 600.0,
    ) -> None:
        self.name = name or resource.plural
        self._resource = resource
        self._resync = resync
        self._cache: Cache[T] = Cache(self.name, read or msgspec.json.Decoder(as_).decode, keep)
        selection = Selection(resource, namespace, label_selector, field_selector, metadata_only)
        self._reflector = Reflector(client, selection, self._cache)

    def add_handler(self, handler: Handler[T], *, evicted: Callable[[T], None] | None = None) -> None:
        """Call `handler(old, new)` on every change. `old` is None for a new object, `new` is None for a deleted one. On
        a resync, both are the same object.

        When `keep` becomes false for an object, `evicted(old)` is called instead: the object may still exist in the
        cluster. Without `evicted`, `handler(old, None)` is called.
        """
        self._cache.add_handler(handler, evicted)

    def share_names(self, other: "Informer[Any]") -> None:
        """Use the names and uids that another informer of the same resource has, to save memory."""
        self._cache.shares_with = other._cache

    def add_index(self, name: str, key: Callable[[T], Iterable[str]]) -> None:
        """Add an index for `by_index`. `key` returns the values of an object. Call it before `run`."""
        self._cache.indexes.add(name, key)

    def read(self, data: bytes | msgspec.Raw) -> T:
        """Decode an object as this cache keeps it, for `observe`. SchemaError if that fails."""
        return self._cache.read(data)

    def get(self, namespace: str, name: str) -> T | None:
        return self._cache.get((namespace, name))

    def all(self) -> list[T]:
        return self._cache.all()

    def has_namespace(self, namespace: str) -> bool:
        """Whether the cache has objects of this namespace."""
        return self._cache.has_namespace(namespace)

    def by_index(self, name: str, value: str) -> list[T]:
        return self._cache.by_index(name, value)

    def __len__(self) -> int:
        return len(self._cache)

    @property
    def resource(self) -> Resource:
        return self._resource

    @property
    def skipped(self) -> int:
        """The number of received objects that could not be decoded and were skipped."""
        return self._cache.skipped

    @property
    def changed_version(self) -> int:
        """The resourceVersion of the last change that the watch brought, or of the last complete list."""
        return self._cache.changed_version

    @property
    def relists(self) -> int:
        """The number of complete lists after the first one."""
        return self._reflector.relists

    @property
    def synced(self) -> bool:
        """Whether the first list is complete."""
        return self._reflector.synced.is_set()

    async def wait_synced(self) -> None:
        await self._reflector.synced.wait()

    @property
    def age(self) -> float:
        """Seconds since this informer last received data, or since `run` began if it has received none.

        If no object changes, the API server sends nothing for up to a minute. So an alert needs a threshold of minutes.
        """
        return self._reflector.age

    def observe(self, obj: T) -> None:
        """Put the response of our own write into the cache at once, and call the handlers.

        The response is ignored if the watch has passed its resourceVersion: the cache then has this or a later version.
        """
        self._cache.observe(obj)

    async def refill(self, namespace: str) -> None:
        """Add the objects of a namespace for which `keep` has become true. All of them are cached when this returns.

        It lists the namespace once, unless a complete list begins after the call. KubernetesError if the list fails, or
        if no complete list ends within a minute: objects that were added stay.
        """
        lists = self._reflector.lists
        while True:
            try:
                async with asyncio.timeout(_LISTED_SECONDS):
                    await self._reflector.watching.wait()
            except TimeoutError as error:
                raise UnreachableError(f"{self.name} could not be listed within {_LISTED_SECONDS:g} s") from error
            if self._reflector.lists > lists or await self._refill(namespace):
                return

    async def _refill(self, namespace: str) -> bool:
        """List the namespace. Return False if a complete list began meanwhile: this list may then be older than the
        cache."""
        lists = self._reflector.lists
        refill = self._cache.begin_refill(namespace)
        slices = time_slices()
        try:
            async with contextlib.aclosing(self._reflector.pages(namespace)) as pages:
                async for page in pages:
                    for item in page.items:
                        if self._reflector.lists != lists:
                            return False
                        with as_backlog():
                            self._cache.add_missing(refill, item)
                        await slices.yield_if_over()
        finally:
            self._cache.end_refill(refill)
        return self._reflector.lists == lists

    async def evict(self, namespace: str) -> None:
        """Remove the objects of a namespace for which `keep` has become false."""
        slices = time_slices()
        for name in self._cache.names(namespace):
            self._cache.evict((namespace, name))
            await slices.yield_if_over()

    async def run(self) -> None:
        """List and watch until cancelled. Errors of the API server are retried."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._reflector.run())
            if self._resync:
                group.create_task(self._resync_regularly())

    async def _resync_regularly(self) -> None:
        slices = time_slices()
        while True:
            await asyncio.sleep(self._resync * random.uniform(0.9, 1.1))  # noqa: S311  (spreads load)
            for key in self._cache.list_keys():
                with as_backlog():
                    self._cache.resync(key)
                await slices.yield_if_over()
