"""The objects that arguments name, in the syntax of kubectl."""

from collections.abc import Callable, Sequence
from typing import NamedTuple


class Named(NamedTuple):
    """What an argument names."""

    argument: str
    """The argument as it was typed."""
    type: str | None
    """None: only a name was typed."""
    name: str | None
    """None: only a type was typed."""


def named(arguments: Sequence[str], is_type: Callable[[str], bool]) -> list[Named]:
    """What `NAME` and `TYPE/NAME` (any number of both), `TYPE`, or `TYPE NAME...` name. `is_type`: whether a word is a
    type of the command."""
    if not arguments:
        return []
    first, *names = arguments
    if not is_type(first) or any("/" in name for name in names):
        return [_one(argument) for argument in arguments]
    return [Named(name, first, name) for name in names] or [Named(first, first, None)]


def _one(argument: str) -> Named:
    kind, slash, name = argument.rpartition("/")
    return Named(argument, kind if slash else None, name)
