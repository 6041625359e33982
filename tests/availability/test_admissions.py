"""Constant releases through three gatekeepers, while the gatekeepers are replaced, killed, and get new certificates."""

from pathlib import Path

import pytest

from bench.availability.installation import installed
from bench.availability.kubelet import Probe
from bench.availability.load import UNGATED, Load
from bench.questions.admissions import KILLED, Plan, measure

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("availability")]

PLAN = Plan(phase=4, rate=10, shutdown_delay=4, min_ready=0.5, readiness=Probe(period=0.5, timeout=3, failures=2))


async def test_no_release_fails_while_gatekeepers_are_replaced_killed_and_get_new_certificates(
    cluster: Path, tmp_path: Path
) -> None:
    result = await measure(cluster, tmp_path, PLAN, print)

    print(result)
    assert result.wrong == ()
    phases = {phase.name: phase for phase in result.phases}
    for phase in phases.values():
        assert phase.requests >= PLAN.phase * PLAN.rate - 1, "the rate must not depend on the response times"
    assert phases["rolled"].happened == "3 pods replaced"
    assert phases[KILLED].happened == "3 gatekeepers killed"


async def test_a_release_without_its_version_counts_as_a_failure(cluster: Path, tmp_path: Path) -> None:
    async with (
        installed(cluster, tmp_path) as installation,
        Load.connected(installation.admin, installation.name, PLAN.rate) as load,
    ):
        with pytest.raises(RuntimeError, match=UNGATED):  # no gatekeeper runs
            await load.prepare()
