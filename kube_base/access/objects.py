"""Objects by namespace and name, and the fields that caches and the writer need of an object of any type: its key, uid
and resourceVersion.

The dicts are nested: a tuple as key would cost 64 bytes per object, and there are hundreds of thousands of objects.
"""

from collections.abc import Iterable, Iterator
from typing import Generic, Protocol, TypeVar

import msgspec

from kube_base.meta import ObjectMeta, version_number

Key = tuple[str, str]  # namespace and name


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
_V = TypeVar("_V")


class _AnyObject(msgspec.Struct):
    metadata: ObjectMeta = ObjectMeta()


def key_of(metadata: Metadata) -> Key:
    return metadata.namespace, metadata.name


def resource_version_of(metadata: Metadata) -> int:
    return version_number(metadata.resource_version)


def metadata_of(data: bytes | msgspec.Raw) -> ObjectMeta:
    """The metadata of an encoded object; empty if it cannot be decoded."""
    try:
        return msgspec.json.decode(data, type=_AnyObject).metadata
    except (msgspec.DecodeError, RecursionError):
        return ObjectMeta()


class KeySet:
    """A set of keys, with one set of names for each namespace."""

    def __init__(self) -> None:
        self._namespaces: dict[str, set[str]] = {}

    def add(self, key: Key) -> None:
        self._namespaces.setdefault(key[0], set()).add(key[1])

    def update(self, namespace: str, names: Iterable[str]) -> None:
        self._namespaces.setdefault(namespace, set()).update(names)

    def discard(self, key: Key) -> None:
        names = self._namespaces.get(key[0])
        if names is not None:
            names.discard(key[1])

    def __iter__(self) -> Iterator[Key]:
        for namespace, names in self._namespaces.items():
            for name in names:
                yield namespace, name


class Store(Generic[_V]):
    """A mapping from keys to objects."""

    def __init__(self) -> None:
        self._namespaces: dict[str, dict[str, _V]] = {}
        self._count = 0

    def get(self, key: Key) -> _V | None:
        objects = self._namespaces.get(key[0])
        return None if objects is None else objects.get(key[1])

    def __contains__(self, key: Key) -> bool:
        return key[1] in self._namespaces.get(key[0], ())

    def __setitem__(self, key: Key, obj: _V) -> None:
        objects = self._namespaces.setdefault(key[0], {})
        before = len(objects)
        objects[key[1]] = obj
        self._count += len(objects) - before

    def __delitem__(self, key: Key) -> None:
        objects = self._namespaces[key[0]]
        del objects[key[1]]
        self._count -= 1
        if not objects:
            del self._namespaces[key[0]]

    def __iter__(self) -> Iterator[Key]:
        for namespace, objects in self._namespaces.items():
            for name in objects:
                yield namespace, name

    def __len__(self) -> int:
        return self._count

    def names(self, namespace: str) -> list[str]:
        """The names of the objects of a namespace."""
        return list(self._namespaces.get(namespace, ()))

    def has_namespace(self, namespace: str) -> bool:
        """Whether there are objects of this namespace."""
        return bool(self._namespaces.get(namespace))

    def keys(self) -> KeySet:
        """A copy of the present keys."""
        found = KeySet()
        for namespace, objects in self._namespaces.items():
            found.update(namespace, objects)
        return found

    def values(self) -> Iterator[_V]:
        for objects in self._namespaces.values():
            yield from objects.values()
