"""A cache of one resource that follows the cluster: list once, then watch from there.

Readers look at the cache without waiting. How the cluster is followed is `follower`'s subject, which news count is
`cache`'s.
"""

import asyncio
import contextlib
import random
from collections.abc import Callable, Iterable
from typing import Generic

import msgspec

from altershield.api.resources import Resource
from altershield.kube.cache import Cache, Handler
from altershield.kube.client import Client
from altershield.kube.follower import Follower, Selection
from altershield.kube.objects import T
from altershield.kube.turns import turns


class Informer(Generic[T]):
    """The objects of `resource` that `namespace` (all where empty), the selectors and `keep` choose, as `as_`; with
    `metadata_only` the API server is asked for no more of them. `name` tells informers of one resource apart.

    `read` makes an object of its bytes, where something smaller than an `as_` is to be kept; msgspec.DecodeError or
    ValueError for bytes that are none. `keep` may change its mind: call `refill` or `evict` then.

    Handlers, index functions, `keep` and `read` are called in the event loop and must not block; what handlers and
    index functions raise is logged and changes nothing.
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
        self._follower = Follower(client, selection, self._cache)

    def add_handler(self, handler: Handler[T], *, evicted: Callable[[T], None] | None = None) -> None:
        """Call `handler(old, new)` on every change: old None for a new object, new None for a deleted one, and
        twice the same object on a resync.

        `evicted(old)` is called instead for an object that `keep` no longer chooses, which may still be in the
        cluster; without it, such an object is told as deleted.
        """
        self._cache.add_handler(handler, evicted)

    def add_index(self, name: str, key: Callable[[T], Iterable[str]]) -> None:
        """Make objects findable by the values `key` gives, with `by_index`. Before `run`."""
        self._cache.indexes.add(name, key)

    def read(self, data: bytes | msgspec.Raw) -> T:
        """The object of these bytes as this cache holds it, for `observe`. UnreadableError for what is none."""
        return self._cache.read(data)

    def get(self, namespace: str, name: str) -> T | None:
        return self._cache.get((namespace, name))

    def all(self) -> list[T]:
        return self._cache.all()

    def by_index(self, name: str, value: str) -> list[T]:
        return self._cache.by_index(name, value)

    def __len__(self) -> int:
        return len(self._cache)

    @property
    def resource(self) -> Resource:
        return self._resource

    @property
    def skipped(self) -> int:
        """Objects received that could not be read and were left out."""
        return self._cache.skipped

    @property
    def relists(self) -> int:
        """Lists after the first one."""
        return self._follower.relists

    @property
    def synced(self) -> bool:
        """Whether the first list is complete."""
        return self._follower.synced.is_set()

    async def wait_synced(self) -> None:
        await self._follower.synced.wait()

    @property
    def age(self) -> float:
        """Seconds since the API server last sent anything to this informer; as long as it never did, since `run`
        began.

        A resting resource is silent for a minute at a time, so alarm from a few minutes on.
        """
        return self._follower.age

    def observe(self, obj: T) -> None:
        """Take the answer of our own write into the cache at once, and tell the handlers.

        Ignored where the watch has already passed its resourceVersion: then the cache holds it or later news.
        """
        self._cache.observe(obj)

    async def refill(self, namespace: str) -> None:
        """Take in what `keep` did not want of a namespace before and does now; the whole of it is there when this
        returns.

        One list of the namespace, unless a list of everything that began later does it. KubernetesError where that
        list fails; what came in so far stays.
        """
        lists = self._follower.lists
        while True:
            await self._follower.following.wait()
            if self._follower.lists > lists or await self._refill(namespace):
                return

    async def _refill(self, namespace: str) -> bool:
        """False when a list of everything began meanwhile: what was read before it may be older than the cache."""
        lists = self._follower.lists
        refill = self._cache.begin_refill(namespace)
        turn = turns()
        try:
            async with contextlib.aclosing(self._follower.pages(namespace)) as pages:
                async for page in pages:
                    for item in page.items:
                        if self._follower.lists != lists:
                            return False
                        self._cache.take_missing(refill, item)
                        await turn.give_way()
        finally:
            self._cache.end_refill(refill)
        return self._follower.lists == lists

    async def evict(self, namespace: str) -> None:
        """Drop what `keep` no longer wants of a namespace."""
        turn = turns()
        for key in self._cache.places():
            if key[0] == namespace:
                self._cache.evict(key)
            await turn.give_way()

    async def run(self) -> None:
        """Follow the cluster until cancelled, whatever the API server does."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follower.run())
            if self._resync:
                group.create_task(self._resync_regularly())

    async def _resync_regularly(self) -> None:
        turn = turns()
        while True:
            await asyncio.sleep(self._resync * random.uniform(0.9, 1.1))  # noqa: S311  (spreads load)
            for key in self._cache.places():
                self._cache.tell_again(key)
                await turn.give_way()
