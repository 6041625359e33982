"""The pages of the documentation, and their blocks of commands.

One of two comments may stand before a block:
    <!-- not run: REASON -->      the block is not tested; REASON is one of `NOT_RUN`
    <!-- stays up: TEXT -->       its last command does not end; the next block follows once it prints TEXT
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]

PAGES = sorted(
    [*ROOT.glob("*.md"), ROOT / "charts" / "altershield" / "README.md", *ROOT.glob("docs/**/*.md")],
    key=lambda path: (len(path.parts), path),
)

NOT_RUN = {
    "it is this test suite": "the test would run itself",
    "the sandbox runs no containers": "there are no containers to execute in, and no logs",
    "needs cert-manager": "cert-manager is another operator with its own kinds",
    "needs an image registry": "it also needs an engine that builds images",
    "needs Argo CD": "the command line of Argo CD needs its server",
    "needs Flux": "the command line of Flux needs its controllers",
    "needs krew": "krew is another program",
    "needs kubeadm": "kubeadm needs a machine with a kubelet",
    "needs a published release": "nothing is published yet",
    "needs the registry of packages": "it downloads packages; tests/chart/test_image.py does the same",
    "needs wrk": "it is a bench for an idle machine",
    "it asks": "the command asks a person; tests/chart/test_uninstall.py answers on a terminal",
    "needs API servers of yours": "tests/chart/test_client_certificates.py runs them with API servers of its own",
    "takes minutes": "another test covers it with shorter times",
    "for you to fill in": "it contains names that only the reader knows",
}
"""The allowed reasons not to run a block, with an explanation of each."""

_FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
_MARKER = re.compile(r"<!-- (not run|stays up): ([^\n]*?) -->\n\s*$")


class Block(NamedTuple):
    line: int
    language: str
    text: str
    not_run: str
    """The reason not to run the block; empty if it runs."""
    stays_up: str
    """The text that the last command prints once it is ready; empty if all commands end."""


def blocks(page: str) -> Iterator[Block]:
    """The fenced blocks of a page, in order."""
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
    """A command of a `console` block, and its output."""

    command: str
    output: str


def shown(text: str) -> list[Shown]:
    """The commands of a `console` block. A command begins with `$ `, and goes on after a line with a final `\\`."""
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
    """Whether `seen` matches the output in a page. `…` in a line stands for any text, alone in a line for any
    lines. White space and empty lines are ignored."""
    pattern = ""
    for line in _lines(expected):
        pattern += r"(?:[^\n]*\n)*?" if line == "…" else ".*".join(map(re.escape, line.split("…"))) + r"\n"
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in _lines(seen))) is not None


def _lines(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


def anchors(page: Path) -> set[str]:
    """The anchors of the headings of a page, as GitHub creates them."""
    text = re.sub(r"```.*?^ *```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    found = set()
    for heading in re.findall(r"^#+ +(.+?) *$", text, re.MULTILINE):
        found.add(re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-"))
    return found
