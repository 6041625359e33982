"""Finding cached objects by what they hold: a label's value, an owner's uid."""

import logging
from collections.abc import Callable, Hashable, Iterable
from typing import Generic, TypeVar

logger = logging.getLogger(__name__)

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


class Indexes(Generic[K, T]):
    """Any number of named indexes over the same objects, which are known by their keys."""

    def __init__(self) -> None:
        self._values_of: dict[str, Callable[[T], Iterable[str]]] = {}
        self._found: dict[str, dict[str, dict[K, T]]] = {}

    def add(self, name: str, values_of: Callable[[T], Iterable[str]]) -> None:
        """`values_of` an object are what it is found by. What it raises is logged; the object is not found then."""
        self._values_of[name] = values_of
        self._found[name] = {}

    def find(self, name: str, value: str) -> list[T]:
        return list(self._found[name].get(value, {}).values())

    def replace(self, key: K, old: T | None, new: T | None) -> None:
        """The object of `key` changed from `old` to `new`; None for none."""
        for name, index in self._found.items():
            for value in self._values(name, old):
                found = index.get(value, {})
                found.pop(key, None)
                if not found:
                    index.pop(value, None)
            if new is not None:
                for value in self._values(name, new):
                    index.setdefault(value, {})[key] = new

    def _values(self, name: str, obj: T | None) -> set[str]:
        if obj is None:
            return set()
        try:
            return set(self._values_of[name](obj))
        except Exception:
            logger.exception("an index function failed", extra={"index": name})
            return set()
