"""The store of the API server: the latest version of every object, and the recent changes, in memory.

One counter provides all resource versions, like the revision of etcd. The store never changes a stored object; a write
replaces it. All calls run on one event loop and only `Collection.next_change` awaits, so every other call is atomic.
"""

import asyncio
import bisect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import orjson

from kube_sandbox.apiserver.attributes import Object
from kube_sandbox.apiserver.errors import StatusError

Storage = tuple[str, str]
"""The key of a collection: API group and plural name of the type. All versions of a type share one collection."""

Key = tuple[str, str]
"""Namespace (empty for cluster-scoped objects) and name."""


class Item:
    """One stored version of one object. Callers must not change `object`; they may change the copy from `copy`."""

    __slots__ = ("_body", "object", "revision")

    def __init__(self, obj: Object, revision: int) -> None:
        self.object = obj
        self.revision = revision
        self._body: bytes | None = None

    @property
    def body(self) -> bytes:
        """The object's JSON without apiVersion and kind. It is encoded once, for all readers."""
        if self._body is None:
            self._body = orjson.dumps(
                {key: value for key, value in self.object.items() if key not in ("apiVersion", "kind")}
            )
        return self._body

    @property
    def key(self) -> Key:
        metadata = self.object["metadata"]
        return metadata.get("namespace", ""), metadata["name"]

    @property
    def uid(self) -> str:
        return str(self.object["metadata"]["uid"])

    def copy(self) -> Object:
        """A copy of the object that the caller may change."""
        copy: Object = orjson.loads(self.body)
        copy["apiVersion"], copy["kind"] = self.object["apiVersion"], self.object["kind"]
        return copy


class Change:
    """One write. `previous` is the object before the write, None for a create. `item` is the object after the write;
    for a deletion, the deleted object with the revision of the deletion."""

    __slots__ = ("deleted", "item", "previous")

    def __init__(self, item: Item, previous: Item | None, *, deleted: bool) -> None:
        self.item = item
        self.previous = previous
        self.deleted = deleted


