"""Releases whose end finds no ready pod of any version: the last version that passed is restored, once in a row."""

import pytest

from altershield.api.ops_config import Settings
from altershield.api.policy import AppliedPolicy, OnNothingServes, OnStartFailure

from .scenarios import (
    FAILED,
    ROLLED_BACK,
    RUNNING,
    SUCCESS,
    SUSPEND,
    is_over,
    is_restored,
    release_bad,
    second_release,
    serving,
)
from .world import SimPod, World


def crashed_after_success(kind: str, replicas: int = 1, policy: AppliedPolicy | None = None) -> World:
    """v1 passed. v2 passed too, replaced all pods, and crashes before it has settled."""
    world = serving(kind, replicas)
    if policy is not None:
        world.policy = policy
    world.begin("v2")
    old, pods = world.of("v1"), world.make(replicas)
    world.up(*pods)
    world.remove(*old)
    world.run(20)
    assert world.state() == SUCCESS
    crash(world, *pods)
    return world


def replaced_by_bad(kind: str, policy: AppliedPolicy | None = None) -> World:
    """The only pod is replaced by one that never comes up, as with `maxSurge: 0`."""
    world = serving(kind, 1)
    if policy is not None:
        world.policy = policy
    release_bad(world, "v2")
    world.remove(*world.of("v1"))
    return world


def crash(world: World, *pods: SimPod) -> None:
    for pod in pods:
        pod.crash(world.t)
    world.touch(*pods)


def refusal(world: World) -> str:
    found = world.condition(ROLLED_BACK)
    return found.message.partition("; not rolled back: ")[2] if found is not None else ""


def test_only_pod_that_never_comes_up_leads_back_to_the_last_version_that_passed(kind: str) -> None:
    world = replaced_by_bad(kind)
    world.run(125)
    assert is_restored(world)
    assert world.said(ROLLED_BACK, "v2") == ("True", "PodNotUp")
    world.remove(*world.of("v2"))
    world.make_up(1)
    world.run(300)
    assert (world.state("v1"), world.state("v2"), world.suspended) == (SUCCESS, FAILED, False)


@pytest.mark.parametrize("replicas", [1, 3, 10])
def test_pods_that_all_crash_after_success_lead_back_to_the_last_version_that_passed(kind: str, replicas: int) -> None:
    world = crashed_after_success(kind, replicas)
    world.run(125)
    assert is_restored(world)


def test_pods_that_crash_after_success_while_another_one_serves_suspend_the_release(kind: str) -> None:
    world = serving(kind, 3)
    pods = world.roll_out("v2")
    world.begin("v3")
    pods = world.make_up(3)
    world.remove(*world.of("v2"))
    world.run(20)
    assert world.state() == SUCCESS
    crash(world, *pods[:2])
    world.run(125)
    assert (world.image, world.state()) == ("v3", SUSPEND)
    assert refusal(world) == "no pod of an older version is ready"


def test_ready_pod_that_a_person_failed_serves(kind: str) -> None:
    world, (first, second) = second_release(kind, 2, replicas=2)
    world.up(first, second)
    world.remove(*world.of("v1"))
    world.run(20)
    assert world.judge(first, "unpass")
    crash(world, second)
    world.run(125)
    assert (world.image, world.state()) == ("v2", SUSPEND)
    assert refusal(world) == "no pod of an older version is ready"


def test_release_that_is_suspended_is_rolled_back_when_its_last_pods_break_too(kind: str) -> None:
    world, pods = second_release(kind, 3)
    world.up(*pods)
    world.remove(*world.of("v1"))
    world.run(20)
    crash(world, *pods[:2])
    world.run(125)
    assert (world.image, world.state()) == ("v2", SUSPEND)
    crash(world, pods[2])
    world.run(125)
    assert is_restored(world)


def test_version_that_was_restored_is_suspended_if_it_does_not_come_up_either(kind: str) -> None:
    world = serving(kind, 1, "v0")
    world.roll_out("v1")
    release_bad(world, "v2")
    world.remove(*world.of("v1"))
    world.run(125)
    assert is_restored(world)
    world.remove(*world.of("v2"))
    (pod,) = world.make(1)
    world.touch(pod.wait_for_image())
    world.die()
    world.run(300)
    assert (world.image, world.state(), world.suspended) == ("v1", SUSPEND, True)
    assert refusal(world) == "no pod of any version serves, and this version was itself restored by a rollback"


