"""Releases during which the leading reconciler is killed, with two followers."""

from pathlib import Path

import pytest

from bench.questions.releases import measure

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("availability")]

KILLS = 4
"""The third one happens during a rollback."""


async def test_every_release_ends_correctly_and_once_while_leaders_are_killed(cluster: Path, tmp_path: Path) -> None:
    result = await measure(cluster, tmp_path, KILLS, print)

    print(result)
    assert result.wrong == ()
    assert result.rollbacks == KILLS
    assert result.in_mid_release >= KILLS / 2, "on a busy machine some releases end before the kill"
    assert result.lost_events == 0
