"""Releases that are not made in steps although their policy has some."""

from altershield.api.change_workload import WorkloadState
from altershield.api.condition_types import ConditionType
from altershield.api.rollout import Rollout, Step
from tests.unit.reconciler.releases.policies import policy, released, text
from tests.unit.reconciler.releases.world import World

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


def test_event_and_condition_name_what_stands_against_steps() -> None:
    world, _ = released("Deployment", rolling=False, rollout=ROLLOUT)
    assert text(world, "StepsNotPossible").endswith(" is released without steps: its strategy is Recreate")
    world = World("DaemonSet")
    world.roll_out("v1")
    world.policy, world.own_annotations = policy(rollout=ROLLOUT), {"flagger.app/config-tracking": "1"}
    world.begin("v2")
    world.make(1)
    world.run(10)
    assert text(world, "StepsNotPossible").endswith(" is released without steps: Flagger releases it")
    assert world.message(ConditionType.PROGRESSING).endswith("Flagger releases it")


def test_policy_with_node_selectors_alone_has_no_step_for_other_kinds() -> None:
    only = Rollout(steps=(Step(node_selector={"pool": "canary"}),))
    world, _ = released("StatefulSet", rollout=only)
    assert "all steps of its policy have a nodeSelector and no pods" in text(world, "StepsNotPossible")


def test_release_without_an_obstacle_was_not_held_by_the_gatekeeper() -> None:
    world, _ = released("StatefulSet", rollout=ROLLOUT)
    assert "the gatekeeper could not hold it, or did not answer" in text(world, "StepsNotPossible")
