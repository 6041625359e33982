"""The graph of owners and dependents, and the decisions about dependents of deleted owners. Without I/O.

The rules are those of pkg/controller/garbagecollector.
"""

import enum
from collections.abc import Iterator
from typing import NamedTuple

from kube_base.meta import OwnerReference
from kube_base.resources import Resource
from kube_sandbox.cluster.kinds import Meta

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"


class Item(NamedTuple):
    """One object of the cluster."""

    resource: Resource
    metadata: Meta

    @property
    def is_terminating(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @property
    def awaits_dependents(self) -> bool:
        """Whether the object is deleted in the foreground: its dependents are deleted first."""
        return self.is_terminating and FOREGROUND in self.metadata.finalizers

    @property
    def orphans_dependents(self) -> bool:
        return self.is_terminating and ORPHAN in self.metadata.finalizers

    @property
    def propagation(self) -> str:
        """The propagation policy that belongs to the finalizers."""
        if ORPHAN in self.metadata.finalizers:
            return "Orphan"
        return "Foreground" if FOREGROUND in self.metadata.finalizers else "Background"


class OwnerState(enum.Enum):
    """The state of an owner with regard to one of its dependents."""

    PRESENT = enum.auto()
    """The owner exists and is not waiting for the dependent."""
    WAITING = enum.auto()
    """The owner is deleted in the foreground, after this dependent."""
    ABSENT = enum.auto()


class Graph:
    """All objects by uid, and their dependents, as the informers report them."""

    def __init__(self) -> None:
        self._items: dict[str, Item] = {}
        self._dependents: dict[str, dict[str, None]] = {}  # uids in order of arrival

    def put(self, item: Item) -> None:
        self.drop(item.metadata.uid)
        self._items[item.metadata.uid] = item
        for owner in item.metadata.owner_references:
            self._dependents.setdefault(owner.uid, {})[item.metadata.uid] = None

    def drop(self, uid: str) -> None:
        item = self._items.pop(uid, None)
        if item is None:
            return
        for owner in item.metadata.owner_references:
            siblings = self._dependents.get(owner.uid, {})
            siblings.pop(uid, None)
            if not siblings:
                self._dependents.pop(owner.uid, None)

    def drop_all(self, resource: Resource) -> None:
        for uid in [uid for uid, item in self._items.items() if item.resource == resource]:
            self.drop(uid)

    def get(self, uid: str) -> Item | None:
        return self._items.get(uid)

    def dependents(self, uid: str) -> Iterator[Item]:
        for dependent in list(self._dependents.get(uid, ())):
            if dependent in self._items:
                yield self._items[dependent]

    def blocking(self, uid: str) -> list[Item]:
        """The dependents with blockOwnerDeletion, for which a foreground deletion waits."""
        return [
            item
            for item in self.dependents(uid)
            if any(owner.uid == uid and owner.block_owner_deletion for owner in item.metadata.owner_references)
        ]

    def owner_state(self, item: Item, owner: OwnerReference) -> OwnerState | None:
        """The state of `owner` with regard to `item`; None if the graph does not have the owner."""
        found = self._items.get(owner.uid)
        if found is None:
            return None
        namespace = found.metadata.namespace
        if (found.metadata.name, found.resource.kind) != (owner.name, owner.kind):
            return OwnerState.ABSENT
        if found.resource.namespaced and namespace != item.metadata.namespace:
            return OwnerState.ABSENT  # a namespaced owner must be in the namespace of the dependent
        return OwnerState.WAITING if found.awaits_dependents else OwnerState.PRESENT
