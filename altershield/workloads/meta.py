"""What is kept of any object's metadata: little, as there are hundreds of thousands of them."""

import sys
from typing import Any

import msgspec

from altershield.api.meta import unix


class Meta(msgspec.Struct, frozen=True, gc=False):
    """Who an object is."""

    namespace: str
    name: str
    uid: str
    resource_version: str
    created: int = 0
    """Unix seconds, by the API server's clock."""
    deleting: bool = False

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
    def kept(self) -> Meta:
        return Meta(
            sys.intern(self.namespace),
            self.name,
            self.uid,
            self.resource_version,
            int(unix(self.creation_timestamp)),
            self.deletion_timestamp is not None,
        )

    @property
    def owner(self) -> Owner:
        """The owner that manages this object; shared by all that have the same."""
        for owner in self.owner_references:
            if owner.controller:
                return _shared(owner)
        return NO_OWNER


_owners: dict[str, Owner] = {}
_MAX_OWNERS = 8192


def _shared(owner: WireOwner) -> Owner:
    """Lists bring siblings near each other: a small memory is enough to share most owners."""
    known = _owners.get(owner.uid)
    if known is not None and (known.name, known.kind, known.api_version) == (owner.name, owner.kind, owner.api_version):
        return known
    if len(_owners) >= _MAX_OWNERS:
        _owners.clear()
    made = Owner(sys.intern(owner.api_version), sys.intern(owner.kind), owner.name, owner.uid)
    _owners[owner.uid] = made
    return made
