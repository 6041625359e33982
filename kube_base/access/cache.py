"""The objects that an informer keeps. The cache compares a received object with the cached one and calls handlers.

Only the watch brings every change in order. An object can also come from the response of our own write, or from the
list of one namespace. Such an object can be ahead of the watch: the watch still brings older versions of it. The cache
ignores these until the watch has caught up.
"""

import logging
import sys
from collections.abc import Callable, Iterable
from typing import Any, Generic, NamedTuple

import msgspec

from kube_base.access.errors import SchemaError
from kube_base.access.indexes import Indexes
from kube_base.access.objects import Key, KeySet, Metadata, Store, T, key_of, metadata_of, resource_version_of

logger = logging.getLogger(__name__)

Handler = Callable[[T | None, T | None], None]


class Refill(NamedTuple):
    """A list of one namespace (of all if empty) that is in progress. `ended` holds the resourceVersions at which
    objects were deleted or filtered out since the list began."""

    namespace: str
    ended: dict[Key, int]

    def concerns(self, key: Key) -> bool:
        return self.namespace in ("", key[0])


class Cache(Generic[T]):
    """The objects for which `keep` is true, by namespace and name. `name` is for the log."""

    def __init__(self, name: str, read: Callable[[bytes | msgspec.Raw], T], keep: Callable[[T], bool]) -> None:
        self.name = name
        self.watched_version = 0
        """The resourceVersion up to which the watch has brought every change."""
        self.changed_version = 0
        """The resourceVersion of the last change that the watch brought, or of the last complete list. Other watches of
        the same objects reach it too, which is not certain for the resourceVersion of a bookmark."""
        self.skipped = 0
        """Number of received objects that could not be decoded and were skipped."""
        self.shares_with: Cache[Any] | None = None
        """Another cache of the same objects. New objects share its names and uids, to save memory."""
        self.indexes: Indexes[Key, T] = Indexes(lambda obj: key_of(obj.metadata))
        self._read = read
        self._keep = keep
        self._handlers: list[tuple[Handler[T], Callable[[T], None]]] = []
        self._objects: Store[T] = Store()
        self._unreadable: set[Key] = set()
        self._ahead: set[Key] = set()  # newer than the watch
        self._refills: list[Refill] = []

    def add_handler(self, handler: Handler[T], evicted: Callable[[T], None] | None) -> None:
        self._handlers.append((handler, evicted or (lambda old: handler(old, None))))

    def get(self, key: Key) -> T | None:
        return self._objects.get(key)

    def all(self) -> list[T]:
        return list(self._objects.values())

    def has_namespace(self, namespace: str) -> bool:
        return self._objects.has_namespace(namespace)

    def list_keys(self) -> list[Key]:
        return list(self._objects)

    def names(self, namespace: str) -> list[str]:
        return self._objects.names(namespace)

    def by_index(self, name: str, value: str) -> list[T]:
        return self.indexes.find(name, value)

    def __len__(self) -> int:
        return len(self._objects)

    def read(self, data: bytes | msgspec.Raw) -> T:
        """Decode an object. SchemaError if that fails."""
        try:
            return self._read(data)
        except (ValueError, RecursionError) as error:  # msgspec.DecodeError is a ValueError
            raise SchemaError(f"an object of {self.name} cannot be read: {error}") from error

    # called for the watch and for complete lists

    def apply(self, data: bytes | msgspec.Raw) -> Metadata:
        """Put an object of the watch or of a complete list into the cache. Return its metadata."""
        obj = self._decoded(data)
        if obj is None:
            return metadata_of(data)
        key, version = key_of(obj.metadata), resource_version_of(obj.metadata)
        known = self._objects.get(key)
        if not self._keep(obj):
            self._end(key, version, deleted=False)
        elif known is None or not self._is_current(key, known, version):
            self._put(key, obj)
        return obj.metadata

    def drop(self, key: Key, version: int) -> None:
        """Remove an object that was deleted at `version`. A newer object of the same name stays."""
        self._end(key, version, deleted=True)

    def begin_list(self) -> KeySet:
        """Begin a complete list. Return the cached keys. The caller drops the keys that the list does not contain."""
        self._ahead.clear()
        known = self._objects.keys()
        for key in self._unreadable:
            known.add(key)
        return known

    def unconfirmed(self, version: int) -> list[Key]:
        """Keys of objects that did not come from the watch, and are old enough that a list at `version` must contain
        them."""
        found = [(key, self._objects.get(key)) for key in self._ahead]
        return [key for key, obj in found if obj is not None and resource_version_of(obj.metadata) <= version]

    # called for objects from other sources

    def observe(self, obj: T) -> None:
        """Put the response of our own write into the cache, unless the watch has brought this or a later version."""
        key, version = key_of(obj.metadata), resource_version_of(obj.metadata)
        known = self._objects.get(key)
        if version <= self.watched_version or (known is not None and version <= resource_version_of(known.metadata)):
            return
        if not self._keep(obj):
            self._end(key, version, deleted=False)
            return
        self._put(key, obj)
        self._ahead.add(key)

    def begin_refill(self, namespace: str) -> Refill:
        """Begin the list of a namespace, for `add_missing`. Call `end_refill` after it."""
        refill = Refill(namespace, {})
        self._refills.append(refill)
        return refill

    def end_refill(self, refill: Refill) -> None:
        self._refills = [other for other in self._refills if other is not refill]

    def add_missing(self, refill: Refill, data: msgspec.Raw) -> None:
        """Put an object of a refill's list into the cache, unless the watch has brought a newer version.

        An object that is cached came from the watch, which also brings its later changes. An object that was deleted
        after it was listed is not added again.
        """
        obj = self._decoded(data)
        if obj is None:
            return
        key, version = key_of(obj.metadata), resource_version_of(obj.metadata)
        if key in self._objects or version <= refill.ended.get(key, -1) or not self._keep(obj):
            return
        self._put(key, obj)
        if version > self.watched_version:
            self._ahead.add(key)

    def evict(self, key: Key) -> None:
        """Remove an object for which `keep` is false now."""
        self._unreadable.discard(key)
        known = self._objects.get(key)
        if known is not None and not self._keep(known):
            self._end(key, resource_version_of(known.metadata), deleted=False)

    def resync(self, key: Key) -> None:
        """Call the handlers for an object that has not changed."""
        known = self._objects.get(key)
        if known is not None:
            self._call((handler, (known, known)) for handler, _ in self._handlers)

    def _decoded(self, data: bytes | msgspec.Raw) -> T | None:
        """Decode an object, or return None. The first failure for an object is logged. Its cached version stays."""
        try:
            return self.read(data)
        except SchemaError as error:
            key = key_of(metadata_of(data))
            self.skipped += 1
            if key not in self._unreadable:
                self._unreadable.add(key)
                logger.error(  # noqa: TRY400  (the traceback does not help)
                    "skipped an object that cannot be read",
                    extra={"resource": self.name, "namespace": key[0], "object": key[1], "cause": str(error.__cause__)},
                )
            return None

    def _is_current(self, key: Key, known: T, version: int) -> bool:
        """Whether `known` has the received `version`, or is ahead of it.

        If `known` is not ahead of the watch, it is older than the received object even if its version is greater:
        resourceVersions restart when a cluster's storage is restored.
        """
        known_version = resource_version_of(known.metadata)
        if known_version > version and key in self._ahead:
            return True
        self._ahead.discard(key)
        return known_version == version

    def _put(self, key: Key, obj: T) -> None:
        old = self._objects.get(key)
        like = old if old is not None or self.shares_with is None else self.shares_with.get(key)
        _share_names(obj.metadata, like.metadata if like is not None else None)
        if old is None:
            key = key_of(obj.metadata)
        self._objects[key] = obj
        self._unreadable.discard(key)
        self.indexes.replace(old, obj)
        self._call((handler, (old, obj)) for handler, _ in self._handlers)

    def _end(self, key: Key, version: int, *, deleted: bool) -> None:
        """Remove an object at `version`: it was `deleted`, or `keep` became false for it."""
        for refill in self._refills:
            if refill.concerns(key):
                refill.ended[key] = version
        self._unreadable.discard(key)
        known = self._objects.get(key)
        if known is None or (key in self._ahead and resource_version_of(known.metadata) > version):
            return
        del self._objects[key]
        self._ahead.discard(key)
        self.indexes.replace(known, None)
        self._call((handler, (known, None)) if deleted else (evicted, (known,)) for handler, evicted in self._handlers)

    def _call(self, calls: Iterable[tuple[Callable[..., None], tuple[T | None, ...]]]) -> None:
        for function, arguments in calls:
            try:
                function(*arguments)
            except Exception:
                logger.exception("a handler failed", extra={"resource": self.name})


def _share_names(new: Metadata, old: Metadata | None) -> None:
    """Replace an object's strings by equal strings of `old`, or by interned strings. This saves memory, because
    decoding creates new strings for each object."""
    if not isinstance(new, msgspec.Struct):
        return
    share = msgspec.structs.force_setattr
    if old is None:
        share(new, "namespace", sys.intern(new.namespace))
        return
    share(new, "namespace", old.namespace)
    share(new, "name", old.name)
    for field in ("uid", "packed_uid", "packed_version"):
        value = getattr(new, field, None) if field in new.__struct_fields__ else None
        if value is not None and value == getattr(old, field, None):
            share(new, field, getattr(old, field))
