"""Which files are mutated, and which tests concern them. Both follow from the repository; there is no list here.

Pure modules are those that an import contract of pyproject.toml keeps free of I/O. The pure modules of one subject, as
`reconciler/releases/`, are an area. Its tests are those of the folder with the same name in `tests/unit`, and each test
file elsewhere in `tests/unit` that imports a module of the area, itself or in the helpers of its folder.
"""

import functools
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.imports import imported

ROOT = Path(__file__).parents[2]
_PURE = re.compile(r"\b(without|no) I/O\b")
"""In the name of a contract about pure modules."""

_WIDELY_IMPORTED = 10
"""A module that more test files than this import is about no subject; only the tests of its own folder concern it."""


@dataclass(frozen=True)
class Area:
    """The pure modules of one subject. All paths are relative to the repository and sorted."""

    folder: str
    files: tuple[str, ...]
    tests: tuple[str, ...]


def areas(words: Sequence[str] = ()) -> list[Area]:
    """All areas with tests, sorted by folder. With words, only the files whose paths contain one of them."""
    files = defaultdict(set)
    for path in _pure_files():
        name = _relative(path)
        if not words or any(word in name for word in words):
            files[ROOT.joinpath(*Path(name).parent.parts[:2])].add(path)
    imports = {path: _with_parents(imported(path)) for path in (ROOT / "tests/unit").rglob("test_*.py")}
    helped = {path: _with_helpers(path) for path in imports}
    found = [
        Area(_relative(folder), tuple(sorted(map(_relative, members))), _tests(folder, members, imports, helped))
        for folder, members in sorted(files.items())
    ]
    return [area for area in found if area.tests]


def _pure_files() -> set[Path]:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    found = set()
    pure = [each for each in contracts if each["type"] == "forbidden" and _PURE.search(each["name"])]
    for module in (module for each in pure for module in each["source_modules"]):
        own = ROOT / module.replace(".", "/")
        found |= set(own.rglob("*.py")) if own.is_dir() else {own.with_suffix(".py")}
    return {path for path in found if path.name != "__init__.py"}


def _tests(folder: Path, members: set[Path], *imports: Mapping[Path, frozenset[str]]) -> tuple[str, ...]:
    found = {path for path in imports[0] if path.is_relative_to(ROOT / "tests/unit" / _relative(folder))}
    for member in members:
        module = _relative(member).removesuffix(".py").replace("/", ".")
        for each in imports:
            importers = {path for path, names in each.items() if module in names}
            found |= importers if len(importers) <= _WIDELY_IMPORTED else set()
    return tuple(sorted(map(_relative, found)))


@functools.cache
def _with_helpers(path: Path) -> frozenset[str]:
    names = _with_parents(imported(path))
    folder = _relative(path.parent).replace("/", ".")
    helpers = (each for each in path.parent.glob("*.py") if f"{folder}.{each.stem}" in names)
    return names.union(*map(_with_helpers, helpers))


def _with_parents(names: Iterable[str]) -> frozenset[str]:
    """The names, and the names of the modules that they are members of."""
    return frozenset(
        ".".join(parts[:end]) for parts in (name.split(".") for name in names) for end in range(1, len(parts) + 1)
    )


def _relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()
