"""The bounds of the structure, and what exceeds them."""

import tomllib
from collections.abc import Callable, Iterator, Mapping

from tests.structure.measures import ROOT, Measure, complexities, files, lengths, rooms
from tests.structure.trace import Walk

FUNCTION_LINES = 60
COMPLEXITY = int(
    tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ruff"]["lint"]["mccabe"]["max-complexity"]
)
"""As `make lint` has it."""
FILE_LINES = 400
FOLDER_FILES = 20

LARGE_FOLDERS = {
    "altershield/api": 35,  # a file for each kind, and for each vocabulary that kinds and processes share
    "kube_base/access": 24,  # a library as client-go: a file for each part, which knows none of our subjects
}
"""The folders that may have more files, with their bound."""

WALK_FILES = {"One review": 18, "One pod event": 72}
"""By the heading of the walk."""


def long_functions() -> list[str]:
    return _over(lengths, FUNCTION_LINES, "lines")


def complex_functions() -> list[str]:
    return _over(complexities, COMPLEXITY, "ways to go")


def long_files() -> list[str]:
    return _over(files, FILE_LINES, "lines")


def large_folders() -> list[str]:
    found = ((each, LARGE_FOLDERS.get(each.folder, FOLDER_FILES)) for each in rooms())
    return [f"{room.folder} has {room.files} files; at most {most}" for room, most in found if room.files > most]


def long_walks(walks: Mapping[str, Walk]) -> list[str]:
    """`walks`: by their heading."""
    found = ((heading, len(walk.files()), WALK_FILES[heading]) for heading, walk in walks.items())
    return [f"{heading} enters {number} files; at most {most}" for heading, number, most in found if number > most]


def exceeded(walks: Mapping[str, Walk]) -> Iterator[str]:
    """What exceeds a bound, one sentence each."""
    yield from long_walks(walks)
    yield from large_folders()
    yield from long_files()
    yield from long_functions()
    yield from complex_functions()


def _over(measure: Callable[[], list[Measure]], most: int, unit: str) -> list[str]:
    return [f"{each.about} has {each.number} {unit}; at most {most}" for each in measure() if each.number > most]
