"""The pages are short enough to be read.

Counted are the pages below docs/ that people write, also the runbooks, without docs/reference, which is generated. A
word is text between white space with a letter or a digit: in sentences, headings, lists and tables. The fenced blocks
are not counted: commands, their output and files, which are run, not read."""

import re
from collections.abc import Iterator

from tests.docs.pages import ROOT

MOST = 25_000
MOST_OF_A_RUNBOOK = 140
LONG_RUNBOOKS = {"AlterShieldGatekeeperDown", "AlterShieldReleaseStuck"}
"""They have a table of answers or reasons."""

_FENCED = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
_WORD = re.compile(r"\S*[^\W_]\S*")


def words(text: str) -> int:
    return len(_WORD.findall(_FENCED.sub("", text)))


def pages() -> Iterator[tuple[str, int]]:
    for path in sorted((ROOT / "docs").rglob("*.md")):
        if ROOT / "docs" / "reference" not in path.parents:
            yield path.relative_to(ROOT / "docs").as_posix(), words(path.read_text())


def test_pages_have_few_words() -> None:
    found = dict(pages())
    longest = sorted(found.items(), key=lambda each: -each[1])[:5]
    assert sum(found.values()) <= MOST, f"the longest: {longest}"


def test_runbooks_are_short() -> None:
    runbooks = {name.removeprefix("runbooks/").removesuffix(".md"): n for name, n in pages() if "runbooks/" in name}
    long = {name for name, number in runbooks.items() if number > MOST_OF_A_RUNBOOK and name != "README"}
    assert long == LONG_RUNBOOKS


def test_words_are_those_of_sentences_and_tables() -> None:
    assert words("# Two words\n\n| `a` | -- |\n\n  ```sh\n  not counted\n  ```\n") == 3
