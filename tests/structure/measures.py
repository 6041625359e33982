"""Measures of the source: functions, files and folders."""

import ast
import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]

PRODUCT = ("altershield", "gatekeeper", "reconciler", "certgen", "console", "command", "kube_base")
SANDBOX = "sandbox/kube_sandbox"

_MESSAGE = re.compile(r"`(?P<name>[^`]+)` is too complex \((?P<number>\d+) ")


class Measure(NamedTuple):
    """A number, and what it is about: a folder, a file, or `file:line name` of a function."""

    number: int
    about: str


class Room(NamedTuple):
    """A folder of the product, without the folders in it."""

    folder: str
    files: int
    """The number of Python files, without `__init__.py`."""
    lines: int


def sources(folders: Sequence[str]) -> Iterator[Path]:
    """The Python files in these folders."""
    for folder in folders:
        yield from sorted((ROOT / folder).rglob("*.py"))


def rooms() -> list[Room]:
    """The folders of the product, in alphabetical order."""
    found: defaultdict[str, list[Path]] = defaultdict(list)
    for path in sources(PRODUCT):
        found[_name(path.parent)].append(path)
    return [
        Room(folder, sum(path.name != "__init__.py" for path in paths), sum(map(_lines, paths)))
        for folder, paths in sorted(found.items())
    ]


def files() -> list[Measure]:
    """The lines of each file of the product, the longest first."""
    return sorted((Measure(_lines(path), _name(path)) for path in sources(PRODUCT)), reverse=True)


def lengths() -> list[Measure]:
    """The lines of each function of the product and the sandbox, the longest first. The docstring counts, decorators do
    not."""
    found = []
    for path in sources((*PRODUCT, SANDBOX)):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                found.append(Measure(lines, f"{_name(path)}:{node.lineno} {node.name}"))
    return sorted(found, reverse=True)


def complexities() -> list[Measure]:
    """The McCabe complexity of each function of the product and the sandbox, as ruff counts it, the highest first."""
    command = [
        sys.executable, "-m", "ruff", "check", "--isolated", "--exit-zero", "--ignore-noqa", "--output-format=json",
        "--select=C901", "--config=lint.mccabe.max-complexity=0", *PRODUCT, SANDBOX,
    ]  # fmt: skip
    reported = json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout)
    found = []
    for each in reported:
        match = _MESSAGE.match(each["message"])
        assert match is not None, each["message"]
        place = f"{_name(Path(each['filename']))}:{each['location']['row']}"
        found.append(Measure(int(match["number"]), f"{place} {match['name']}"))
    return sorted(found, reverse=True)


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _lines(path: Path) -> int:
    return len(path.read_text().splitlines())
