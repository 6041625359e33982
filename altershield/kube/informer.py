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
from typing import Generic, Protocol, TypeVar

import msgspec

from altershield.api.meta import ObjectMeta
from altershield.api.resources import Resource
from altershield.kube.backoff import delay
from altershield.kube.client import Client, ObjectList
from altershield.kube.errors import GoneError, KubernetesError, UnreadableError
from altershield.kube.indexes import Indexes

logger = logging.getLogger(__name__)


class Object(Protocol):
    """Anything with metadata: the kinds and views of `altershield.api`."""

    @property
    def metadata(self) -> ObjectMeta: ...


T = TypeVar("T", bound=Object)
Handler = Callable[[T | None, T | None], None]
Key = tuple[str, str]  # namespace and name

_SERVER_TIMEOUT = 300  # seconds, up to twice as many: so that watches do not all end at once
_HEALTHY = 5.0  # seconds a watch must last for the backoff to start anew
_SLICE = 500  # objects that a resync tells of before others get their turn


class _Bare(msgspec.Struct):
    """What can be read of an object that does not fit its type."""

    metadata: ObjectMeta = ObjectMeta()


class Informer(Generic[T]):
    """The objects of `resource` that `namespace` (all where empty), the selectors and `keep` choose, as `as_`; with
    `metadata_only` the API server is asked for no more of them. `name` tells informers of one resource apart.

    Handlers and index functions are called in the event loop and must not block; what they raise is logged
    and changes nothing.
    """

    def __init__(
        self,
        client: Client,
        resource: Resource,
        as_: type[T],
        *,
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
        self._decoder = msgspec.json.Decoder(as_)
        self._namespace = namespace
        self._label_selector = label_selector
        self._field_selector = field_selector
        self._metadata_only = metadata_only
        self._keep = keep
        self._resync = resync
        self._handlers: list[Handler[T]] = []
        self._indexes: Indexes[Key, T] = Indexes()
        self._objects: dict[Key, T] = {}
        self._unreadable: set[Key] = set()
        self._observed: set[Key] = set()  # written by ourselves since the last list began
        self._passed = 0  # the resourceVersion up to which the watch (or list) has told us everything
        self._resume = ""  # where to watch on from; empty: list first
        self._began: float | None = None
        self._heard_at: float | None = None
        self._reported = ""  # the trouble that the log already tells of
        self._synced = asyncio.Event()
        self.relists = 0
        """Lists after the first one."""
        self.skipped = 0
        """Objects received that could not be read and were left out."""

    def add_handler(self, handler: Handler[T]) -> None:
        """Call `handler(old, new)` on every change: old None for a new object, new None for a deleted one, and
        twice the same object on a resync."""
        self._handlers.append(handler)

    def add_index(self, name: str, key: Callable[[T], Iterable[str]]) -> None:
        """Make objects findable by the values `key` gives, with `by_index`. Before `run`."""
        self._indexes.add(name, key)

    def get(self, namespace: str, name: str) -> T | None:
        return self._objects.get((namespace, name))

    def all(self) -> list[T]:
        return list(self._objects.values())

    def by_index(self, name: str, value: str) -> list[T]:
        return self._indexes.find(name, value)

    def __len__(self) -> int:
        return len(self._objects)

    @property
    def resource(self) -> Resource:
        return self._resource

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
        key = _key(obj.metadata)
        version = _version(obj.metadata)
        known = self._objects.get(key)
        if version <= self._passed or (known is not None and version <= _version(known.metadata)):
            return
        self._observed.add(key)
        self._put(key, obj)

    async def refill(self, namespace: str) -> None:
        """List one namespace, and take in what `keep` did not want before and does now."""
        async with contextlib.aclosing(self._pages(namespace)) as pages:
            async for page in pages:
                for item in page.items:
                    if _key(_bare(item)) not in self._objects:  # else the watch knows better
                        self._take(item)

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
        if self.synced:
            self.relists += 1
        self._observed.clear()
        listed: set[Key] = set()
        version = ""
        async with contextlib.aclosing(self._pages(self._namespace)) as pages:
            async for page in pages:
                self._heard()
                version = page.metadata.resource_version
                listed.update(_key(self._take(item)) for item in page.items)
        for key in self._objects.keys() - listed:
            self._drop(key, _number(version))
        self._unreadable &= listed
        self._resume = version
        self._passed = _number(version)
        self._synced.set()

    def _pages(self, namespace: str) -> AsyncGenerator[ObjectList[msgspec.Raw], None]:
        return self._client.pages(
            self._resource,
            namespace,
            label_selector=self._label_selector,
            field_selector=self._field_selector,
            metadata_only=self._metadata_only,
        )

    async def _watch(self) -> None:
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
                    metadata = self._take(event.object)
                else:
                    metadata = _bare(event.object)
                    if event.type == "DELETED":
                        self._drop(_key(metadata), _version(metadata))
                if _version(metadata) > self._passed:
                    self._passed = _version(metadata)
                    self._resume = metadata.resource_version

    def _take(self, data: msgspec.Raw) -> ObjectMeta:
        """Bring an object as the server sent it into the cache; its metadata."""
        try:
            obj = self._decoder.decode(data)
        except (msgspec.DecodeError, RecursionError) as error:
            metadata = _bare(data)
            self._skip(_key(metadata), error)
            return metadata
        key = _key(obj.metadata)
        known = self._objects.get(key)
        if not self._keep(obj):
            self._drop(key, _version(obj.metadata))
        elif known is None or not self._holds(key, known, _version(obj.metadata)):
            self._put(key, obj)
        return obj.metadata

    def _holds(self, key: Key, known: T, version: int) -> bool:
        """Whether `known` is what the server sends as `version`, or a later write of our own.

        What we did not write is older than what the server sends even where its version is greater: versions
        start anew when a cluster's storage is restored.
        """
        held = _version(known.metadata)
        return held == version or (held > version and key in self._observed)

    def _skip(self, key: Key, error: Exception) -> None:
        """Leave out what cannot be read; what was known of that object before stays."""
        self.skipped += 1
        if key not in self._unreadable:
            self._unreadable.add(key)
            logger.error(
                "skipped an object that cannot be read",
                extra={"resource": self.name, "namespace": key[0], "object": key[1], "cause": str(error)},
            )

    def _put(self, key: Key, obj: T) -> None:
        old = self._objects.get(key)
        self._objects[key] = obj
        self._unreadable.discard(key)
        self._indexes.replace(key, old, obj)
        self._tell(old, obj)

    def _drop(self, key: Key, version: int) -> None:
        """The object was gone at `version`; a later write of our own is not affected."""
        self._unreadable.discard(key)
        known = self._objects.get(key)
        if known is None or (key in self._observed and _version(known.metadata) > version):
            return
        del self._objects[key]
        self._observed.discard(key)
        self._indexes.replace(key, known, None)
        self._tell(known, None)

    def _tell(self, old: T | None, new: T | None) -> None:
        for handler in self._handlers:
            try:
                handler(old, new)
            except Exception:
                logger.exception("a handler failed", extra={"resource": self.name})

    async def _resync_regularly(self) -> None:
        while True:
            await asyncio.sleep(self._resync * random.uniform(0.9, 1.1))  # noqa: S311  (spreads load)
            for count, key in enumerate(list(self._objects), start=1):
                obj = self._objects.get(key)
                if obj is not None:
                    self._tell(obj, obj)
                if count % _SLICE == 0:
                    await asyncio.sleep(0)


def _key(metadata: ObjectMeta) -> Key:
    return metadata.namespace, metadata.name


def _version(metadata: ObjectMeta) -> int:
    return _number(metadata.resource_version)


def _number(version: str) -> int:
    """Resource versions of one resource compare as numbers, as Kubernetes guarantees since 1.35."""
    return int(version) if len(version) <= 20 and version.isascii() and version.isdigit() else 0


def _bare(data: msgspec.Raw) -> ObjectMeta:
    try:
        return msgspec.json.decode(data, type=_Bare).metadata
    except (msgspec.DecodeError, RecursionError):
        return ObjectMeta()
