"""The trees that are drawn again on a terminal."""

import io
from collections.abc import Sequence
from unittest.mock import create_autospec

import pytest
from rich.console import Console

from altershield.views.releases.model import Release
from command.status.printers import Printer
from command.status.trees import Trees
from kube_base.access.bodies import ListMeta, ObjectList
from kube_base.access.client import Client
from tests.unit.altershield.releases.steps import ROLLOUT, SOAKING
from tests.unit.altershield.views.builders import RUNNING, in_steps, release, scaled, stored, workload

IN_STEPS = Release(scaled(10), stored(in_steps(ROLLOUT, SOAKING)))
WHOLE = Release(workload(), stored(release(RUNNING)))


def on(terminal: bool, *, wanted: bool = True) -> tuple[Trees, io.StringIO]:
    client = create_autospec(Client, instance=True)
    client.list.return_value = ObjectList(ListMeta("1"), [])
    out = io.StringIO()
    printer = Printer(None, "shop", Console(file=out, force_terminal=terminal, width=200))
    return Trees(client, printer, wanted=wanted), out


@pytest.mark.parametrize(
    ("terminal", "wanted", "found", "drawn"),
    [
        (True, True, [IN_STEPS], True),
        (True, True, [WHOLE], True),
        (True, False, [IN_STEPS], False),
        (False, True, [IN_STEPS], False),
    ],
)
async def test_trees_of_named_workloads_are_drawn_on_a_terminal_only(
    terminal: bool, wanted: bool, found: Sequence[Release], drawn: bool
) -> None:
    trees, out = on(terminal, wanted=wanted)
    async with trees.drawn_again():
        assert await trees.draw(found) is drawn
        text = out.getvalue()
    assert ("─ version 111111111111*" in text) is drawn
    assert ("─ step 3 " in text) is (drawn and found == [IN_STEPS])


async def test_tree_is_drawn_in_the_place_of_the_one_before() -> None:
    trees, out = on(True)
    async with trees.drawn_again():
        assert await trees.draw([IN_STEPS])
        before = len(out.getvalue())
        assert await trees.draw([WHOLE])
    assert "\x1b[1A" in out.getvalue()[before:], "the cursor goes up to the first line"


async def test_steps_are_not_read_if_nobody_named_the_workload(capsys: pytest.CaptureFixture[str]) -> None:
    trees, _ = on(False, wanted=False)
    await trees.whole([IN_STEPS])
    assert capsys.readouterr().out == ""
