"""An upgrade of the API servers, the loss of a zone, and evictions by nodes that lack memory."""

from pathlib import Path

import pytest

from altershield.workloads.pods import Fault
from bench.availability.kubelet import Probe
from bench.questions.disruptions import UPGRADED, Plan, measure

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("availability")]

PLAN = Plan(marked=4, after=1, rate=3, readiness=Probe(period=1, timeout=3, failures=2), webhook_seconds=5)


async def test_admissions_and_verdicts_are_right_after_api_server_upgrade_zone_loss_and_evictions(
    cluster: Path, tmp_path: Path
) -> None:
    result = await measure(cluster, tmp_path, PLAN, print)

    print(result)
    assert result.wrong == ()
    phases = {phase.name: phase for phase in result.phases}
    assert phases[UPGRADED].failures == (), "gatekeepers must answer from their caches"
    assert result.relists == 0, "watches must resume without lists"
    assert sum(phase.hung for phase in result.phases) >= 1, "the zone must be lost under load"
    assert result.stalled[0] == Fault.NODE_NOT_READY
    assert result.evictions > 1
