"""The steps that are drawn again on a terminal."""

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
        (True, True, [WHOLE], False),
        (True, False, [IN_STEPS], False),
        (False, True, [IN_STEPS], False),
    ],
)
async def test_steps_are_drawn_on_a_terminal_only(
    terminal: bool, wanted: bool, found: Sequence[Release], drawn: bool
) -> None:
    trees, out = on(terminal, wanted=wanted)
    async with trees.drawn_again():
        assert await trees.draw(found) is drawn
        text = out.getvalue()
    assert ("Steps of deployment.apps/web" in text) is drawn
    assert ("NAME" in text) is drawn


async def test_release_whose_steps_are_over_is_still_drawn_in_its_place() -> None:
    trees, out = on(True)
    async with trees.drawn_again():
        assert await trees.draw([IN_STEPS])
        assert await trees.draw([WHOLE]), "the table would be printed below the drawing"
    assert out.getvalue().count("Steps of") == 1


async def test_steps_are_not_read_if_nobody_named_the_workload(capsys: pytest.CaptureFixture[str]) -> None:
    trees, _ = on(False, wanted=False)
    await trees.whole([IN_STEPS])
    assert capsys.readouterr().out == ""
