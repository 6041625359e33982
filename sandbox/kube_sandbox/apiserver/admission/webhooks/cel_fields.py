"""The fields that a CEL expression uses. The conversion of a whole object to CEL takes thirty times as long as that of
its labels, and most expressions use few fields."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

Path = tuple[str, ...]
"""The names of fields below a variable; empty for the variable itself. After `_PRESENCE` at its end, nothing below the
field is used."""

_PRESENCE = ""
_HAS = re.compile(r"\bhas\(\s*([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+)\s*\)", re.ASCII)
_USE = re.compile(r"(?<![\w.])([A-Za-z_]\w*)((?:\.[A-Za-z_]\w*\b(?!\s*\())*)", re.ASCII)


def used(expression: str) -> Mapping[str, frozenset[Path]]:
    """The fields that the expression may use, by variable. The last field of a path is used with all fields below it,
    because an index, a method or a comparison may follow; `has` only asks whether it is there. The result also contains
    words that are not variables."""
    found: defaultdict[str, set[Path]] = defaultdict(set)
    for path in _HAS.findall(expression):
        variable, *fields = path.split(".")
        found[variable].add((*fields, _PRESENCE))
    for variable, fields in _USE.findall(_HAS.sub("", expression)):
        found[variable].add(tuple(fields.split(".")[1:]))
    return {variable: missing(paths, frozenset()) for variable, paths in found.items()}


def missing(paths: Iterable[Path], there: frozenset[Path]) -> frozenset[Path]:
    """The paths whose fields neither these paths nor the others contain."""
    wanted = {path for path in paths if path not in there}
    return frozenset(
        path for path in wanted if not any(_contains(other, path) for other in (*there, *wanted) if other != path)
    )


def _contains(other: Path, path: Path) -> bool:
    """Whether the fields at the other path are enough for what is used at this one."""
    if other[-1:] == (_PRESENCE,):
        return False
    if path[-1:] == (_PRESENCE,):
        own = path[:-1]
        return other[: len(own)] == own or own[: len(other)] == other
    return path[: len(other)] == other


def only(value: Any, paths: Iterable[Path]) -> Any:
    """The value with the fields at these paths and no others."""
    if () in paths or not isinstance(value, dict):
        return value
    below: defaultdict[str, set[Path]] = defaultdict(set)
    for name, *rest in paths:
        below[name].add(tuple(rest))
    return {name: only(value[name], rest) for name, rest in below.items() if name in value}
