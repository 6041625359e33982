"""The commands that the demo shows can be typed: a shell reads them, and their patches are JSON."""

import asyncio
import io
import json
import re
import shlex
from types import SimpleNamespace
from typing import cast

import pytest
from rich.console import Console

from altershield.api.change_pod import ChangePod, ChangePodSpec
from altershield.api.pod_verdicts import PodInfo
from command.demo import command
from command.demo.steps import STEPS, Step
from command.demo.story import StepFailedError, Story
from kube_base.meta import ObjectMeta


def story() -> Story:
    pods = [
        ChangePod(
            metadata=ObjectMeta(f"sleep--x--{'0' * 32}--x--{number}", "altershield-demo"),
            spec=ChangePodSpec("", "", 0, pod_infos=(PodInfo(pod=f"sleep-{number}"),)),
        )
        for number in (2, 1)
    ]
    return cast("Story", SimpleNamespace(change_pods=SimpleNamespace(all=lambda: pods)))


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.title)
def test_a_shell_reads_the_commands_of_a_step(step: Step) -> None:
    for typed in step.commands(story()):
        program, *arguments = shlex.split(typed)
        assert program == "kubectl"
        assert "…" not in typed
        if "-p" in arguments:
            assert isinstance(json.loads(arguments[arguments.index("-p") + 1]), dict)


def test_the_verdict_is_about_the_pod_of_the_first_change_pod() -> None:
    (typed,) = next(step for step in STEPS if step.title == "Fail a pod").commands(story())
    assert f"sleep--x--{'0' * 32}--x--1" in typed
    assert '"pod":"sleep-1"' in typed


def printed(outcome: str | StepFailedError, *, terminal: bool) -> str:
    async def run(_: Story) -> str:
        if isinstance(outcome, StepFailedError):
            raise outcome
        return outcome

    step = Step("Release", "The Deployment gets a version.", lambda _: ("kubectl apply \\\n  -f [a].yaml",), run)
    console = Console(file=io.StringIO(), width=60, force_terminal=terminal, force_interactive=False, no_color=True)

    async def play() -> None:
        await command._step(console, " 1/10", step, story())

    if isinstance(outcome, StepFailedError):
        with pytest.raises(StepFailedError, match=r"^step 1/10 \(Release\) failed: "):
            asyncio.run(play())
    else:
        asyncio.run(play())
    return cast("io.StringIO", console.file).getvalue()


def test_a_step_shows_what_happens_then_its_command_then_the_outcome() -> None:
    lines = printed("Version [0]: Success.", terminal=False).splitlines()
    assert lines[:4] == [
        "",
        " 1/10 Release: The Deployment gets a version.",
        "      $ kubectl apply \\",
        "        -f [a].yaml",
    ]
    assert re.fullmatch(r"      ✓ \(\d\.\d s\) Version \[0\]: Success\.", lines[4])


def test_a_failed_step_shows_the_error() -> None:
    assert "      ✗ the change was allowed\n" in printed(StepFailedError("the change was allowed"), terminal=False)


@pytest.mark.parametrize("terminal", [False, True])
def test_a_long_outcome_ends_with_its_command_on_the_same_line(terminal: bool) -> None:
    outcome = f"Denied: {'word ' * 30}run this command: kubectl label --overwrite deployment sleep a=true"
    (line,) = [line for line in printed(outcome, terminal=terminal).splitlines() if "Denied" in line]
    assert line.endswith(outcome)
