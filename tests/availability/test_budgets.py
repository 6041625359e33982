"""Budgets hold while all their pods are disrupted at once, and gatekeepers and the leader are killed."""

from pathlib import Path

import pytest

from bench.questions.budgets import Plan, measure

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("availability")]

PLAN = Plan(budgets=5, pods=5, seconds=10)


async def test_admitted_disruptions_overdraw_no_budget_while_gatekeepers_and_leader_are_killed(
    cluster: Path, tmp_path: Path
) -> None:
    result = await measure(cluster, tmp_path, PLAN, print)

    print(result)
    assert result.wrong == ()
    assert sum("between write and answer" in each for each in result.killed) >= 6
    assert result.refused > result.admitted, "more must be asked for than the budgets allow"
    assert result.replay.disrupted > PLAN.budgets, "slots must come back and be used again"
    assert result.replay.unasked == 0, "the load must know why each pod became unavailable"
    assert result.replay.most == 1, "the budgets must be used up"