def test_version_that_was_restored_is_suspended_if_it_comes_up_and_crashes(kind: str) -> None:
    world = serving(kind, 1, "v0")
    world.roll_out("v1")
    release_bad(world, "v2")
    world.remove(*world.of("v1"))
    world.run(125)
    world.remove(*world.of("v2"))
    (pod,) = world.make_up(1)
    world.run(20)
    crash(world, pod)
    world.run(300)
    assert (world.image, world.state()) == ("v1", SUSPEND)


def test_release_after_a_restored_version_is_rolled_back_again(kind: str) -> None:
    world = replaced_by_bad(kind)
    world.run(125)
    world.remove(*world.of("v2"))
    world.make_up(1)
    world.run(300)
    release_bad(world, "v3")
    world.remove(*world.of("v1"))
    world.run(125)
    assert is_restored(world)


def test_first_release_is_suspended_because_no_version_has_passed(kind: str) -> None:
    world = World(kind, replicas=1)
    release_bad(world, "v1")
    world.run(125)
    assert (world.image, world.state()) == ("v1", SUSPEND)
    assert refusal(world) == "no older version has passed verification"


def test_policy_suspends_instead(kind: str) -> None:
    policy = AppliedPolicy(namespace="shop", name="web", on_nothing_serves=OnNothingServes.SUSPEND)
    world = replaced_by_bad(kind, policy)
    world.run(125)
    assert (world.image, world.state()) == ("v2", SUSPEND)
    assert refusal(world) == (
        "no pod of any version serves, and the DefensePolicy shop/web has onNothingServes: suspend"
    )


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet"])
@pytest.mark.parametrize("on", [None, OnNothingServes.ROLLBACK, OnNothingServes.SUSPEND])
def test_other_strategies_are_rolled_back_only_if_the_policy_says_so(kind: str, on: OnNothingServes | None) -> None:
    world = replaced_by_bad(kind, AppliedPolicy(namespace="shop", name="web", on_nothing_serves=on))
    world.rolling = False
    world.run(125)
    assert is_restored(world) is (on is OnNothingServes.ROLLBACK)


@pytest.mark.parametrize("on", [None, OnNothingServes.ROLLBACK])
def test_on_start_failure_suspends_unless_the_policy_says_otherwise_if_nothing_serves(
    kind: str, on: OnNothingServes | None
) -> None:
    policy = AppliedPolicy(namespace="shop", name="web", on_start_failure=OnStartFailure.SUSPEND, on_nothing_serves=on)
    world = replaced_by_bad(kind, policy)
    world.run(125)
    assert is_restored(world) is (on is not None)


def test_setting_rollback_switches_it_off(kind: str) -> None:
    world = replaced_by_bad(kind)
    world.settings = Settings(rollback=False)
    world.run(125)
    assert (world.image, world.state()) == ("v2", SUSPEND)


def test_rollback_is_withdrawn_if_a_pod_comes_up_before_the_write(kind: str) -> None:
    world = replaced_by_bad(kind)
    world.write_refused = "denied by policy"
    world.run(125)
    world.up(*world.of("v2"))
    world.run(20)
    world.write_refused = ""
    world.run(20)
    assert (world.image, world.state()) == ("v2", SUCCESS)
    assert "RollbackWithdrawn" in world.reasons


def test_pod_that_is_ready_between_two_crashes_does_not_serve(kind: str) -> None:
    world = replaced_by_bad(kind)
    (pod,) = world.of("v2")
    for _ in range(30):
        world.up(pod)
        world.run(3)
        crash(world, pod)
        world.run(6)
        if is_over(world, "v2"):
            break
    assert is_restored(world)


def test_running_release_with_pods_left_to_come_up_is_not_rolled_back_early(kind: str) -> None:
    world = replaced_by_bad(kind)
    world.run(115)
    assert (world.image, world.state()) == ("v2", RUNNING)
