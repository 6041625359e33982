"""A cache of the objects of one resource: filled by a list, kept current by a watch."""

import asyncio
import contextlib
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Generic, Protocol, TypeVar

import msgspec

from kube_sandbox.client.client import Client, PatchType
from kube_sandbox.client.errors import GoneError, KubernetesError
from kube_sandbox.client.resources import Resource

logger = logging.getLogger(__name__)

_RETRY = 1.0  # seconds


class _Metadata(Protocol):
    @property
    def namespace(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def resource_version(self) -> str: ...


class HasMetadata(Protocol):
    @property
    def metadata(self) -> _Metadata: ...


T = TypeVar("T", bound=HasMetadata)
Key = tuple[str, str]  # namespace and name
Handler = Callable[[T | None, T | None], None]


class _Bookmark(msgspec.Struct):
    class Metadata(msgspec.Struct, rename="camel"):
        resource_version: str

    metadata: Metadata


class Informer(Generic[T]):
    """The objects of `resource` that the selectors match, decoded to `as_`. Handlers and index functions run in the
    event loop and must not block."""

    def __init__(
        self, client: Client, resource: Resource, as_: type[T], *, label_selector: str = "", field_selector: str = ""
    ) -> None:
        self.resource = resource
        self._client = client
        self._as = as_
        self._selectors = label_selector, field_selector
        self._decode: Callable[[bytes | msgspec.Raw], T] = msgspec.json.Decoder(as_).decode
        self._objects: dict[Key, T] = {}
        self._handlers: list[Handler[T]] = []
        self._index_keys: dict[str, Callable[[T], Iterable[str]]] = {}
        self._indexes: dict[str, defaultdict[str, dict[Key, T]]] = {}
        self._synced = asyncio.Event()
        self._version = ""
        """The resource version up to which the cache is current; empty before the first list."""

    def add_handler(self, handler: Handler[T]) -> None:
        """Call `handler(old, new)` on each change. `old` is None for a new object, `new` is None for a deleted one."""
        self._handlers.append(handler)

    def add_index(self, name: str, key: Callable[[T], Iterable[str]]) -> None:
        """Index the objects by the values that `key` returns; `by_index` looks them up. Call it before `run`."""
        self._index_keys[name] = key
        self._indexes[name] = defaultdict(dict)

    def get(self, namespace: str, name: str) -> T | None:
        return self._objects.get((namespace, name))

    def all(self) -> list[T]:
        return list(self._objects.values())

    def by_index(self, name: str, value: str) -> list[T]:
        return list(self._indexes[name].get(value, {}).values())

    async def wait_synced(self) -> None:
        """Wait until the cache contains the first list."""
        await self._synced.wait()

    async def create(self, body: object, namespace: str = "") -> T:
        """Create an object and put it into the cache at once."""
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
        """Patch an object and put the result into the cache at once."""
        return self._cached(
            await self._client.patch(
                self.resource, patch, name, namespace, type_=type_, subresource=subresource, as_=self._as
            )
        )

    def _cached(self, obj: T) -> T:
        """Put `obj` into the cache, unless the cache or the watch has a newer version."""
        present = self._objects.get(_key(obj))
        newest = max(_version(present), _number(self._version) if present is None else 0)
        if _version(obj) > newest:
            self._set(_key(obj), obj)
        return obj

    async def run(self) -> None:
        """List and watch until cancelled."""
        while True:
            try:
                if not self._version:
                    await self._list()
                await self._watch()
            except GoneError:
                self._version = ""
            except KubernetesError as error:
                logger.debug("cannot watch %s, retrying: %s", self.resource.plural, error)
                await asyncio.sleep(_RETRY)

    async def _list(self) -> None:
        labels, fields = self._selectors
        found = await self._client.list(self.resource, as_=msgspec.Raw, label_selector=labels, field_selector=fields)
        listed: set[Key] = set()
        for number, data in enumerate(found.items):
            if (obj := self._read(data)) is None:
                continue
            listed.add(_key(obj))
            if _version(obj) > _version(self._objects.get(_key(obj))):
                self._set(_key(obj), obj)
            if number % 100 == 99:
                await asyncio.sleep(0)
        at = _number(found.metadata.resource_version)
        for key in [key for key, obj in self._objects.items() if key not in listed and _version(obj) <= at]:
            self._set(key, None)
        self._version = found.metadata.resource_version
        self._synced.set()

    async def _watch(self) -> None:
        labels, fields = self._selectors
        events = self._client.watch(
            self.resource, resource_version=self._version, label_selector=labels, field_selector=fields
        )
        async with contextlib.aclosing(events):
            async for event in events:
                if event.type == "BOOKMARK":
                    self._version = msgspec.json.decode(event.object, type=_Bookmark).metadata.resource_version
                    continue
                if (obj := self._read(event.object)) is None:
                    continue
                key = _key(obj)
                if _version(obj) > _version(self._objects.get(key)):
                    self._set(key, None if event.type == "DELETED" else obj)
                self._version = obj.metadata.resource_version

    def _read(self, data: msgspec.Raw) -> T | None:
        """The decoded object; None if it does not fit the type."""
        try:
            return self._decode(data)
        except msgspec.DecodeError as error:
            logger.warning("cannot decode one of the %s: %s", self.resource.plural, error)
            return None

    def _set(self, key: Key, new: T | None) -> None:
        old = self._objects.pop(key, None)
        if new is not None:
            self._objects[key] = new
        for name, index in self._indexes.items():
            for value in self._index_keys[name](old) if old is not None else ():
                index[value].pop(key, None)
                if not index[value]:
                    del index[value]
            for value in self._index_keys[name](new) if new is not None else ():
                index[value][key] = new  # type: ignore[assignment]  # `new` is not None here
        if old is None and new is None:
            return
        for handler in self._handlers:
            try:
                handler(old, new)
            except Exception:
                logger.exception("an informer's handler for %s failed", self.resource.plural)


def _key(obj: HasMetadata) -> Key:
    return obj.metadata.namespace, obj.metadata.name


def _version(obj: HasMetadata | None) -> int:
    return _number(obj.metadata.resource_version) if obj is not None else 0


def _number(version: str) -> int:
    """The resource version as a number. Kubernetes guarantees since 1.35 that versions of one resource compare so."""
    return int(version) if version.isascii() and version.isdigit() else 0
