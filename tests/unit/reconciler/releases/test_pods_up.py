"""When a pod is up, and when a release succeeds."""

from collections.abc import Callable

import msgspec
import pytest

from altershield.api.pod_verdicts import PodInfo

from .scenarios import NO_REPLICAS, RUNNING, SUCCESS, SUSPEND, VERIFIED, first_release, first_release_up
from .world import SimPod, infos


def test_release_with_pods_not_up_is_running_and_its_verification_in_progress(kind: str) -> None:
    world = first_release(kind)
    assert world.said(NO_REPLICAS) == ("", ""), "the release waits for its pods"
    world.make(1)
    world.rest()
    assert world.state() == RUNNING
    assert world.said(VERIFIED) == ("Unknown", "InProgress")
    assert world.message(VERIFIED) == "0 of 3 pods passed, 3 coming up"


def test_pod_is_up_after_it_is_ready_for_the_observation_time(kind: str) -> None:
    world, pods = first_release_up(kind)
    world.run(9)
    assert (world.state(), len(world.batches)) == (RUNNING, 0)
    world.run(1)
    assert (world.state(), len(world.batches)) == (SUCCESS, 3)
    assert {each.spec.pod_infos[0].uid for each in world.batches.values()} == {pod.uid for pod in pods}


def test_pod_is_up_after_min_ready_seconds_plus_the_observation_time(kind: str) -> None:
    world = first_release(kind)
    world.min_ready = 30
    world.make_up(3)
    world.run(39)
    assert world.state() == RUNNING
    world.run(1)
    assert world.state() == SUCCESS


def test_raised_min_ready_seconds_apply_to_pods_that_are_already_ready(kind: str) -> None:
    world = first_release(kind)
    world.make_up(3)
    world.run(5)
    world.min_ready = 30
    world.run(30)
    assert world.state() == RUNNING
    world.run(5)
    assert world.state() == SUCCESS


def test_lowered_min_ready_seconds_apply_to_pods_that_are_already_ready(kind: str) -> None:
    world = first_release(kind)
    world.min_ready = 100
    world.make_up(3)
    world.run(50)
    world.min_ready = 0
    world.rest()
    assert world.state() == SUCCESS


def test_release_with_unfinished_batches_is_running_until_a_person_passes_the_pods(kind: str) -> None:
    world = first_release(kind)
    world.checked = False
    pods = world.make_up(3)
    world.run(80)
    assert (world.state(), len(world.batches)) == (RUNNING, 3)
    assert infos(world.status().defense_checking_pods) == sorted(pod.name for pod in pods)
    for pod in pods:
        world.judge(pod, "pass")
    world.rest()
    assert world.state() == SUCCESS, "a verdict of a person counts immediately"


def test_verdict_of_a_pod_is_taken_from_its_newest_batch(kind: str) -> None:
    """A pod has two batches if it was overdue, a person passed it, and another leader verified it again."""
    world = first_release(kind)
    pods = world.roll_out("v1")
    old = next(each for each in world.batches.values() if each.spec.pod_infos[0].uid == pods[0].uid)
    name = old.metadata.name.rpartition("--x--")[0] + "--x--9"
    metadata = msgspec.structs.replace(old.metadata, name=name)
    world.batches[name] = msgspec.structs.replace(old, metadata=metadata)
    world.die()
    results = (PodInfo(pods[0].name, verdict="unpass"),)
    world._store_batch(old, msgspec.structs.replace(old.status, pod_results=results))
    world.run(20)
    assert world.state() == SUCCESS
    world.fail(pods[0])
    assert world.state() == SUSPEND


def test_ready_pod_is_up_immediately_if_the_observation_time_is_zero(kind: str) -> None:
    world = first_release(kind, observe=0)
    world.make_up(3)
    world.rest()
    assert world.state() == SUCCESS


@pytest.mark.parametrize(("restarts", "seconds"), [(0, 10), (1, 20), (2, 40), (3, 80), (4, 120), (30, 120)])
def test_observation_time_doubles_per_restart_up_to_the_start_timeout(kind: str, restarts: int, seconds: int) -> None:
    world = first_release(kind)
    pods = world.make(3)
    pods[0].restarts = restarts
    world.up(*pods)
    world.run(seconds - 1)
    assert world.state() == RUNNING
    world.run(1)
    assert world.state() == SUCCESS


def test_restarted_pod_is_observed_although_the_observation_time_is_zero(kind: str) -> None:
    world = first_release(kind, observe=0)
    pods = world.make(3)
    pods[0].restarts = 2
    world.up(*pods)
    world.run(3)
    assert world.state() == RUNNING
    world.run(1)
    assert world.state() == SUCCESS


