"""The metadata of objects, as Kubernetes defines it."""

import msgspec


class OwnerReference(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    kind: str
    name: str
    uid: str
    api_version: str = ""
    controller: bool = False
    block_owner_deletion: bool = False


class PartialObjectMeta(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """Metadata without annotations, which can be most of an object. Decoding drops all other fields."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that controls this object, or None."""
        return next((owner for owner in self.owner_references if owner.controller), None)


class ObjectMeta(PartialObjectMeta, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """The metadata of objects that are read one at a time. The product has a smaller form for the hundreds of thousands
    of objects in its caches, and one with bounds for input of unknown callers."""

    annotations: dict[str, str] = {}


def version_number(version: str) -> int:
    """A resourceVersion as a number; 0 if it is not a number. The resourceVersions of one resource can be compared:
    Kubernetes guarantees it since 1.35."""
    return int(version) if len(version) <= 20 and version.isascii() and version.isdigit() else 0
