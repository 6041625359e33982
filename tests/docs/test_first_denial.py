"""From `git clone` to a denied release understood, with the commands of README.md alone.

The clone is of this repository, and `.venv` is the environment of the tests, because an installation needs the registry
of packages. Everything else runs as it stands in the README, up to the first denial and its explanation."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.docs.conftest import environment
from tests.docs.pages import ROOT, Block, blocks, matches, shown
from tests.docs.shell import terminal

DENIED = "denied the request"


def until_understood(readme: str) -> list[Block]:
    """The blocks from the beginning of the README to the one that shows the first denial."""
    found: list[Block] = []
    for block in blocks(readme):
        found.append(block)
        if block.language == "console" and DENIED in block.text:
            return found
    raise AssertionError("the README shows no denial")


@pytest.mark.xdist_group("docs")
def test_readme_alone_leads_from_the_clone_to_a_denial_and_its_reason(
    tmp_path: Path, programs: Path, has_kubectl: None
) -> None:
    began = time.monotonic()
    clone = tmp_path / "altershield"
    subprocess.run(["git", "clone", "--quiet", "--depth=1", ROOT.as_uri(), str(clone)], check=True)
    clone.joinpath(".venv").symlink_to(sys.prefix)
    first, *others = until_understood((clone / "README.md").read_text())
    assert first.not_run
    assert first.text.startswith("git clone ")
    assert first.text.endswith("\nmake demo\n"), "it installs .venv"
    answers = []
    with terminal(clone, environment(programs, clone)) as shell:
        for block in others:
            assert not block.not_run, f"README.md:{block.line}: nothing before the denial may be left out"
            if block.stays_up:
                shell.leave_up(block.text, block.stays_up)
            elif block.language == "sh":
                shell.run(block.text)
            else:
                for command in shown(block.text):
                    answers.append(shell.run(f"{{ {command.command}\n}} 2>&1 || true"))
                    assert matches(command.output, answers[-1]), answers[-1]
    denial, reason = answers
    assert DENIED in denial
    for part in ("find error", "Failed by: a person", "What to do:", "altershield repair"):
        assert part in reason
    print(f"understood {time.monotonic() - began:.0f} s after the clone, without the installation")
