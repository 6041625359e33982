"""What the steps of a policy that only observes or warns would have done."""

from typing import Any

import msgspec
import pytest

from altershield.api.change_workload import WorkloadState
from altershield.api.condition_types import ConditionType
from altershield.api.policy import Mode
from altershield.api.rollout import Rollout, Step
from reconciler.cluster.release import read
from reconciler.releases.decisions.history import record
from tests.unit.reconciler.releases.policies import policy, released, text
from tests.unit.reconciler.releases.world import World

ROLLOUT = Rollout(steps=(Step(1, 60), Step("50%", 60)))
OBSERVES: dict[str, Any] = {"mode": Mode.OBSERVE, "rollout": ROLLOUT}


def outcome(world: World) -> tuple[str, str, str]:
    """Status, reason and message of the condition, without the version."""
    found = world.condition(ConditionType.STEPS_OBSERVED)
    assert found is not None
    return found.status, found.reason, found.message.partition(": with mode enforce, the release would ")[2]


@pytest.mark.parametrize("mode", [Mode.OBSERVE, Mode.WARN])
def test_release_that_succeeds_would_have_passed(mode: Mode) -> None:
    world, _ = released("Deployment", pods=3, mode=mode, rollout=ROLLOUT)
    assert world.state() == WorkloadState.SUCCESS
    assert outcome(world) == ("True", "WouldPass", "have passed its 3 steps, first with 1, 2 of 3 pods")
    assert text(world, "StepsObserved") == world.message(ConditionType.STEPS_OBSERVED)
    assert world.reasons.count("StepsObserved") == 1
    assert not world.status().rollout.phase
    assert "StepsNotPossible" not in world.reasons


def test_first_pod_that_fails_would_have_stopped_the_first_step() -> None:
    world, (first,) = released("Deployment", pods=1, **OBSERVES)
    world.make_up(2)
    world.run(30)
    assert world.judge(first, "unpass")
    world.run(10)
    where = "have stopped at step 1 of 3 (1 of 3 pods); 3 of 3 pods had the version when it failed"
    assert outcome(world) == ("False", "WouldStop", where)
    assert not world.suspended


def test_pods_that_passed_are_before_one_of_the_same_second_that_fails() -> None:
    world, pods = released("Deployment", pods=2, **OBSERVES)
    assert world.judge(pods[1], "unpass")
    world.run(10)
    assert outcome(world)[1:] == (
        "WouldStop", "have stopped at step 2 of 3 (2 of 3 pods); 2 of 3 pods had the version when it failed",
    )  # fmt: skip


def test_failure_after_all_soaks_would_have_come_in_the_last_step() -> None:
    world, pods = released("Deployment", pods=3, settle_seconds=1000, **OBSERVES)
    world.run(200)
    assert world.judge(pods[0], "unpass")
    world.run(10)
    assert world.state() == WorkloadState.SUSPEND
    assert outcome(world)[:2] == ("False", "WouldFailLast")
    assert world.reasons.count("StepsObserved") == 2, "it had succeeded before"


def test_pods_that_never_come_up_would_have_stopped_the_first_step() -> None:
    world, _ = released("Deployment", pods=3, up=False, **OBSERVES)
    world.run(400)
    assert world.state() == WorkloadState.SUSPEND
    assert outcome(world)[1:] == (
        "WouldStop", "have stopped at step 1 of 3 (1 of 3 pods); 3 of 3 pods had the version when it failed",
    )  # fmt: skip


def test_release_that_could_not_be_made_in_steps_says_why() -> None:
    world = World("Deployment")
    world.roll_out("v1")
    world.policy, world.own_annotations = policy(**OBSERVES), {"flagger.app/config-tracking": "1"}
    world.roll_out("v2")
    assert outcome(world)[:2] == ("False", "StepsNotPossible")
    assert text(world, "StepsObserved").endswith("the release would be made without steps: Flagger releases it")


def test_selected_nodes_of_a_daemonset_are_the_first_step() -> None:
    world = World("DaemonSet", replicas=3)
    world.roll_out("v1")
    world.surge = 0
    world.policy = policy(mode=Mode.OBSERVE, rollout=Rollout(steps=(Step(soak_seconds=60, node_selector={"a": "b"}),)))
    world.begin("v2")
    pods = world.make_up(3)
    for number, pod in enumerate(pods):
        pod.node = f"node-{number}"
    world.touch(*pods)
    world.labels_of_nodes = {"node-2": {"a": "b"}}
    world.run(30)
    assert world.judge(pods[2], "unpass")
    world.run(10)
    assert outcome(world)[1:] == (
        "WouldStop", "have stopped at step 1 of 2 (1 of 3 pods); 3 of 3 pods had the version when it failed",
    )  # fmt: skip


def test_history_keeps_what_the_steps_would_have_done() -> None:
    world, _ = released("Deployment", pods=3, **OBSERVES)
    found = record(read(msgspec.json.encode(world.stored())), world.status(), ())
    assert found.observed == world.message(ConditionType.STEPS_OBSERVED) != ""
