"""When a successful release settles, and what happens if a pod breaks before that."""

import pytest

from altershield.api.condition_types import Giver

from .scenarios import (
    FAILED,
    SETTLED,
    STALLED,
    SUCCESS,
    SUSPEND,
    VERIFIED,
    first_release,
    first_release_up,
    is_restored,
    second_release,
)
from .world import World


def test_successful_release_settles_after_the_start_timeout(kind: str) -> None:
    world = first_release(kind)
    world.make_up(3)
    world.run(10)
    assert world.said(SETTLED) == ("False", "Observing")
    world.run(119)
    assert world.said(SETTLED)[0] == "False"
    world.run(2)
    assert world.said(SETTLED) == ("True", "StayedUp")
    assert world.rest() == 0


def test_pod_that_breaks_before_settling_delays_settling(kind: str) -> None:
    world, pods = first_release_up(kind)
    world.run(100)
    world.touch(pods[0].lose_readiness(world.t))
    world.rest()
    assert world.said(SETTLED) == ("False", "PodsDown")
    world.run(30)
    world.up(pods[0])
    world.run(10)
    assert world.said(SETTLED) == ("False", "PodsDown"), "after one crash, the observation time is doubled"
    world.run(10)
    assert world.said(SETTLED) == ("False", "Observing")
    world.run(118)
    assert world.said(SETTLED)[0] == "False"
    world.run(3)
    assert world.said(SETTLED)[0] == "True"


def test_pod_down_for_the_start_timeout_before_settling_causes_a_rollback(kind: str) -> None:
    world, pods = second_release(kind, 3)
    world.up(*pods)
    world.remove(*world.of("v1"))
    world.run(60)
    assert world.state() == SUCCESS
    world.make_up(1, "v1")
    world.touch(pods[0].crash(world.t))
    world.run(119)
    assert world.state("v2") == SUCCESS
    world.run(2)
    assert is_restored(world)
    assert world.state("v2") == FAILED
    assert "RolledBack" in world.reasons


def test_pod_down_for_the_start_timeout_before_settling_suspends_a_first_release(kind: str) -> None:
    world, pods = first_release_up(kind)
    world.run(60)
    world.touch(pods[0].crash(world.t, "OOMKilled", 137))
    world.run(121)
    assert (world.state(), world.suspended) == (SUSPEND, True)
    assert world.said(VERIFIED) == ("False", Giver.HEALTH)
    (failed,) = world.status().defense_check_fail_pods
    assert failed.uid == pods[0].uid
    assert failed.message.startswith(
        "not up any more (it was up until 120 s ago): container main: CrashLoopBackOff (exit code 137): OOMKilled"
    )


def test_pod_that_crashes_after_settling_does_not_change_the_release(kind: str) -> None:
    world = first_release(kind)
    pods = world.roll_out("v1")
    world.touch(pods[0].crash(world.t))
    world.run(1000)
    assert (world.state(), world.suspended) == (SUCCESS, False)
    assert world.status().down_pods == ()
    assert world.said(STALLED) == ("", "")


def test_successful_release_scaled_to_zero_does_not_settle(kind: str) -> None:
    """If it is scaled up again, a crash still ends the release."""
    world, pods = first_release_up(kind)
    world.run(20)
    world.replicas = 0
    world.remove(*pods)
    world.run(1000)
    assert (world.state(), world.said(SETTLED)) == (SUCCESS, ("False", "PodsDown"))
    assert world.rest() == 0
    world.replicas = 3
    pods = world.make_up(3)
    world.run(60)
    world.touch(pods[0].crash(world.t))
    world.run(121)
    assert (world.state(), world.suspended) == (SUSPEND, True)


def test_successful_release_does_not_settle_while_a_new_leader_observes_its_pods(kind: str) -> None:
    """A new leader does not know whether the pods stayed up."""
    world, _ = first_release_up(kind)
    world.run(10)
    world.advance(119)
    world.die()
    world.advance(2)
    world.rest()
    assert world.said(SETTLED) == ("False", "Observing"), "the reason is not PodsDown: no pod is known to have broken"
    world.run(10)
    assert world.said(SETTLED)[0] == "True"


