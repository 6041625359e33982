"""Releases that are not made in steps although their policy has some."""

from altershield.api.change_workload import WorkloadState
from altershield.api.condition_types import ConditionType
from altershield.api.rollout import Rollout
from tests.unit.reconciler.releases.policies import released

ROLLOUT = Rollout(pods=(1,), soak_seconds=0)


def test_release_that_has_succeeded_is_not_said_to_be_without_steps() -> None:
    """The version before a release in steps is released again: what shows that it went back is deleted after it has
    succeeded."""
    world, _ = released("Deployment", "v1", pods=3, rollout=ROLLOUT)
    assert world.state() == WorkloadState.SUCCESS
    assert world.reasons.count("StepsNotPossible") == 1
    kept = tuple(each for each in world.status().conditions if each.type != ConditionType.PROGRESSING)
    world.edit_status(conditions=kept)
    world.run(10)
    assert world.reasons.count("StepsNotPossible") == 1
