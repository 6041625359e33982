"""Finding cached objects by what they hold: a label's value, an owner's uid."""

import logging
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Generic, TypeVar

logger = logging.getLogger(__name__)

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)

_FEW = 12  # so many keys make a list; more make a dict, from which one is removed without a search


class Indexes(Generic[K, T]):
    """Any number of named indexes of the keys of objects, each by the values that its function gives.

    Most values belong to one object, many to a few: an index holds the key alone, a list, or a dict, whichever
    is the smallest. A key must be no list and no dict.
    """

    def __init__(self) -> None:
        self._values_of: dict[str, Callable[[T], Iterable[str]]] = {}
        self._found: dict[str, dict[str, K | list[K] | dict[K, None]]] = {}

    def add(self, name: str, values_of: Callable[[T], Iterable[str]]) -> None:
        """`values_of` an object are what it is found by. What it raises is logged; the object is not found then."""
        self._values_of[name] = values_of
        self._found[name] = {}

    def find(self, name: str, value: str) -> list[K]:
        """The keys of the objects that hold `value`, in the order in which they came to."""
        return list(_each(self._found[name].get(value)))

    def replace(self, key: K, old: T | None, new: T | None) -> None:
        """The object of `key` changed from `old` to `new`; None for none."""
        for name, index in self._found.items():
            before, after = self._values(name, old), self._values(name, new)
            for value in before:
                if value not in after:
                    _remove(index, value, key)
            for value in after:
                if value not in before:
                    _insert(index, value, key)

    def _values(self, name: str, obj: T | None) -> frozenset[str] | tuple[str, ...]:
        if obj is None:
            return ()
        try:
            values = tuple(self._values_of[name](obj))
        except Exception:
            logger.exception("an index function failed", extra={"index": name})
            return ()
        return values if len(values) < 2 else frozenset(values)


def _each(found: "K | list[K] | dict[K, None] | None") -> "Iterator[K]":
    if isinstance(found, (list, dict)):
        yield from found
    elif found is not None:
        yield found


def _insert(index: "dict[str, K | list[K] | dict[K, None]]", value: str, key: K) -> None:
    found = index.get(value)
    if found is None:
        index[value] = key
    elif isinstance(found, dict):
        found[key] = None
    elif not isinstance(found, list):
        index[value] = [found, key]
    elif len(found) < _FEW:
        found.append(key)
    else:
        index[value] = dict.fromkeys((*found, key))


def _remove(index: "dict[str, K | list[K] | dict[K, None]]", value: str, key: K) -> None:
    keys = index.get(value)
    if isinstance(keys, dict):
        keys.pop(key, None)
        if len(keys) <= _FEW // 2:
            index[value] = list(keys)
    elif isinstance(keys, list):
        if key in keys:
            keys.remove(key)
        if len(keys) == 1:
            index[value] = keys[0]
    elif keys == key:
        del index[value]
