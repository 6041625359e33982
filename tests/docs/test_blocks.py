"""Runs every command in README.md and the pages of docs/ in order, with the real kubectl and the real Helm engine."""

import time

import pytest

from tests.docs.pages import NOT_RUN, PAGES, ROOT, Shown, blocks, matches, shown
from tests.docs.shell import Shell
from tests.support.polling import HANG

WHERE = {
    "README.md": "bare",
    "docs/reference/sandbox.md": "bare",
    "charts/altershield/README.md": "fresh",
    "docs/install.md": "fresh",
    "docs/operate.md": "fresh",
    "docs/gitops.md": "fresh",
    "docs/adoption.md": "changed_shop",
    "docs/backup.md": "changed_shop",
    "docs/decide.md": "changed_shop",
    "docs/denied.md": "changed_shop",
    "docs/history.md": "changed_shop",
    "docs/integrations.md": "changed_shop",
    "docs/policies.md": "changed_shop",
    "docs/protect.md": "changed_shop",
    "docs/release-gates.md": "changed_shop",
    "docs/release-in-steps.md": "changed_shop",
    "docs/verdicts.md": "changed_shop",
}
"""The fixture in which the blocks of a page run. The default is `shop`, for pages that do not change what is in it."""

READS = (
    "kubectl get ",
    "kubectl -n shop get ",
    "kubectl -n shop describe ",
    "altershield status",
    "altershield history",
    "altershield why",
    "altershield budgets",
    ".venv/bin/altershield status",
    ".venv/bin/altershield uninstall --dry-run",
    ".venv/bin/python -m certgen show",
)
"""Commands that may be repeated until their output is the one in the page."""

TRIED = [
    path.relative_to(ROOT).as_posix()
    for path in PAGES
    if any(block.language in ("sh", "console") and not block.not_run for block in blocks(path.read_text()))
]


@pytest.mark.parametrize("page", TRIED)
def test_commands_of_a_page_print_what_the_page_shows(page: str, request: pytest.FixtureRequest) -> None:
    shell: Shell = request.getfixturevalue(WHERE.get(page, "shop"))
    for block in blocks((ROOT / page).read_text()):
        if block.not_run or block.language not in ("sh", "console"):
            continue
        where = f"{page}:{block.line}"
        if block.stays_up:
            shell.leave_up(block.text, block.stays_up)
        elif block.language == "sh":
            print(where, shell.run(block.text), sep="\n")
        else:
            for command in shown(block.text):
                compare(shell, command, where)


def compare(shell: Shell, command: Shown, where: str) -> None:
    began = time.monotonic()
    while True:
        seen = shell.run(f"{{ {command.command}\n}} 2>&1 || true")
        if matches(command.output, seen):
            return
        if not command.command.startswith(READS) or time.monotonic() > began + HANG:
            raise AssertionError(
                f"{where}: {command.command}\nthe page shows:\n{command.output}\nthe command prints:\n{seen}"
            )
        time.sleep(min(1.0, 0.2 + (time.monotonic() - began) / 5))  # a process takes up to half a second of CPU time


@pytest.mark.parametrize("page", [path.relative_to(ROOT).as_posix() for path in PAGES])
def test_every_block_has_a_language_and_a_known_reason_not_to_run(page: str) -> None:
    for block in blocks((ROOT / page).read_text()):
        assert block.language, f"{page}:{block.line}: the block needs a language: sh, console, yaml, …"
        assert block.language not in ("bash", "shell"), f"{page}:{block.line}: use sh instead"
        assert not block.not_run or block.not_run in NOT_RUN, f"{page}:{block.line}: the reason is not in NOT_RUN"


def test_output_is_compared_with_ellipses_and_without_white_space() -> None:
    assert matches("NAME   STATUS\nsleep--x--…   Success", "NAME STATUS\nsleep--x--0af  Success\n")
    assert matches("a\n…\nz", "a\nb\nc\nz")
    assert matches("a\n…\nz", "a\nz")
    assert not matches("a\nz", "a\nb\nz")
    assert not matches("a", "ab")
    assert shown("$ one \\\n  two\nout\n$ three") == [Shown("one \\\n  two", "out"), Shown("three", "")]
