"""The objects that an informer keeps: what comes in is compared with what is there, and handlers are told.

The watch is the one source that brings every change in order. An object can also come from elsewhere: as the
answer of our own write, or from the list of one namespace. Such an object may be ahead of the watch, which then
still brings older news of it; these are ignored until the watch has caught up.
"""

import logging
import sys
from collections.abc import Callable, Iterable
from typing import Generic, NamedTuple

import msgspec

from altershield.kube.errors import UnreadableError
from altershield.kube.indexes import Indexes
from altershield.kube.objects import Key, Metadata, T, bare, key_of, version_of
from altershield.kube.places import Names, Places

logger = logging.getLogger(__name__)

Handler = Callable[[T | None, T | None], None]


class Refill(NamedTuple):
    """The list of one namespace that is under way, and which of its objects ended since it began."""

    namespace: str
    ended: dict[Key, int]

    def concerns(self, key: Key) -> bool:
        return self.namespace in ("", key[0])


class Cache(Generic[T]):
    """The objects that `keep` chooses, by namespace and name. `name` is for the log."""

    def __init__(self, name: str, read: Callable[[bytes | msgspec.Raw], T], keep: Callable[[T], bool]) -> None:
        self.name = name
        self.passed = 0
        """The resourceVersion up to which the watch has told everything."""
        self.skipped = 0
        """Objects received that could not be read and were left out."""
        self.indexes: Indexes[Key, T] = Indexes(lambda obj: key_of(obj.metadata))
        self._read = read
        self._keep = keep
        self._handlers: list[tuple[Handler[T], Callable[[T], None]]] = []
        self._objects: Places[T] = Places()
        self._unreadable: set[Key] = set()
        self._ahead: set[Key] = set()  # newer than what the watch has told
        self._refills: list[Refill] = []

    def add_handler(self, handler: Handler[T], evicted: Callable[[T], None] | None) -> None:
        self._handlers.append((handler, evicted or (lambda old: handler(old, None))))

    def get(self, key: Key) -> T | None:
        return self._objects.get(key)

    def all(self) -> list[T]:
        return list(self._objects.values())

    def places(self) -> list[Key]:
        return list(self._objects)

    def by_index(self, name: str, value: str) -> list[T]:
        return self.indexes.find(name, value)

    def __len__(self) -> int:
        return len(self._objects)

    def read(self, data: bytes | msgspec.Raw) -> T:
        """The object of these bytes. UnreadableError for what is none."""
        try:
            return self._read(data)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise UnreadableError(f"an object of {self.name} cannot be read: {error}") from error

    # what the watch and whole lists bring

    def take(self, data: bytes | msgspec.Raw) -> Metadata:
        """Bring an object as the watch or a list sent it into the cache; its metadata."""
        obj = self._readable(data)
        if obj is None:
            return bare(data)
        key, version = key_of(obj.metadata), version_of(obj.metadata)
        known = self._objects.get(key)
        if not self._keep(obj):
            self._end(key, version, gone=False)
        elif known is None or not self._holds(key, known, version):
            self._put(key, obj)
        return obj.metadata

    def drop(self, key: Key, version: int) -> None:
        """The object was gone from the cluster at `version`; a later one of that name is not affected."""
        self._end(key, version, gone=True)

    def begin_list(self) -> Names:
        """A list of everything begins; gives what is known so far. What it lacks of that is to be dropped."""
        self._ahead.clear()
        known = self._objects.names()
        for key in self._unreadable:
            known.add(key)
        return known

    def unconfirmed(self, version: int) -> list[Key]:
        """Objects that came from elsewhere while a list at `version` was read, and which it would have shown."""
        found = [(key, self._objects.get(key)) for key in self._ahead]
        return [key for key, obj in found if obj is not None and version_of(obj.metadata) <= version]

    # what comes from elsewhere

    def observe(self, obj: T) -> None:
        """Take the answer of our own write in, unless the watch has passed it already."""
        key, version = key_of(obj.metadata), version_of(obj.metadata)
        known = self._objects.get(key)
        if version <= self.passed or (known is not None and version <= version_of(known.metadata)):
            return
        if not self._keep(obj):
            self._end(key, version, gone=False)
            return
        self._put(key, obj)
        self._ahead.add(key)

    def begin_refill(self, namespace: str) -> Refill:
        refill = Refill(namespace, {})
        self._refills.append(refill)
        return refill

    def end_refill(self, refill: Refill) -> None:
        self._refills = [other for other in self._refills if other is not refill]

    def take_missing(self, refill: Refill, data: msgspec.Raw) -> None:
        """Bring an object of a refill's list into the cache, unless the watch has told something newer of it.

        An object that is there came from the watch, which brings later changes too. One that ended after it was
        listed is not brought back.
        """
        obj = self._readable(data)
        if obj is None:
            return
        key, version = key_of(obj.metadata), version_of(obj.metadata)
        if key in self._objects or version <= refill.ended.get(key, -1) or not self._keep(obj):
            return
        self._put(key, obj)
        if version > self.passed:
            self._ahead.add(key)

    def evict(self, key: Key) -> None:
        """Drop an object that `keep` no longer chooses."""
        self._unreadable.discard(key)
        known = self._objects.get(key)
        if known is not None and not self._keep(known):
            self._end(key, version_of(known.metadata), gone=False)

    def tell_again(self, key: Key) -> None:
        """Tell the handlers of an object that has not changed."""
        known = self._objects.get(key)
        if known is not None:
            self._call((handler, (known, known)) for handler, _ in self._handlers)

    def _readable(self, data: bytes | msgspec.Raw) -> T | None:
        """The object of these bytes. What cannot be read is told of once; what was known of it before stays."""
        try:
            return self.read(data)
        except UnreadableError as error:
            key = key_of(bare(data))
            self.skipped += 1
            if key not in self._unreadable:
                self._unreadable.add(key)
                logger.error(  # noqa: TRY400  (whose object it is counts, not where it was read)
                    "skipped an object that cannot be read",
                    extra={"resource": self.name, "namespace": key[0], "object": key[1], "cause": str(error.__cause__)},
                )
            return None

    def _holds(self, key: Key, known: T, version: int) -> bool:
        """Whether `known` is what the server sends as `version`, or ahead of it.

        What is not ahead is older than what the server sends even where its version is greater: versions start
        anew when a cluster's storage is restored.
        """
        held = version_of(known.metadata)
        if held > version and key in self._ahead:
            return True
        self._ahead.discard(key)
        return held == version

    def _put(self, key: Key, obj: T) -> None:
        old = self._objects.get(key)
        _share_names(obj.metadata, old.metadata if old is not None else None)
        if old is None:
            key = key_of(obj.metadata)
        self._objects[key] = obj
        self._unreadable.discard(key)
        self.indexes.replace(old, obj)
        self._call((handler, (old, obj)) for handler, _ in self._handlers)

    def _end(self, key: Key, version: int, *, gone: bool) -> None:
        """The object was gone, or no longer to be kept, at `version`."""
        for refill in self._refills:
            if refill.concerns(key):
                refill.ended[key] = version
        self._unreadable.discard(key)
        known = self._objects.get(key)
        if known is None or (key in self._ahead and version_of(known.metadata) > version):
            return
        del self._objects[key]
        self._ahead.discard(key)
        self.indexes.replace(known, None)
        self._call((handler, (known, None)) if gone else (evicted, (known,)) for handler, evicted in self._handlers)

    def _call(self, calls: Iterable[tuple[Callable[..., None], tuple[T | None, ...]]]) -> None:
        for function, arguments in calls:
            try:
                function(*arguments)
            except Exception:
                logger.exception("a handler failed", extra={"resource": self.name})


def _share_names(new: Metadata, old: Metadata | None) -> None:
    """Let an object's names be the very strings that its key, its indexes and its neighbours hold: every object is
    decoded with strings of its own."""
    if not isinstance(new, msgspec.Struct):
        return
    share = msgspec.structs.force_setattr
    if old is None:
        share(new, "namespace", sys.intern(new.namespace))
        return
    share(new, "namespace", old.namespace)
    share(new, "name", old.name)
    for field in ("uid", "packed_uid"):
        uid = getattr(new, field, None) if field in new.__struct_fields__ else None
        if uid is not None and uid == getattr(old, field, None):
            share(new, field, getattr(old, field))
