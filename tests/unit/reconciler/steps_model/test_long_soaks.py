"""Steps that begin long after the last pod came up, on the simulated cluster."""

import pytest

from altershield.api.change_workload import WorkloadState
from altershield.api.rollout import Rollout, Step
from tests.unit.reconciler.releases.world import KINDS

from .cluster import spec_of, with_second_version

ROLLOUT = Rollout(steps=(Step(1, 300), Step("75%", 300)))


@pytest.mark.parametrize("kind", KINDS)
def test_pods_of_a_step_have_their_time_from_its_begin(kind: str) -> None:
    """Otherwise each step after a soak would be stalled at once, and a pod that is refused would fail the release."""
    own = spec_of(kind, 1, 0, 0, parallel=False)
    world = with_second_version(kind, own, replicas=4, rollout=ROLLOUT, observe=1, seconds=200.0)
    world.go_on(1000.0)
    assert world.state() == WorkloadState.SUCCESS
    assert "ReleaseStalled" not in world.reasons
    assert "StepHeld" not in world.reasons, "no pod takes long to end"
