"""The table *Ten questions* of docs/README.md: each command works as it stands there, and each page exists."""

import re
from typing import NamedTuple

import pytest

from tests.docs.pages import ROOT
from tests.docs.shell import Shell

INDEX = ROOT / "docs" / "README.md"
_ROW = re.compile(r"^\| ([^|]+\?) \| `([^`]+)` \| \[[^\]]+\]\(([^)]+)\) \|$", re.MULTILINE)


class Question(NamedTuple):
    text: str
    command: str
    page: str


QUESTIONS = [Question(*each) for each in _ROW.findall(INDEX.read_text())]


def test_page_has_ten_questions_each_with_a_command_and_a_page() -> None:
    assert len(QUESTIONS) == 10
    assert len({each.command for each in QUESTIONS}) == len({each.page for each in QUESTIONS}) == 10
    for question in QUESTIONS:
        assert (INDEX.parent / question.page.partition("#")[0]).is_file(), question


@pytest.mark.xdist_group("docs")
def test_commands_answer_the_questions(changed_shop: Shell) -> None:
    changed_shop.run("kubectl -n shop set image deployment web nginx=nginx:1.28\naltershield wait deploy/web -n shop")
    # a rollback is the only one that changes something, and what it did is an Event
    for question in sorted(QUESTIONS, key=lambda each: ("rollback" in each.command) + 2 * ("events" in each.command)):
        answer = changed_shop.run(question.command)  # it fails if the command does
        assert answer.strip(), question
        assert "No resources found" not in answer, question