@pytest.mark.parametrize("breaks", ["crashes", "restarts", "loses its node"])
def test_pod_that_breaks_while_a_new_leader_observes_it_delays_settling(kind: str, breaks: str) -> None:
    world, pods = first_release_up(kind)
    world.run(60)
    world.die()
    world.rest()
    if breaks == "crashes":
        world.touch(pods[0].crash(world.t))
    elif breaks == "restarts":
        world.touch(pods[0].restart(world.t))
    else:
        pods[0].node = "node-9"
        world.lose_node("node-9")
    world.rest()
    assert world.said(SETTLED) == ("False", "PodsDown")
    if breaks == "loses its node":
        world.find_node("node-9")
    world.up(pods[0])
    world.run(21)
    assert world.said(SETTLED) == ("False", "Observing" if breaks == "loses its node" else "PodsRestarted")
    world.run(105)
    assert world.said(SETTLED)[0] == "False"


def test_successful_release_does_not_settle_until_replacement_pods_stay_up(kind: str) -> None:
    """The broken pods were deleted, and their replacements were not up yet."""
    world, pods = first_release_up(kind)
    world.run(20)
    world.touch(*[pod.crash(world.t) for pod in pods])
    world.rest()
    world.remove(*pods)
    pods = world.make(3)
    world.run(100)
    assert world.said(SETTLED) == ("False", "PodsDown")
    world.up(*pods)
    world.run(60)
    assert world.said(SETTLED) == ("False", "Observing")
    world.run(60)
    assert world.said(SETTLED) == ("False", "Observing"), "the pods were not up for the whole start timeout"
    world.run(20)
    assert world.said(SETTLED)[0] == "True"


def test_successful_release_does_not_settle_if_all_its_pods_were_replaced(kind: str) -> None:
    world, pods = first_release_up(kind)
    world.run(100)
    world.remove(*pods)
    pods = world.make_up(3)
    world.run(60)
    assert world.said(SETTLED) == ("False", "Observing"), "no pod was up for the whole start timeout"
    world.touch(pods[0].crash(world.t))
    world.run(121)
    assert (world.state(), world.suspended) == (SUSPEND, True)


def test_short_lived_extra_pods_do_not_delay_settling(kind: str) -> None:
    world, _ = first_release_up(kind)
    world.run(10)
    for _ in range(5):
        more = world.make_up(2)
        world.run(30)
        world.remove(*more)
    world.rest()
    assert world.said(SETTLED)[0] == "True"


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "CloneSet"])
def test_added_pod_without_a_node_does_not_keep_a_release_from_settling(kind: str) -> None:
    world = World(kind, replicas=3)
    pods = world.roll_out("v1")
    world.scale(4)
    (more,) = world.make(1)
    world.touch(more.find_no_node())
    world.run(300)
    assert world.said(SETTLED)[0] == "True"
    for pod in pods:
        world.touch(pod.lose_readiness(world.t))
    world.run(130)
    assert world.state() == SUCCESS, "pods that break after the release has settled do not end it"


def test_successful_release_does_not_settle_if_a_pod_crashed_and_the_watch_is_late(kind: str) -> None:
    world, pods = first_release_up(kind)
    world.run(60)
    pods[0].crash(world.t)
    world.run(71)
    assert (world.state(), world.said(SETTLED)) == (SUCCESS, ("False", "PodsDown"))
    world.run(121)
    assert world.state() == SUSPEND


@pytest.mark.parametrize("breaks", ["crashes", "restarts", "loses readiness"])
def test_pod_that_broke_and_came_back_while_no_reconciler_ran_delays_settling(kind: str, breaks: str) -> None:
    world, pods = first_release_up(kind)
    world.run(60)
    assert world.state() == SUCCESS
    world.die()
    world.advance(30)
    if breaks != "restarts":
        pods[0].crash(world.t) if breaks == "crashes" else pods[0].lose_readiness(world.t)
        world.advance(10)
    pods[0].restart(world.t) if breaks == "restarts" else pods[0].come_up(world.t)
    world.advance(10)
    world.rest()
    assert world.said(SETTLED) == ("False", "PodsDown")
    world.run(100)
    assert world.said(SETTLED) == ("False", "Observing" if breaks == "loses readiness" else "PodsRestarted")
    world.run(41)
    assert world.said(SETTLED)[0] == "True"
