"""Constant releases while one of three gatekeepers hangs."""

from pathlib import Path

import pytest

from bench.availability.kubelet import Probe
from bench.questions.hung import HUNG, OUT, RESTARTED, Plan, measure

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("availability")]

PLAN = Plan(
    after=3,
    rate=10,
    readiness=Probe(period=1, timeout=1, failures=2),
    liveness=Probe(period=1, timeout=1, failures=5),
    grace=1,
)


async def test_releases_fail_only_until_the_hung_gatekeeper_is_not_ready_and_only_its_calls(
    cluster: Path, tmp_path: Path
) -> None:
    result = await measure(cluster, tmp_path, PLAN, print)

    print(result)
    assert result.wrong == ()
    phases = {phase.name: phase for phase in result.phases}
    assert phases[HUNG].seconds < PLAN.readiness.longest + 3
    assert phases[HUNG].hung >= 1, "the gatekeeper must hang under load"
    assert phases[OUT].requests > PLAN.rate
    assert phases[OUT].failures == phases[RESTARTED].failures == ()
