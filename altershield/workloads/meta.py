"""The metadata of objects in caches.

There are hundreds of thousands of such objects, so `Meta` keeps little of the metadata, in a compact form. `WireMeta`
has the form that the API server sends. `altershield.api.meta.ObjectMeta` is for objects that are read one at a time.
"""

import re
import sys
from typing import Any, Self, TypeVar

import msgspec

from altershield.workloads.applied import Entry
from kube_base.meta import OwnerReference
from kube_base.resources import GroupKind
from kube_base.times import unix

Packed = int | str
"""A text of digits as an int, which takes half the memory; any other text unchanged."""

_UUID = re.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def packed(uid: str) -> Packed:
    """Pack a uid."""
    return int(uid.replace("-", ""), 16) if _UUID.fullmatch(uid) else uid


def unpacked(uid: Packed) -> str:
    """Unpack a uid."""
    if isinstance(uid, str):
        return uid
    digits = f"{uid:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def packed_version(version: str) -> Packed:
    """Pack a resourceVersion; `str` unpacks it."""
    return int(version) if version.isascii() and version.isdigit() and version[0] != "0" else version


V = TypeVar("V", int, str)

_recent: dict[Any, Any] = {}
_MAX_RECENT = 8192


def recent(value: V) -> V:
    """The value as an object that equal values share which were read shortly before. The pods of a workload, and their
    ChangePods, are near each other in lists, and many of their times are equal."""
    if len(_recent) >= _MAX_RECENT:
        _recent.clear()
    found: V = _recent.setdefault(value, value)
    return found


class Identity(msgspec.Struct, frozen=True, gc=False):
    """The identity and the version of a cached object, in a compact form."""

    namespace: str
    name: str
    packed_uid: Packed
    packed_version: Packed

    @property
    def uid(self) -> str:
        return unpacked(self.packed_uid)

    @property
    def resource_version(self) -> str:
        return str(self.packed_version)


class Flat(Identity, frozen=True, gc=False):
    """A projection without a separate `Meta`, to save memory: it is its own metadata."""

    @property
    def metadata(self) -> Self:
        return self


class Meta(Identity, frozen=True, gc=False):
    """The compact metadata of a cached object."""

    created: int = 0
    """Unix seconds, by the API server's clock."""
    deleting: bool = False

    @property
    def key(self) -> tuple[str, str]:
        return self.namespace, self.name


class Owner(msgspec.Struct, frozen=True, gc=False):
    """The controller of an object, in the same namespace."""

    api_version: str
    kind: str
    name: str
    uid: str

    @property
    def group_kind(self) -> GroupKind:
        return GroupKind.of(self.api_version, self.kind)

    @property
    def reuses_names(self) -> bool:
        """Whether a new pod of this controller can get the name of an earlier pod, as in a StatefulSet. Also true
        for NO_OWNER."""
        return (self.api_version, self.kind) not in _WITH_RANDOM_NAMES


_WITH_RANDOM_NAMES = frozenset({("apps/v1", "ReplicaSet"), ("apps/v1", "DaemonSet"), ("batch/v1", "Job")})
"""The controllers that give each pod a new name (`metadata.generateName`)."""

NO_OWNER = Owner("", "", "", "")


class WireMeta(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """Metadata as the API server sends it. Caches keep only its `projection` and its `owner`."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, Any] | None = None
    owner_references: tuple[OwnerReference, ...] = ()

    def label(self, key: str) -> str:
        """The label's value; empty if there is none."""
        return (self.labels or {}).get(key, "")

    @property
    def projection(self) -> Meta:
        """The part that caches keep."""
        return Meta(
            sys.intern(self.namespace),
            self.name,
            packed(self.uid),
            packed_version(self.resource_version),
            recent(int(unix(self.creation_timestamp))),
            self.deletion_timestamp is not None,
        )

    @property
    def owner(self) -> Owner:
        """The controller of this object, or NO_OWNER. Objects with the same controller share it."""
        for owner in self.owner_references:
            if owner.controller:
                return shared(owner)
        return NO_OWNER


class WorkloadMeta(WireMeta, frozen=True, rename="camel", gc=False):
    """The metadata of a workload, with the field managers, of which caches keep a digest."""

    managed_fields: tuple[Entry, ...] = ()


_owners: dict[str, Owner] = {}
_MAX_OWNERS = 8192


def shared(owner: OwnerReference) -> Owner:
    """The owner as an object that all references to it share. In lists, objects of one owner are near each other, so a
    small cache finds most owners."""
    known = _owners.get(owner.uid)
    if known is not None and (known.name, known.kind, known.api_version) == (owner.name, owner.kind, owner.api_version):
        return known
    if len(_owners) >= _MAX_OWNERS:
        _owners.clear()
    made = Owner(sys.intern(owner.api_version), sys.intern(owner.kind), sys.intern(owner.name), sys.intern(owner.uid))
    _owners[made.uid] = made
    return made
