"""Indexes of cached objects, for example by the value of a label or by an owner's uid."""

import logging
from collections.abc import Callable, Hashable, Iterable
from typing import Generic, TypeVar

logger = logging.getLogger(__name__)

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)

_MAX_LIST = 12  # the most objects in a list; more objects form a dict, because removal from a long list needs a search


class Indexes(Generic[K, T]):
    """Named indexes of objects. The function of an index returns the values under which it lists an object. `key_of`
    identifies an object.

    Most values belong to one object, many values to a few objects. To save memory, an index keeps the object itself, a
    list or a dict. So an object must not be a list or a dict.
    """

    def __init__(self, key_of: Callable[[T], K]) -> None:
        self._key_of = key_of
        self._values_of: dict[str, Callable[[T], Iterable[str]]] = {}
        self._found: dict[str, dict[str, T | list[T] | dict[K, T]]] = {}

    def add(self, name: str, values_of: Callable[[T], Iterable[str]]) -> None:
        """Add an index. `values_of` returns the values of an object. If it raises, the error is logged and the object
        is not listed."""
        self._values_of[name] = values_of
        self._found[name] = {}

    def find(self, name: str, value: str) -> list[T]:
        """The objects with `value`, in the order in which they got it."""
        found = self._found[name].get(value)
        if isinstance(found, list):
            return list(found)
        if isinstance(found, dict):
            return list(found.values())
        return [] if found is None else [found]

    def replace(self, old: T | None, new: T | None) -> None:
        """Replace `old` by `new` in all indexes. Without `old`, add `new`; without `new`, remove `old`."""
        for name, index in self._found.items():
            before, after = self._values(name, old), self._values(name, new)
            if old is not None:
                for value in before:
                    if new is not None and value in after:
                        self._swap(index, value, old, new)
                    else:
                        self._remove(index, value, old)
            if new is not None:
                for value in after:
                    if value not in before:
                        self._insert(index, value, new)

    def _values(self, name: str, obj: T | None) -> frozenset[str] | tuple[str, ...]:
        if obj is None:
            return ()
        try:
            values = tuple(self._values_of[name](obj))
        except Exception:
            logger.exception("an index function failed", extra={"index": name})
            return ()
        return values if len(values) < 2 else frozenset(values)

    def _insert(self, index: "dict[str, T | list[T] | dict[K, T]]", value: str, obj: T) -> None:
        found = index.get(value)
        if found is None:
            index[value] = obj
        elif isinstance(found, dict):
            found[self._key_of(obj)] = obj
        elif not isinstance(found, list):
            index[value] = [found, obj]
        elif len(found) < _MAX_LIST:
            found.append(obj)
        else:
            index[value] = {self._key_of(each): each for each in (*found, obj)}

    def _swap(self, index: "dict[str, T | list[T] | dict[K, T]]", value: str, old: T, new: T) -> None:
        found = index.get(value)
        if isinstance(found, dict):
            found[self._key_of(new)] = new
        elif isinstance(found, list):
            found[:] = [new if each is old else each for each in found]
        else:
            index[value] = new

    def _remove(self, index: "dict[str, T | list[T] | dict[K, T]]", value: str, obj: T) -> None:
        found = index.get(value)
        if isinstance(found, dict):
            found.pop(self._key_of(obj), None)
            if len(found) <= _MAX_LIST // 2:
                index[value] = list(found.values())
        elif isinstance(found, list):
            found[:] = [each for each in found if each is not obj]
            if len(found) == 1:
                index[value] = found[0]
        elif found is obj:
            del index[value]
