"""Pods that are up and down in turn, and pods that must not count as overdue: each case was decided wrongly once."""

from collections.abc import Callable

import msgspec
import pytest

from altershield.workloads.pods import Pod
from reconciler.releases.pods.health import CLOCK_SKEW

from .scenarios import RUNNING, STALLED, SUCCESS, SUSPEND, first_release, is_over, second_release, serving
from .world import SimPod, World, cluster


@pytest.mark.parametrize("replicas", [3, 10, 100])
def test_pods_that_lose_readiness_at_different_times_end_the_release(replicas: int) -> None:
    """Each pod is not ready for one second in twelve. Few pods are not ready at the same time."""
    world, pods = second_release("Deployment", replicas, replicas=replicas)
    world.up(*pods)
    world.remove(*world.of("v1")[replicas // 4 + 1 :])
    for second in range(900):
        world.run(1)
        for number, pod in enumerate(pods):
            phase = (second + number * 12 // min(replicas, 12)) % 12
            if phase == 11 and pod.ready:
                world.touch(pod.lose_readiness(world.t))
            elif phase == 0 and not pod.ready:
                world.up(pod)
        world.rest()
        if is_over(world, "v2"):
            return
    raise AssertionError(world.status())


def test_overdue_pod_that_is_ready_again_is_reported_with_its_last_error() -> None:
    world = first_release("Deployment", replicas=1)
    (pod,) = world.make(1)
    world.run(5)
    world.up(pod)
    world.run(3)
    world.touch(pod.crash(world.t, "OOMKilled", 137))
    world.run(100)
    world.advance(15)
    world.up(pod)
    world.rest()
    (failed,) = world.status().defense_check_fail_pods
    assert failed.message.startswith("not up after 123 s: container main: CrashLoopBackOff (exit code 137)"), (
        failed.message
    )


def restart_all(world: World, pods: list[SimPod], turn: int) -> None:
    world.run(60)
    for pod in pods:
        pod.restart(world.t)
    world.touch(*pods)


def restart_one(world: World, pods: list[SimPod], turn: int) -> None:
    world.run(8)
    world.touch(pods[turn % len(pods)].restart(world.t))


@pytest.mark.parametrize("restart", [restart_all, restart_one])
def test_containers_that_restart_within_a_second_repeatedly_end_the_release(
    restart: Callable[[World, list[SimPod], int], None],
) -> None:
    world, pods = second_release("Deployment", 3)
    world.up(*pods)
    world.run(5)
    for turn in range(120):
        restart(world, pods, turn)
        if is_over(world, "v2"):
            return
    raise AssertionError(world.status())


def end(world: World, pod: SimPod) -> None:
    pod.phase, pod.ready = "Failed", False
    world.touch(pod)
    world.rest()
    world.remove(pod)


def test_pods_that_fail_repeatedly_end_the_release_although_each_waits_for_a_node_first() -> None:
    world = serving("Deployment", 3)
    world.begin("v2")
    for _ in range(12):
        (pod,) = world.make(1)
        world.touch(pod.find_no_node())
        world.rest()
        pod.unscheduled, pod.node = False, "node-1"
        world.touch(pod)
        world.run(20)
        end(world, pod)
        if is_over(world, "v2"):
            return
    raise AssertionError(world.status())


@pytest.mark.parametrize("disrupted", [False, True])
def test_pods_that_fail_repeatedly_after_they_were_up_end_the_release_unless_evicted(
    disrupted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pod that the cluster evicts does not count."""

    class Evicted(SimPod):
        def read(self, api: float, kubelet: float) -> Pod:
            return msgspec.structs.replace(super().read(api, kubelet), disrupted=disrupted and self.phase == "Failed")

    monkeypatch.setattr(cluster, "SimPod", Evicted)
    world, (pod,) = second_release("Deployment", 1, replicas=1)
    world.up(pod)
    world.remove(*world.of("v1"))
    for _ in range(60):
        world.run(48)
        end(world, pod)
        (pod,) = world.make(1)
        world.run(2)
        world.up(pod)
        if is_over(world, "v2"):
            break
    assert is_over(world, "v2") is not disrupted


def test_pods_that_a_node_under_pressure_refuses_stall_the_release(kind: str) -> None:
    """The kubelet refuses each pod, and the workload's controller creates the next one."""
    world, (pod,) = second_release(kind)
    for _ in range(20):
        pod.refused = ("Evicted", "Pod was rejected: The node had condition: [DiskPressure]. ")
        end(world, pod)
        (pod,) = world.make(1)
        world.run(30)
    assert world.state() == RUNNING
    assert world.said(STALLED)[0] == "True"
    world.up(*world.make(2), pod)
    world.remove(*world.of("v1"))
    world.run(60)
    assert world.state() == SUCCESS


def test_pod_is_not_overdue_because_of_a_pod_that_failed_before_a_scale_down() -> None:
    """The failed pod was not replaced, because the workload was scaled down."""
    world, (first, second, third) = second_release("Deployment", 3, replicas=4)
    world.up(first, second)
    world.touch(third.find_no_node())
    world.run(5)
    (ended,) = world.make(1)
    world.run(3)
    end(world, ended)
    world.scale(3)
    world.run(400)
    world.scale(4)
    (late,) = world.make(1)
    world.rest()
    world.run(5)
    world.up(late)
    world.run(60)
    assert (world.image, world.state()) == ("v2", RUNNING)


@pytest.mark.parametrize("replicas", [2, 3])
def test_pod_after_a_scale_down_and_up_is_not_overdue_because_of_a_failed_pod(replicas: int) -> None:
    world, (first, ended) = second_release("Deployment", 2)
    world.up(first)
    world.run(90)
    end(world, ended)
    world.scale(1)
    world.run(20)
    world.scale(replicas)
    (pod,) = world.make(1)
    world.run(60)
    world.up(pod)
    world.run(20)
    assert world.image == "v2"


@pytest.mark.parametrize(("refusal", "seconds"), [("exceeded quota", 100), ("exceeded quota", 400), ("", 130)])
def test_replacement_pod_is_not_overdue_because_its_creation_was_delayed(refusal: str, seconds: int) -> None:
    world, (pod,) = second_release("Deployment", 1)
    world.run(30)
    world.refusal = refusal
    end(world, pod)
    world.run(seconds)
    world.refusal = ""
    (pod,) = world.make(1)
    world.run(60)
    world.up(pod)
    world.run(20)
    assert (world.image, world.state()) == ("v2", RUNNING)


def test_pod_that_came_up_in_time_is_not_overdue_if_the_watch_event_is_late() -> None:
    world = first_release("Deployment", replicas=1)
    (pod,) = world.make(1)
    world.run(5)
    pod.come_up(world.t + 60)
    world.advance(150)
    world.touch(pod)
    world.run(20)
    assert (world.state(), world.suspended) == (SUCCESS, False)


def test_pod_that_came_up_again_in_time_is_not_overdue_for_a_new_leader() -> None:
    """The status still lists the pod as down."""
    world, pods = second_release("Deployment", 2)
    world.up(*pods)
    world.run(15)
    world.touch(pods[0].crash(world.t))
    world.run(100)
    world.up(pods[0])
    assert [down.uid for down in world.status().down_pods] == [pods[0].uid]
    world.advance(15)
    world.die()
    world.advance(15)
    world.run(60)
    assert (world.image, world.state()) == ("v2", RUNNING)


def test_ready_pod_is_not_overdue_while_min_ready_seconds_exceed_the_start_timeout(kind: str) -> None:
    world = serving(kind, 3)
    world.min_ready = 300
    world.begin("v2")
    (pod,) = world.make(1)
    world.run(5)
    world.up(pod)
    world.run(180)
    assert "ReleaseStalled" not in world.reasons
    world.touch(pod.lose_readiness(world.t))
    world.run(100)
    assert (world.image, world.state()) == ("v2", RUNNING)
    world.run(30)
    assert world.image == "v1"


def test_pod_that_loses_readiness_repeatedly_is_overdue_although_min_ready_seconds_are_long() -> None:
    world = serving("Deployment", 3)
    world.min_ready = 300
    world.begin("v2")
    (pod,) = world.make(1)
    for _ in range(30):
        world.up(pod)
        world.run(25)
        world.touch(pod.lose_readiness(world.t))
        world.run(5)
        if is_over(world, "v2"):
            return
    raise AssertionError(world.status())


def test_pod_that_crashes_soon_after_ready_is_overdue_although_min_ready_seconds_are_long(kind: str) -> None:
    world = serving(kind, 3)
    world.min_ready = 30
    world.begin("v2")
    (pod,) = world.make(1)
    while world.t - pod.born < 119:
        world.run(1)
        world.up(pod)
        world.run(1)
        world.touch(pod.crash(world.t))
        world.run(15)
    world.run(10)
    assert world.image == "v1"


def test_resumed_rollout_gets_the_whole_start_timeout() -> None:
    world = serving("Deployment", 3)
    world.paused = True
    world.release("v2")
    revision = world.revisions.pop("v2")
    world.run(1000)
    world.paused = False
    world.generation += 1
    world.revisions["v2"] = revision
    before = list(world.reasons)
    world.rest()
    world.make_up(1)
    world.run(60)
    assert world.reasons == before


def test_pod_passed_by_a_person_ends_the_release_if_it_crashes_after_it_came_up() -> None:
    world = first_release("Deployment", replicas=1)
    (pod,) = world.make(1)
    world.run(121)
    assert world.state() == SUSPEND
    world.judge(pod, "pass")
    world.run(200)
    assert world.state() == RUNNING
    world.up(pod)
    world.run(20)
    assert world.state() == SUCCESS
    world.touch(pod.crash(world.t))
    world.run(130 + CLOCK_SKEW)
    assert world.state() == SUSPEND


@pytest.mark.parametrize("leads", [True, False])
def test_pod_that_was_ready_while_no_reconciler_ran_has_the_start_timeout_when_it_loses_readiness(
    kind: str, leads: bool
) -> None:
    world, pods = second_release(kind, 2)
    if not leads:
        world.die()
    world.t += 5
    world.up(*pods)
    if leads:
        world.run(300)
    else:
        world.advance(300)
    world.touch(pods[0].lose_readiness(world.t))
    world.advance(1)
    world.rest()
    assert world.image == "v2"
    world.t += 3
    world.up(pods[0])
    world.make_up(1)
    world.remove(*world.of("v1"))
    world.run(60)
    assert world.state() == SUCCESS


def test_first_release_that_was_up_while_no_reconciler_ran_is_not_suspended_at_once(kind: str) -> None:
    world = first_release(kind)
    pods = world.make(3)
    world.die()
    world.t += 5
    world.up(*pods)
    world.advance(300)
    world.touch(pods[0].lose_readiness(world.t))
    world.advance(1)
    world.rest()
    assert world.state() != SUSPEND
