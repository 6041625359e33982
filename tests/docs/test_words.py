"""The pages are short enough to be read.

Counted are the pages below docs/ that people write, also the runbooks, without docs/reference, which is generated. A
word is text between white space with a letter or a digit: in sentences, headings, lists and tables. The fenced blocks
are not counted: commands, their output and files, which are run, not read."""

import re
from collections.abc import Iterator

from tests.docs.pages import ROOT

MOST = 25_000
MOST_WITH_BLOCKS = 32_000
MOST_OF_A_RUNBOOK = 140
LONG_RUNBOOKS = {"AlterShieldGatekeeperDown", "AlterShieldReleaseStuck"}
"""They have a table of answers or reasons."""

_FENCED = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
_WORD = re.compile(r"\S*[^\W_]\S*")


def words(text: str) -> int:
    return len(_WORD.findall(_FENCED.sub("", text)))


def texts() -> Iterator[tuple[str, str]]:
    """The names of the pages below docs/, and their texts."""
    for path in sorted((ROOT / "docs").rglob("*.md")):
        if ROOT / "docs" / "reference" not in path.parents:
            yield path.relative_to(ROOT / "docs").as_posix(), path.read_text()


def test_pages_have_few_words() -> None:
    found = {name: words(text) for name, text in texts()}
    longest = sorted(found.items(), key=lambda each: -each[1])[:5]
    assert sum(found.values()) <= MOST, f"the longest: {longest}"


def test_blocks_have_few_words_too() -> None:
    assert sum(len(_WORD.findall(text)) for _, text in texts()) <= MOST_WITH_BLOCKS


def test_runbooks_are_short() -> None:
    long = {name for name, text in texts() if name.startswith("runbooks/") and words(text) > MOST_OF_A_RUNBOOK}
    assert long == {f"runbooks/{name}.md" for name in LONG_RUNBOOKS}


def test_words_are_those_of_sentences_and_tables() -> None:
    assert words("# Two words\n\n| `a` | -- |\n\n  ```sh\n  not counted\n  ```\n") == 3
