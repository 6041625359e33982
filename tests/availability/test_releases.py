"""Releases whose reconciler is killed in their midst, with two others standing by."""

from pathlib import Path

import pytest

from bench.availability.releases import measure

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300), pytest.mark.xdist_group("availability")]

KILLS = 10


async def test_every_release_ends_correctly_and_once_while_leaders_are_killed(cluster: Path, tmp_path: Path) -> None:
    result = await measure(cluster, tmp_path, KILLS, print)

    print(result)
    assert result.wrong == ()
    assert result.rollbacks == KILLS
    assert result.in_mid_release >= KILLS / 2, "on a busy machine some releases are over before the kill"
    assert result.lost_events <= KILLS, "of each leader at most the last one"
