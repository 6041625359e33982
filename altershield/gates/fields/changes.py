"""How a release changes the fields of a pod template.

Only fields that differ are looked at. Elements of lists are compared by the name by which Kubernetes merges them, so an
element that moves is not changed, and one that is renamed is removed and added. Elements without a name are compared by
their value. The work is bounded: hostile templates and rules cost as much as the bound, and then an error.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from altershield.gates.fields.list_keys import MERGE_KEYS, element_name, step
from altershield.gates.fields.paths import Elements, Member, Path
from altershield.gates.fields.values import ABSENT, MAX_DEPTH, default, normal, same

MAX_WORK = 50_000
"""The maximum number of parts that are looked at for one release, for all guards together."""


class TooMuchWorkError(Exception):
    """The templates differ in more fields than can be looked at."""


class Field(NamedTuple):
    """A field that exists before or after the release."""

    path: str
    """For people, as `spec.containers[app].image`."""
    names: tuple[str, ...]
    """The names of the fields down to it, without elements of lists."""
    old: Any
    """ABSENT: it does not exist."""
    new: Any


class Fields:
    """The fields by which two pod templates differ. `old`: None, if the workload is created."""

    def __init__(self, old: Mapping[str, Any] | None, new: Mapping[str, Any], max_work: int = MAX_WORK) -> None:
        self._left = max_work
        self._found: dict[Path, tuple[Field, ...]] = {(): (Field("", (), ABSENT if old is None else old, new),)}
        self._changed: dict[Path, tuple[Field, ...]] = {}

    def changed(self, path: Path) -> tuple[Field, ...]:
        """The fields of this path that do not mean the same before and after. TooMuchWorkError."""
        found = self._changed.get(path)
        if found is None:
            found = self._changed[path] = tuple(self._effective(self._at(path)))
        return found

    def _effective(self, found: Sequence[Field]) -> Iterator[Field]:
        for each in found:
            self._take(_size(each.old) + _size(each.new))
            old, new = (ABSENT if normal(one, each.names) is ABSENT else one for one in (each.old, each.new))
            if not same(old, new, each.names):
                yield each._replace(old=old, new=new)

    def _at(self, path: Path) -> tuple[Field, ...]:
        """The fields of this path that differ."""
        found = self._found.get(path)
        if found is None:
            above = self._at(path[:-1])
            part = path[-1]
            found = tuple(
                below
                for each in above
                for below in (self._member(each, part) if isinstance(part, Member) else self._elements(each, part))
                if below.old != below.new
            )
            self._found[path] = found
        return found

    def _member(self, field: Field, part: Member) -> Iterator[Field]:
        self._take(1)
        if part.in_brackets and (isinstance(field.old, list) or isinstance(field.new, list)):
            yield from (each for each in self._elements(field, Elements()) if each.path == f"{field.path}[{part.name}]")
            return
        names = (*field.names, part.name)
        path = f"{field.path}{step(part.name)}" if field.path else part.name
        yield Field(path, names, *(_member(each, part.name, names) for each in (field.old, field.new)))

    def _elements(self, field: Field, part: Elements) -> Iterator[Field]:
        old, new = (self._named(each, field.names, part) for each in (field.old, field.new))
        for name in {**old, **new}:
            is_list = isinstance(old.get(name, new.get(name)), _Element)
            names = field.names if is_list else (*field.names, name)
            path = f"{field.path}[{_short(name)}]" if is_list else f"{field.path}{step(_short(name))}"
            one, other = (_value(each.get(name)) for each in (old, new))
            yield Field(path, names, one, other)

    def _named(self, value: Any, names: tuple[str, ...], part: Elements) -> dict[str, Any]:
        """The elements of a list or map by their names."""
        if isinstance(value, dict):
            self._take(len(value))
            return value if not part.field else {}
        if not isinstance(value, list):
            return {}
        self._take(len(value))
        found: dict[str, Any] = {}
        field = names[-1]
        for element in value:
            if part.field and not (isinstance(element, dict) and _text(element.get(part.field)) == part.value):
                continue
            if field in MERGE_KEYS and isinstance(element, dict):
                name = element_name(field, element)
            else:  # the value may be a secret
                self._take(_size(element))
                name = f"#{_digest(orjson.dumps(element, option=orjson.OPT_SORT_KEYS))}"
            unique, number = name, 1
            while unique in found:  # the API server admits no two of these, but it does not check all kinds
                number += 1
                self._take(1)
                unique = f"{name}#{number}"
            found[unique] = _Element(element)
        return found

    def _take(self, work: int) -> None:
        self._left -= work
        if self._left < 0:
            raise TooMuchWorkError


_MAX_NAME = 253  # characters


class _Element(NamedTuple):
    """An element of a list."""

    value: Any


def _value(found: Any) -> Any:
    return found.value if isinstance(found, _Element) else ABSENT if found is None else found


def _member(value: Any, name: str, names: tuple[str, ...]) -> Any:
    if not isinstance(value, dict):
        return ABSENT
    found = value.get(name)
    return default(names) if found is None else found


def _text(value: Any) -> str:
    return value if isinstance(value, str) else str(value) if isinstance(value, int) else ""


def _short(name: str) -> str:
    return name if len(name) <= _MAX_NAME else f"#{_digest(name.encode(errors='replace'))}"


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:8]


def _size(value: Any) -> int:
    """How many values there are in a value, as far as they are compared."""
    count, left = 0, [(value, MAX_DEPTH)]
    while left:
        each, depth = left.pop()
        count += 1
        if depth:
            below = each.values() if isinstance(each, dict) else each if isinstance(each, list) else ()
            left += [(one, depth - 1) for one in below]
    return count
