"""The paths of a FieldGuard, below `spec.template`: `spec.containers[*].resources.limits[nvidia.com/gpu]`."""

import itertools
import string
from typing import NamedTuple

from altershield.gates.fields.list_keys import MERGE_KEYS

MAX_PARTS = 16
"""The maximum number of parts of a path."""

_LETTERS = frozenset(string.ascii_letters)
_NAME = _LETTERS | frozenset(string.digits)
_KEY = _NAME | frozenset("._/:@-")


class PathError(ValueError):
    """A path cannot be read. The message says what is wrong and what to write."""


class Member(NamedTuple):
    """A member of a map: a field, or a key in brackets. In brackets, it is also the name of an element of a list."""

    name: str
    in_brackets: bool = False


class Elements(NamedTuple):
    """The elements of a list whose `field` has this value; without a field, all elements of a list or a map."""

    field: str = ""
    value: str = ""


Part = Member | Elements
Path = tuple[Part, ...]


def parse(text: str) -> Path:
    """The parts of a path. PathError: it is no path."""
    parts: list[Part] = []
    position = 0
    while position < len(text):
        part, position = _part(text, position, first=not parts)
        parts.append(part)
        if len(parts) > MAX_PARTS:
            raise PathError(f"{text}: a path has at most {MAX_PARTS} parts")
    if not parts or parts[0] not in (Member("spec"), Member("metadata")):
        raise PathError(f"{text}: a path begins with spec or metadata, below spec.template")
    if len(parts) == 1:
        raise PathError(f"{text}: name a field below {text}")
    if parts[:2] == [Member("spec"), Member("template")]:
        raise PathError(f"{text}: paths begin below spec.template; remove spec.template")
    for before, after in itertools.pairwise(parts[1:] if parts[0] == Member("spec") else ()):
        if _is_list(before) and isinstance(after, Member) and not after.in_brackets:
            raise PathError(f"{text}: {before[0]} is a list; write [*] or [name=VALUE] after it")
    return tuple(parts)


def _is_list(part: Part) -> bool:
    return isinstance(part, Member) and not part.in_brackets and part.name in MERGE_KEYS


def _part(text: str, start: int, *, first: bool) -> tuple[Part, int]:
    """The part that begins at `start`, and where the next one begins."""
    if text[start] == "[" and not first:
        end = text.find("]", start)
        if end < 0:
            raise PathError(f"{text}: ] is missing")
        return _brackets(text, text[start + 1 : end]), end + 1
    begin = start if first else start + 1
    if not first and text[start] != ".":
        raise PathError(f"{text}: after ], write . or [")
    end = begin
    while end < len(text) and text[end] not in ".[":
        end += 1
    name = text[begin:end]
    if not name or name[0] not in _LETTERS or not _NAME.issuperset(name):
        raise PathError(f"{text}: {name or 'nothing'} is no name of a field; write other keys in brackets, as [a/b]")
    return Member(name), end


def _brackets(text: str, inside: str) -> Part:
    if inside == "*":
        return Elements()
    field, equals, value = inside.partition("=")
    if not equals:
        field, value = "", inside
    if not value or not _KEY.issuperset(value) or (equals and not field) or not _NAME.issuperset(field):
        raise PathError(f"{text}: write [*], [name=VALUE] or [KEY] instead of [{inside}]")
    if field and field[0] not in _LETTERS:
        raise PathError(f"{text}: {field} is no name of a field")
    return Elements(field, value) if field else Member(value, in_brackets=True)
