"""The fields that a CEL expression uses. The conversion of a whole object to CEL takes thirty times as long as that of
its labels, and most expressions use few fields."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

Path = tuple[str, ...]
"""The names of fields below a variable; empty for the variable itself."""

_USE = re.compile(r"(?<![\w.])([A-Za-z_]\w*)((?:\.[A-Za-z_]\w*\b(?!\s*\())*)", re.ASCII)


def used(expression: str) -> Mapping[str, frozenset[Path]]:
    """The fields that the expression may use, by variable. The last field of a path is used with all fields below it,
    because an index, a method or a comparison may follow. The result also contains words that are not variables."""
    found: defaultdict[str, set[Path]] = defaultdict(set)
    for variable, fields in _USE.findall(expression):
        found[variable].add(tuple(fields.split(".")[1:]))
    return {variable: frozenset(paths) for variable, paths in found.items()}


def only(value: Any, paths: Iterable[Path]) -> Any:
    """The value with the fields at these paths and no others."""
    if () in paths or not isinstance(value, dict):
        return value
    below: defaultdict[str, set[Path]] = defaultdict(set)
    for name, *rest in paths:
        below[name].add(tuple(rest))
    return {name: only(value[name], rest) for name, rest in below.items() if name in value}
