"""What the API keeps, in memory: every object at its latest version, and the recent changes.

One counter gives all resource versions, as etcd's revision does. A stored object is never changed: a write puts
a new one in its place. All of it runs on one event loop, and no method awaits, so each call is atomic.
"""

import asyncio
import bisect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import orjson

from kube_sandbox.apiserver.attributes import Object
from kube_sandbox.apiserver.errors import StatusError

Storage = tuple[str, str]
"""Where objects of a type are kept: API group and plural of the type. Versions of a type share it."""

Key = tuple[str, str]
"""Namespace (empty for cluster-scoped objects) and name."""


class Item:
    """One stored version of one object. `object` must not be changed; `copy` gives one that may be."""

    __slots__ = ("_body", "_fields", "object", "revision")

    def __init__(self, obj: Object, revision: int) -> None:
        self.object = obj
        self.revision = revision
        self._body: bytes | None = None
        self._fields: dict[str, str] | None = None

    @property
    def body(self) -> bytes:
        """The object's JSON without apiVersion and kind, encoded once for all who read it."""
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
        """The object, for changing."""
        copy: Object = orjson.loads(self.body)
        copy["apiVersion"], copy["kind"] = self.object["apiVersion"], self.object["kind"]
        return copy


class Change:
    """One write. `item` is the object after it (the deleted one, at the deletion's revision), `previous` before."""

    __slots__ = ("deleted", "item", "previous")

    def __init__(self, item: Item, previous: Item | None, *, deleted: bool) -> None:
        self.item = item
        self.previous = previous
        self.deleted = deleted


class Collection:
    """All objects of one type, and the last `window` changes to them."""

    def __init__(self, window: int, revision: int) -> None:
        self.items: dict[Key, Item] = {}
        self.forgotten = revision
        """Changes up to this revision are no longer known."""
        self.over = False
        """No more changes will come: the type is no longer served, or the server stops."""
        self._window = window
        self._changes: list[Change] = []
        self._waiters: set[asyncio.Future[None]] = set()

    def record(self, change: Change) -> None:
        if change.deleted:
            del self.items[change.item.key]
        else:
            self.items[change.item.key] = change.item
        self._changes.append(change)
        if len(self._changes) >= 2 * self._window:  # trimmed in bulk: appending stays cheap
            self.forgotten = self._changes[self._window - 1].item.revision
            del self._changes[: self._window]
        self._wake()

    def end(self) -> None:
        """End all watches."""
        self.over = True
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

    async def changed(self, timeout: float | None) -> None:  # noqa: ASYNC109  (a wait that may end early)
        """Until the next change, or `timeout` seconds."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.add(waiter)
        try:
            await asyncio.wait([waiter], timeout=timeout)
        finally:
            self._waiters.discard(waiter)

    def at(self, revision: int) -> dict[Key, Item]:
        """The objects as they were at `revision`: the later changes undone."""
        items = dict(self.items)
        for change in reversed(self.changes_since(revision)):
            if change.previous is None:
                items.pop(change.item.key, None)
            else:
                items[change.previous.key] = change.previous
        return items


class Store:
    """All collections. `window` is how many changes of each type are kept for watches and old lists."""

    def __init__(self, window: int = 5000) -> None:
        self.revision = 1
        self.observer: Callable[[Storage, Change], None] | None = None
        """Told of every change, right after it."""
        self._window = window
        self._collections: dict[Storage, Collection] = {}

    def collection(self, storage: Storage) -> Collection:
        found = self._collections.get(storage)
        if found is None:
            found = self._collections[storage] = Collection(self._window, 0)
        return found

    def drop(self, storage: Storage) -> None:
        """Forget a type that is no longer served; its watches end."""
        found = self._collections.pop(storage, None)
        if found is not None:
            found.end()

    def close(self) -> None:
        """End all watches."""
        for collection in self._collections.values():
            collection.end()

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
        """Keep a new object. 409 AlreadyExists where one of its name is there."""
        item = self._stamp(obj)
        collection = self.collection(storage)
        if item.key in collection.items:
            raise already_exists(storage, item.key[1])
        self._commit(storage, collection, Change(item, None, deleted=False))
        return item

    def update(self, storage: Storage, current: Item, obj: Object) -> Item:
        """Put `obj` in the place of `current`. 409 Conflict where `current` is no longer the latest."""
        collection = self._expect(storage, current)
        item = self._stamp(obj)
        self._commit(storage, collection, Change(item, current, deleted=False))
        return item

    def delete(self, storage: Storage, current: Item) -> Item:
        """Remove `current`; gives it at the deletion's revision. 409 Conflict as for `update`."""
        collection = self._expect(storage, current)
        item = self._stamp(current.copy())
        self._commit(storage, collection, Change(item, current, deleted=True))
        return item

    def _stamp(self, obj: Object) -> Item:
        revision = self.revision + 1
        obj["metadata"]["resourceVersion"] = str(revision)
        return Item(obj, revision)

    def _commit(self, storage: Storage, collection: Collection, change: Change) -> None:
        self.revision = change.item.revision
        collection.record(change)
        if self.observer is not None:
            self.observer(storage, change)

    def _expect(self, storage: Storage, current: Item) -> Collection:
        collection = self.collection(storage)
        if collection.items.get(current.key) is not current:
            raise conflict(storage, current.key[1])
        return collection


def in_order(items: Iterable[Item]) -> list[Item]:
    """As etcd's keys sort: by namespace and name."""
    return sorted(items, key=lambda item: "/".join(item.key))


def qualified(storage: Storage) -> str:
    """A type as messages name it: `pods`, `deployments.apps`."""
    group, plural = storage
    return f"{plural}.{group}" if group else plural


def details(storage: Storage, name: str, **more: Any) -> dict[str, Any]:
    """A Status' details."""
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
