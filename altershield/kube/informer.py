"""A cache of one resource that follows the cluster: list once, then watch from there.

Bytes come in by `run`, objects enter the cache and the indexes, handlers are told. Readers look at the cache
without waiting. What the API server may do to a watch, and what follows:

- ends it (its timeout), cuts it, falls silent: watched again from the last resourceVersion that was seen;
- has forgotten that version (410): listed again, and what the list lacks is told as deleted;
- is gone, overloaded or refuses: tried again, backing off; the cache goes on showing what was last known.
"""

import asyncio
import contextlib
import logging
import random
from collections.abc import AsyncGenerator, Callable, Iterable
from typing import Generic

import msgspec

from altershield.api.resources import Resource
from altershield.kube.backoff import delay
from altershield.kube.cache import Cache, Handler
from altershield.kube.client import Client, ObjectList
from altershield.kube.errors import GoneError, KubernetesError, UnreadableError
from altershield.kube.objects import Key, T, bare, key_of, number, version_of
from altershield.kube.turns import turns

logger = logging.getLogger(__name__)

_SERVER_TIMEOUT = 300  # seconds, up to twice as many: so that watches do not all end at once
_HEALTHY = 5.0  # seconds a watch must last for the backoff to start anew


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
        self._client = client
        self._resource = resource
        self.name = name or resource.plural
        self._namespace = namespace
        self._label_selector = label_selector
        self._field_selector = field_selector
        self._metadata_only = metadata_only
        self._resync = resync
        self._cache: Cache[T] = Cache(self.name, read or msgspec.json.Decoder(as_).decode, keep)
        self._resume = ""  # where to watch on from; empty: list first
        self._lists = 0  # lists of everything that were begun
        self._following = asyncio.Event()  # set while a list is complete and the watch goes on from there
        self._began: float | None = None
        self._heard_at: float | None = None
        self._reported = ""  # the trouble that the log already tells of
        self._synced = asyncio.Event()
        self.relists = 0
        """Lists after the first one."""

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
    def synced(self) -> bool:
        """Whether the first list is complete."""
        return self._synced.is_set()

    async def wait_synced(self) -> None:
        await self._synced.wait()

    @property
    def age(self) -> float:
        """Seconds since the API server last sent anything to this informer; as long as it never did, since `run`
        began.

        A resting resource is silent for a minute at a time, so alarm from a few minutes on.
        """
        since = self._began if self._heard_at is None else self._heard_at
        return 0.0 if since is None else asyncio.get_running_loop().time() - since

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
        lists = self._lists
        while True:
            await self._following.wait()
            if self._lists > lists or await self._refill(namespace):
                return

    async def _refill(self, namespace: str) -> bool:
        """False when a list of everything began meanwhile: what was read before it may be older than the cache."""
        lists = self._lists
        refill = self._cache.begin_refill(namespace)
        turn = turns()
        try:
            async with contextlib.aclosing(self._pages(namespace)) as pages:
                async for page in pages:
                    for item in page.items:
                        if self._lists != lists:
                            return False
                        self._cache.take_missing(refill, item)
                        await turn.give_way()
        finally:
            self._cache.end_refill(refill)
        return self._lists == lists

    async def evict(self, namespace: str) -> None:
        """Drop what `keep` no longer wants of a namespace."""
        turn = turns()
        for key in self._cache.places():
            if key[0] == namespace:
                self._cache.evict(key)
            await turn.give_way()

    async def run(self) -> None:
        """Follow the cluster until cancelled, whatever the API server does."""
        self._began = asyncio.get_running_loop().time()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow())
            if self._resync:
                group.create_task(self._resync_regularly())

    async def _follow(self) -> None:
        failures = 0
        while True:
            began = asyncio.get_running_loop().time()
            try:
                if not self._resume:
                    await self._list()
                await self._watch()
                error = KubernetesError("the API server ended the watch as soon as it began")
            except KubernetesError as caught:
                error = caught
            if isinstance(error, GoneError | UnreadableError):
                self._resume = ""
                self._following.clear()
            if self._worked_since(began):
                failures = 0
                if self._resume:
                    continue
            failures += 1
            wait = delay(failures, error)
            self._report(error, wait)
            await asyncio.sleep(wait)

    def _worked_since(self, began: float) -> bool:
        lasted = asyncio.get_running_loop().time() - began
        return lasted >= _HEALTHY and self._heard_at is not None and self._heard_at >= began

    def _report(self, error: KubernetesError, wait: float) -> None:
        """One warning per cause, until the API server is heard again."""
        cause = str(error)
        logger.log(
            logging.DEBUG if cause == self._reported else logging.WARNING,
            "cannot follow the cluster, trying again",
            extra={"resource": self.name, "cause": cause, "wait_seconds": round(wait, 2)},
        )
        self._reported = cause

    def _heard(self) -> None:
        self._heard_at = asyncio.get_running_loop().time()
        if self._reported:
            self._reported = ""
            logger.info("following the cluster again", extra={"resource": self.name})

    async def _list(self) -> None:
        unlisted = self._begin_list()
        version = ""
        turn = turns()
        async with contextlib.aclosing(self._pages(self._namespace)) as pages:
            async for page in pages:
                self._heard()
                version = page.metadata.resource_version
                for item in page.items:
                    unlisted.discard(key_of(self._cache.take(item)))
                    await turn.give_way()
        await self._end_list(unlisted, version)

    def _begin_list(self) -> set[Key]:
        if self.synced:
            self.relists += 1
        self._lists += 1
        self._following.clear()
        return self._cache.begin_list()

    async def _end_list(self, unlisted: set[Key], version: str) -> None:
        """Everything was listed at `version`: what was not is gone, and the watch goes on from there."""
        turn = turns()
        for key in (*unlisted, *self._cache.unconfirmed(number(version))):
            self._cache.drop(key, number(version))
            await turn.give_way()
        self._cache.passed = number(version)
        self._resume = version
        self._synced.set()
        self._following.set()

    def _pages(self, namespace: str) -> AsyncGenerator[ObjectList[msgspec.Raw], None]:
        return self._client.pages(
            self._resource,
            namespace,
            label_selector=self._label_selector,
            field_selector=self._field_selector,
            metadata_only=self._metadata_only,
        )

    async def _watch(self) -> None:
        turn = turns()
        async with contextlib.aclosing(
            self._client.watch(
                self._resource,
                self._namespace,
                resource_version=self._resume,
                label_selector=self._label_selector,
                field_selector=self._field_selector,
                metadata_only=self._metadata_only,
                server_timeout=_SERVER_TIMEOUT + random.randrange(_SERVER_TIMEOUT),  # noqa: S311  (spreads load)
                heard=self._heard,
            )
        ) as events:
            async for event in events:
                if event.type in ("ADDED", "MODIFIED"):
                    metadata = self._cache.take(event.object)
                else:
                    metadata = bare(event.object)
                    if event.type == "DELETED":
                        self._cache.drop(key_of(metadata), version_of(metadata))
                if version_of(metadata) > self._cache.passed:
                    self._cache.passed = version_of(metadata)
                    self._resume = metadata.resource_version
                await turn.give_way()

    async def _resync_regularly(self) -> None:
        turn = turns()
        while True:
            await asyncio.sleep(self._resync * random.uniform(0.9, 1.1))  # noqa: S311  (spreads load)
            for key in self._cache.places():
                self._cache.tell_again(key)
                await turn.give_way()
