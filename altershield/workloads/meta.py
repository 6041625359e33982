"""What is kept of any object's metadata: little, as there are hundreds of thousands of them."""

import re
import sys
from typing import Any

import msgspec

from altershield.api.meta import OwnerReference, unix

Packed = int | str
"""A text of digits as their number, which takes half the room; any other text as it is."""

_UUID = re.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def packed(uid: str) -> Packed:
    """A uid, for `unpacked`."""
    return int(uid.replace("-", ""), 16) if _UUID.fullmatch(uid) else uid


def unpacked(uid: Packed) -> str:
    if isinstance(uid, str):
        return uid
    digits = f"{uid:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def packed_version(version: str) -> Packed:
    """A resourceVersion, for `str`."""
    return int(version) if version.isascii() and version.isdigit() and version[0] != "0" else version


class Meta(msgspec.Struct, frozen=True, gc=False):
    """Who an object is."""

    namespace: str
    name: str
    packed_uid: Packed
    packed_version: Packed
    created: int = 0
    """Unix seconds, by the API server's clock."""
    deleting: bool = False

    @property
    def uid(self) -> str:
        return unpacked(self.packed_uid)

    @property
    def resource_version(self) -> str:
        return str(self.packed_version)

    @property
    def key(self) -> tuple[str, str]:
        return self.namespace, self.name


class Owner(msgspec.Struct, frozen=True, gc=False):
    """The object that manages another one, in the same namespace."""

    api_version: str
    kind: str
    name: str
    uid: str


NO_OWNER = Owner("", "", "", "")


class WireOwner(msgspec.Struct, frozen=True, rename="camel", gc=False):
    kind: str
    name: str
    uid: str
    api_version: str = ""
    controller: bool = False


class WireMeta(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """Metadata as the API server sends it."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, Any] | None = None
    owner_references: tuple[WireOwner, ...] = ()

    def label(self, key: str) -> str:
        """The label's value; empty where there is none."""
        return (self.labels or {}).get(key, "")

    @property
    def projection(self) -> Meta:
        return Meta(
            sys.intern(self.namespace),
            self.name,
            packed(self.uid),
            packed_version(self.resource_version),
            int(unix(self.creation_timestamp)),
            self.deletion_timestamp is not None,
        )

    @property
    def owner(self) -> Owner:
        """The owner that manages this object; shared by all that have the same."""
        for owner in self.owner_references:
            if owner.controller:
                return shared(owner)
        return NO_OWNER


_owners: dict[str, Owner] = {}
_MAX_OWNERS = 8192


def shared(owner: WireOwner | OwnerReference) -> Owner:
    """Lists bring siblings near each other: a small memory is enough to share most owners."""
    known = _owners.get(owner.uid)
    if known is not None and (known.name, known.kind, known.api_version) == (owner.name, owner.kind, owner.api_version):
        return known
    if len(_owners) >= _MAX_OWNERS:
        _owners.clear()
    made = Owner(sys.intern(owner.api_version), sys.intern(owner.kind), sys.intern(owner.name), sys.intern(owner.uid))
    _owners[made.uid] = made
    return made
