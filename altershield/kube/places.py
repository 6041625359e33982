"""Objects by namespace and name. They are nested: keys of their own would cost 64 bytes each, hundreds of thousands."""

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")

Key = tuple[str, str]  # namespace and name


class Names:
    """A set of places, nested as well."""

    def __init__(self) -> None:
        self._namespaces: dict[str, set[str]] = {}

    def add(self, key: Key) -> None:
        self._namespaces.setdefault(key[0], set()).add(key[1])

    def update(self, namespace: str, names: Iterable[str]) -> None:
        self._namespaces.setdefault(namespace, set()).update(names)

    def discard(self, key: Key) -> None:
        inside = self._namespaces.get(key[0])
        if inside is not None:
            inside.discard(key[1])

    def __iter__(self) -> Iterator[Key]:
        for namespace, inside in self._namespaces.items():
            for name in inside:
                yield namespace, name


class Places(Generic[T]):
    def __init__(self) -> None:
        self._namespaces: dict[str, dict[str, T]] = {}
        self._count = 0

    def get(self, key: Key) -> T | None:
        inside = self._namespaces.get(key[0])
        return None if inside is None else inside.get(key[1])

    def __contains__(self, key: Key) -> bool:
        return key[1] in self._namespaces.get(key[0], ())

    def __setitem__(self, key: Key, obj: T) -> None:
        inside = self._namespaces.setdefault(key[0], {})
        before = len(inside)
        inside[key[1]] = obj
        self._count += len(inside) - before

    def __delitem__(self, key: Key) -> None:
        inside = self._namespaces[key[0]]
        del inside[key[1]]
        self._count -= 1
        if not inside:
            del self._namespaces[key[0]]

    def __iter__(self) -> Iterator[Key]:
        for namespace, inside in self._namespaces.items():
            for name in inside:
                yield namespace, name

    def __len__(self) -> int:
        return self._count

    def names(self) -> Names:
        """All places, as they are now."""
        found = Names()
        for namespace, inside in self._namespaces.items():
            found.update(namespace, inside)
        return found

    def values(self) -> Iterator[T]:
        for inside in self._namespaces.values():
            yield from inside.values()
