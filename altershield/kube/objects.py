"""The fields that caches and the writer need of an object of any type: its key, uid and resourceVersion."""

from typing import Protocol, TypeVar

import msgspec

from altershield.api.meta import ObjectMeta, version_number
from altershield.kube.store import Key


class Metadata(Protocol):
    """The fields of an object's metadata that caches and the writer read. `ObjectMeta` and the compact types implement
    it."""

    @property
    def namespace(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def uid(self) -> str: ...

    @property
    def resource_version(self) -> str: ...


class Object(Protocol):
    """An object with metadata: a kind of `altershield.api`, or a projection of an object."""

    @property
    def metadata(self) -> Metadata: ...


T = TypeVar("T", bound=Object)


class _AnyObject(msgspec.Struct):
    metadata: ObjectMeta = ObjectMeta()


def key_of(metadata: Metadata) -> Key:
    return metadata.namespace, metadata.name


def version_of(metadata: Metadata) -> int:
    return version_number(metadata.resource_version)


def metadata_of(data: bytes | msgspec.Raw) -> ObjectMeta:
    """The metadata of an encoded object; empty if it cannot be decoded."""
    try:
        return msgspec.json.decode(data, type=_AnyObject).metadata
    except (msgspec.DecodeError, RecursionError):
        return ObjectMeta()