class Collection:
    """All objects of one type, and at least the last `window` changes to them."""

    def __init__(self, window: int) -> None:
        self.items: dict[Key, Item] = {}
        self.compacted_revision = 0
        """The store has discarded the changes up to and including this revision."""
        self.closed = False
        """Whether no more changes will follow: the type is no longer served, or the server stops."""
        self._window = window
        self._changes: list[Change] = []
        self._waiters: set[asyncio.Future[None]] = set()

    def append(self, change: Change) -> None:
        if change.deleted:
            del self.items[change.item.key]
        else:
            self.items[change.item.key] = change.item
        self._changes.append(change)
        if len(self._changes) >= 2 * self._window:  # discard many at once, because each removal moves the whole list
            self.compacted_revision = self._changes[self._window - 1].item.revision
            del self._changes[: self._window]
        self._wake()

    def end(self) -> None:
        """End all watches."""
        self.closed = True
        self._wake()

    def _wake(self) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters.clear()

    def changes_since(self, revision: int) -> Sequence[Change]:
        """The changes after `revision`, oldest first."""
        start = bisect.bisect_right(self._changes, revision, key=lambda change: change.item.revision)
        return self._changes[start:]

    async def next_change(self, timeout: float | None) -> None:  # noqa: ASYNC109  (a wait that may end early)
        """Wait for the next change, at most `timeout` seconds."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.add(waiter)
        try:
            await asyncio.wait([waiter], timeout=timeout)
        finally:
            self._waiters.discard(waiter)

    def at(self, revision: int) -> dict[Key, Item]:
        """The objects at `revision`, computed by reverting the later changes."""
        items = dict(self.items)
        for change in reversed(self.changes_since(revision)):
            if change.previous is None:
                items.pop(change.item.key, None)
            else:
                items[change.previous.key] = change.previous
        return items


class Snapshot(NamedTuple):
    """All objects at one moment."""

    revision: int
    items: dict[Storage, dict[Key, Item]]


class Store:
    """All collections. `window` is the number of changes per type that watches and lists at old versions can read."""

    def __init__(self, window: int = 5000) -> None:
        self.revision = 1
        self.observer: Callable[[Storage, Change], None] | None = None
        """A function that the store calls immediately after every change."""
        self._window = window
        self._collections: dict[Storage, Collection] = {}

    def collection(self, storage: Storage) -> Collection:
        found = self._collections.get(storage)
        if found is None:
            found = self._collections[storage] = Collection(self._window)
        return found

    def drop(self, storage: Storage) -> None:
        """Remove the collection of a type that is no longer served, and end its watches."""
        found = self._collections.pop(storage, None)
        if found is not None:
            found.end()

    def close(self) -> None:
        """End all watches."""
        for collection in self._collections.values():
            collection.end()

    def snapshot(self) -> Snapshot:
        """All objects as they are now, for `restore`."""
        return Snapshot(self.revision, {key: dict(each.items) for key, each in self._collections.items()})

    def restore(self, snapshot: Snapshot) -> None:
        """Replace all objects by those of a snapshot, and end all watches. The revision goes back too, as when etcd is
        restored without `--bump-revision`. The types that the API serves must be those of the snapshot."""
        self.close()
        self.revision = snapshot.revision
        self._collections = {}
        for storage, items in snapshot.items.items():
            self.collection(storage).items.update(items)
            self.collection(storage).compacted_revision = snapshot.revision

    def item(self, storage: Storage, namespace: str, name: str) -> Item | None:
        return self.collection(storage).items.get((namespace, name))

    def get(self, group: str, plural: str, name: str, namespace: str = "") -> Object | None:
        item = self.item((group, plural), namespace, name)
        return item.object if item else None

    def list(self, group: str, plural: str, namespace: str = "") -> Sequence[Object]:
        return [
            item.object
            for key, item in self.collection((group, plural)).items.items()
            if not namespace or key[0] == namespace
        ]

    def create(self, storage: Storage, obj: Object) -> Item:
        """Store a new object. Raises StatusError 409 AlreadyExists when the name is in use."""
        item = self._new_item(obj)
        collection = self.collection(storage)
        if item.key in collection.items:
            raise already_exists(storage, item.key[1])
        self._commit(storage, collection, Change(item, None, deleted=False))
        return item

    def update(self, storage: Storage, current: Item, obj: Object) -> Item:
        """Replace `current` with `obj`. Raises StatusError 409 Conflict when `current` is not the latest version."""
        collection = self._check_latest(storage, current)
        item = self._new_item(obj)
        self._commit(storage, collection, Change(item, current, deleted=False))
        return item

    def delete(self, storage: Storage, current: Item) -> Item:
        """Remove `current` and return it with the revision of the deletion. Raises StatusError 409 Conflict like
        `update`."""
        collection = self._check_latest(storage, current)
        item = self._new_item(current.copy())
        self._commit(storage, collection, Change(item, current, deleted=True))
        return item

    def _new_item(self, obj: Object) -> Item:
        revision = self.revision + 1
        obj["metadata"]["resourceVersion"] = str(revision)
        return Item(obj, revision)

    def _commit(self, storage: Storage, collection: Collection, change: Change) -> None:
        self.revision = change.item.revision
        collection.append(change)
        if self.observer is not None:
            self.observer(storage, change)

    def _check_latest(self, storage: Storage, current: Item) -> Collection:
        collection = self.collection(storage)
        if collection.items.get(current.key) is not current:
            raise conflict(storage, current.key[1])
        return collection


def sorted_by_key(items: Iterable[Item]) -> list[Item]:
    """The items in the order of etcd's keys: by namespace and name."""
    return sorted(items, key=lambda item: "/".join(item.key))


def qualified(storage: Storage) -> str:
    """The name of a type in messages: `pods`, `deployments.apps`."""
    group, plural = storage
    return f"{plural}.{group}" if group else plural


def details(storage: Storage, name: str, **more: Any) -> dict[str, Any]:
    """The `details` of a Status."""
    group, plural = storage
    return {key: value for key, value in {"name": name, "group": group, "kind": plural}.items() if value} | more


def not_found(storage: Storage, name: str) -> StatusError:
    return StatusError(404, f'{qualified(storage)} "{name}" not found', details=details(storage, name))


def already_exists(storage: Storage, name: str) -> StatusError:
    return StatusError(
        409,
        f'{qualified(storage)} "{name}" already exists',
        reason="AlreadyExists",
        details=details(storage, name),
    )


OPTIMISTIC_LOCK = "the object has been modified; please apply your changes to the latest version and try again"


def conflict(storage: Storage, name: str, why: str = OPTIMISTIC_LOCK) -> StatusError:
    return StatusError(
        409,
        f'Operation cannot be fulfilled on {qualified(storage)} "{name}": {why}',
        details=details(storage, name),
    )
