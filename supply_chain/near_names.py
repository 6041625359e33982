"""`python -m supply_chain.near_names FILE` writes the names of each closed level into a values.schema.json, so that
Helm's error about an unknown value lists them. Where a level has many names, the error also has the nearest one.

Helm checks the schema before it renders a template, so a template cannot say it. `propertyNames` can: if a name has a
pattern that only mistyped forms of a known name have, it must be this name.
"""

import itertools
import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

FEW = 6
"""A list of at most so many names needs no hint."""


def property_names(names: Sequence[str]) -> dict[str, Any]:
    """The schema for the names of a level. Every other name is refused."""
    known = {"enum": list(names)}
    if len(names) <= FEW:
        return known
    hints = ({"if": {"pattern": near(name, names)}, "then": {"const": name}} for name in names)
    return {"allOf": [known, *hints]}


def near(name: str, names: Sequence[str]) -> str:
    """A pattern for `name` with one wrong, missing or additional character, or with other letters in upper case. It
    matches none of the other `names`.

    A mistake in one half of the name leaves the other half unchanged. So most patterns are two halves. A half is longer
    if another name has the same half. Then forms with a mistake in the rest of the name are listed.
    """
    others = [each for each in names if each != name]
    half = (len(name) + 1) // 2
    start = max(half, *(_shared(name, each) + 1 for each in others))
    end = max(half, *(_shared(name[::-1], each[::-1]) + 1 for each in others))
    parts = [_any_case(name)]
    if start <= len(name):
        parts.append(f"{_any_case(name[:start])}.*")
    if end <= len(name):
        parts.append(f".*{_any_case(name, len(name) - end)}")
    for place in range(max(0, len(name) - end), min(start, len(name))):
        before, after = _any_case(name[:place]), _any_case(name, place + 1)
        wide = f"{before}.{{0,2}}{after}"
        parts.append(f"{before}.?{after}" if _matches(wide, others) else wide)
    return f"^({'|'.join(part for part in parts if not _matches(part, others))})$"


def _matches(pattern: str, names: Iterable[str]) -> bool:
    return any(re.fullmatch(pattern, name) for name in names)


def _shared(one: str, other: str) -> int:
    """The number of letters with which both begin, in any case."""
    pairs = zip(one.lower(), other.lower(), strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))


def _any_case(name: str, begin: int = 0) -> str:
    """A pattern for `name[begin:]`, in which the first letter and capital letters of `name` have any case."""
    return "".join(
        f"[{letter.lower()}{letter.upper()}]" if letter.isupper() or place == 0 else re.escape(letter)
        for place, letter in enumerate(name)
        if place >= begin
    )


def written(text: str) -> str:
    """The text of a values.schema.json, with the names of each closed level. A hint is one line."""
    schema = json.loads(text)
    hints: list[str] = []
    for level in _closed(schema):
        names = property_names(list(level["properties"]))
        for number, hint in enumerate(names.get("allOf", ())):
            if "if" in hint:
                names["allOf"][number] = f"hint {len(hints)}"
                hints.append(json.dumps(hint))
        level["propertyNames"] = names
    return re.sub(r'"hint (\d+)"', lambda found: hints[int(found[1])], json.dumps(schema, indent=2)) + "\n"


def _closed(node: object) -> Iterator[dict[str, Any]]:
    """The levels of a schema that allow only their own names."""
    if isinstance(node, dict):
        if node.get("additionalProperties") is False:
            yield node
        node = list(node.values())
    if isinstance(node, list):
        for each in node:
            yield from _closed(each)


if __name__ == "__main__":
    file = Path(sys.argv[1])
    file.write_text(written(file.read_text()))
