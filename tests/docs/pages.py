"""The pages that people read, and what in them can be tried.

Two comments may stand before a block, each explaining itself to who reads the source:
    <!-- not run: REASON -->      one of `NOT_RUN`
    <!-- stays up: TEXT -->       its last command does not end; the next block follows once it says TEXT
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]

PAGES = sorted(
    [ROOT / "README.md", ROOT / "charts" / "altershield" / "README.md", *ROOT.glob("docs/**/*.md")],
    key=lambda path: (len(path.parts), path),
)

NOT_RUN = {
    "it is this test suite": "a test would run itself",
    "the sandbox runs no containers": "there is nothing to execute in, and there are no logs",
    "needs cert-manager": "another operator, with its own kinds",
    "needs an image registry": "and an engine that builds images",
    "needs Argo CD": "its command line talks to its own server",
    "needs Flux": "its command line talks to its own controllers",
    "needs wrk": "a bench, for a quiet machine",
    "it asks": "a person, who is not there; tests/chart/test_uninstall.py answers on a terminal",
    "takes minutes": "there is a test of its own for it, with shorter times",
    "for you to fill in": "it holds names that only the reader knows",
}
"""Why a block cannot be tried here, all reasons there are."""

_FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
_MARKER = re.compile(r"<!-- (not run|stays up): ([^\n]*?) -->\n\s*$")


class Block(NamedTuple):
    line: int
    language: str
    text: str
    not_run: str
    """The reason; empty where it is run."""
    stays_up: str
    """What its last command says once it is up; empty where all commands end."""


def blocks(page: str) -> Iterator[Block]:
    """The fenced blocks of a page, in their order."""
    for match in _FENCE.finditer(page):
        indent, language, text = match.groups()
        marker = _MARKER.search(page, max(0, match.start() - 200), match.start())
        said = {marker[1]: marker[2]} if marker else {}
        yield Block(
            page.count("\n", 0, match.start()) + 1,
            language,
            "".join(line.removeprefix(indent) for line in text.splitlines(keepends=True)),
            said.get("not run", ""),
            said.get("stays up", ""),
        )


class Shown(NamedTuple):
    """A command of a `console` block, and what it prints."""

    command: str
    output: str


def shown(text: str) -> list[Shown]:
    """The commands of a `console` block: they begin with `$ ` and go on while their lines end with a backslash."""
    found: list[Shown] = []
    lines = text.splitlines()
    while lines:
        line = lines.pop(0)
        assert line.startswith("$ "), f"a console block begins with a command, not with {line!r}"
        command = [line.removeprefix("$ ")]
        while command[-1].endswith("\\"):
            command.append(lines.pop(0))
        output = []
        while lines and not lines[0].startswith("$ "):
            output.append(lines.pop(0))
        found.append(Shown("\n".join(command), "\n".join(output)))
    return found


def matches(expected: str, seen: str) -> bool:
    """Whether `seen` is what the page shows: `…` stands for anything in a line, alone in a line for any lines. White
    space does not matter, nor do empty lines."""
    pattern = ""
    for line in _lines(expected):
        pattern += r"(?:[^\n]*\n)*?" if line == "…" else ".*".join(map(re.escape, line.split("…"))) + r"\n"
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in _lines(seen))) is not None


def _lines(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]
