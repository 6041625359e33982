"""docs/architecture.md lists the files of one review and of one pod event, and the turns back. tests/structure/trace.py
says what these words mean."""

import re
from pathlib import Path

import pytest

from tests.docs.pages import ROOT
from tests.structure.bounds import long_walks
from tests.structure.walks import WALKS

_FILE = re.compile(r"`((?:altershield|gatekeeper|kube_base|reconciler)/[\w/]+\.py)`")


def section(heading: str) -> list[str]:
    """The lines of a section."""
    page = (ROOT / "docs" / "architecture.md").read_text()
    return page.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0].splitlines()


def files_in(lines: list[str]) -> list[str]:
    """The files in the numbered list of a section, in order."""
    first = next(number for number, line in enumerate(lines) if line.startswith("1. "))
    return _FILE.findall("\n".join(lines[first : lines.index("", first)]))


def turns_in(lines: list[str]) -> set[tuple[str, str]]:
    """The turns back in the table of a section: the file that is called, and the file that calls it."""
    found = set()
    first = lines.index("| back to | from | why |")
    for row in lines[first : lines.index("", first)]:
        _, back_to, callers, *_ = row.split("|")
        found |= {(file, caller) for file in _FILE.findall(back_to) for caller in _FILE.findall(callers)}
    return found


@pytest.mark.parametrize("heading", WALKS)
async def test_page_lists_the_files_of_a_walk_and_its_turns_back(heading: str, tmp_path: Path) -> None:
    walk = await WALKS[heading](tmp_path)
    assert files_in(section(heading)) == walk.files()
    assert turns_in(section(heading)) == set(walk.turns())
    assert long_walks({heading: walk}) == []