def test_pod_that_crashes_one_second_after_ready_does_not_make_the_release_succeed(kind: str) -> None:
    world, pods = first_release_up(kind)
    world.run(1)
    world.touch(pods[0].crash(world.t))
    world.run(60)
    assert world.state() == RUNNING
    world.up(pods[0])
    world.run(19)
    assert world.state() == RUNNING, "after one restart, the observation time is doubled"
    world.run(1)
    assert world.state() == SUCCESS


@pytest.mark.parametrize("how", ["restarts", "ready_at"])
def test_observation_restarts_if_restart_count_or_ready_time_changed_between_reads(kind: str, how: str) -> None:
    world, pods = first_release_up(kind)
    world.run(9)
    pods[0].ready_at = world.t
    pods[0].restarts += how == "restarts"
    world.touch(pods[0])
    world.run(9)
    assert world.state() == RUNNING
    world.run(11)
    assert world.state() == SUCCESS


@pytest.mark.parametrize(
    "spoil",
    [
        lambda pod, t: pod.crash(t),
        lambda pod, t: pod.crash(t, "OOMKilled", 137),
        lambda pod, t: pod.lose_readiness(t),
    ],
    ids=["crash", "OOM", "readiness"],
)
def test_release_does_not_succeed_while_a_passed_pod_is_down(
    kind: str, spoil: Callable[[SimPod, float], SimPod]
) -> None:
    """Every pod was up and passed, but not all pods at the same time."""
    world = first_release(kind)
    pods = world.make(3)
    world.up(*pods[:2])
    world.run(20)
    assert len(world.batches) == 2
    world.touch(spoil(pods[0], world.t))
    world.up(pods[2])
    world.run(60)
    assert world.state() == RUNNING
    assert [down.uid for down in world.status().down_pods] == [pods[0].uid]
    world.up(pods[0])
    world.run(25)
    assert world.state() == SUCCESS
    assert world.status().down_pods == ()


def test_pod_on_a_not_ready_node_is_not_up(kind: str) -> None:
    world = first_release(kind)
    world.make_up(3)
    world.lose_node("node-1")
    world.run(60)
    assert world.state() == RUNNING
    world.find_node("node-1")
    world.run(10)
    assert world.state() == SUCCESS


def test_release_with_fewer_pods_than_replicas_does_not_succeed(kind: str) -> None:
    world = first_release(kind)
    world.make_up(2)
    world.run(20)
    assert (world.state(), len(world.batches)) == (RUNNING, 2)
    world.make_up(1)
    world.run(10)
    assert world.state() == SUCCESS


@pytest.mark.parametrize("how", ["terminating", "evicted"])
def test_terminating_and_evicted_pods_do_not_count_as_up(kind: str, how: str) -> None:
    world, pods = first_release_up(kind)
    world.run(5)
    if how == "terminating":
        pods[0].deleting = True
    else:
        pods[0].phase = "Failed"
    world.touch(pods[0])
    world.run(20)
    assert (world.state(), len(world.batches)) == (RUNNING, 2)


def test_release_succeeds_only_after_the_workload_controller_observed_the_spec(kind: str) -> None:
    world = first_release(kind)
    world.make_up(3)
    world.run(5)
    world.observed = False
    world.run(20)
    assert world.state() == RUNNING
    world.observed = True
    world.rest()
    assert world.state() == SUCCESS


@pytest.mark.parametrize("crash", [SimPod.crash, SimPod.restart])
def test_release_does_not_succeed_if_a_passed_pod_crashed_and_the_watch_is_late(
    kind: str, crash: Callable[[SimPod, float], SimPod]
) -> None:
    world = first_release(kind, replicas=2)
    first, second = world.make(2)
    world.up(first)
    world.run(11)
    world.up(second)
    world.run(5)
    crash(first, world.t)
    world.run(6)
    assert world.state() == RUNNING


def test_pod_that_was_not_assessed_yet_does_not_replace_one_that_is_gone(kind: str) -> None:
    """An event came after the groups were brought up to date."""
    world = first_release(kind)
    pods = world.roll_out("v1")
    world.touch(pods[0])
    world.rest()
    assert world.groups is not None
    world.remove(pods[0])
    world.make(1)
    assert (len(world.groups), world.groups.reached) == (2, 2)
    world.rest()
    assert (len(world.groups), world.groups.reached) == (3, 3)
