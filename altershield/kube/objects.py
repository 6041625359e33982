"""What a cache needs to know of an object, whatever type it has: where it is and how new it is."""

from typing import Protocol, TypeVar

import msgspec

from altershield.api.meta import ObjectMeta


class Metadata(Protocol):
    """The part of an object's metadata that a cache reads."""

    @property
    def namespace(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def resource_version(self) -> str: ...


class Object(Protocol):
    """Anything with metadata: the kinds and views of `altershield.api`, and what is made of them."""

    @property
    def metadata(self) -> Metadata: ...


T = TypeVar("T", bound=Object)
Key = tuple[str, str]  # namespace and name


class _Bare(msgspec.Struct):
    metadata: ObjectMeta = ObjectMeta()


def key_of(metadata: Metadata) -> Key:
    return metadata.namespace, metadata.name


def version_of(metadata: Metadata) -> int:
    return number(metadata.resource_version)


def number(version: str) -> int:
    """Resource versions of one resource compare as numbers, as Kubernetes guarantees since 1.35."""
    return int(version) if len(version) <= 20 and version.isascii() and version.isdigit() else 0


def bare(data: bytes | msgspec.Raw) -> ObjectMeta:
    """The metadata of an object whatever else it holds; empty where even that cannot be read."""
    try:
        return msgspec.json.decode(data, type=_Bare).metadata
    except (msgspec.DecodeError, RecursionError):
        return ObjectMeta()
