"""Releases that are hard to judge: each was judged wrongly once."""

from collections.abc import Callable

import msgspec
import pytest

from altershield.api.kinds import ConditionType, WorkloadState
from altershield.workloads.pods import Pod
from reconciler.releases.health import CLOCK_SKEW

from . import world as worlds
from .world import KINDS, SimPod, World

RUNNING, SUCCESS, SUSPEND = WorkloadState.RUNNING, WorkloadState.SUCCESS, WorkloadState.SUSPEND
SETTLED, STALLED = ConditionType.SETTLED, ConditionType.STALLED

each_kind = pytest.mark.parametrize("kind", KINDS)


def serving(kind: str, replicas: int, image: str = "v1") -> World:
    world = World(kind, replicas=replicas)
    world.roll_out(image)
    return world


def release_bad(world: World, image: str) -> SimPod:
    """Release an image whose first pod never comes up."""
    world.release(image)
    world.rest()
    (pod,) = world.make(1)
    world.touch(pod.wait_for_image())
    return pod


def is_over(world: World, image: str) -> bool:
    """Whether the release was undone or suspended."""
    return world.image != image or world.state() == SUSPEND


# the last version that passed


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet"])
def test_a_version_that_passed_is_gone_back_to_although_it_is_verified_anew(kind: str) -> None:
    world = serving(kind, 4, "v0")
    world.roll_out("good")
    bad = release_bad(world, "bad-1")
    world.remove(world.of("good")[0])
    world.run(125)
    assert world.image == "good"
    world.remove(bad)
    (new,) = world.make(1)
    world.run(5)
    assert world.state() == RUNNING
    release_bad(world, "bad-2")
    world.up(new)
    world.run(200)
    assert world.image == "good"


def test_a_version_that_passed_and_was_toggled_to_again_is_gone_back_to() -> None:
    world = serving("Deployment", 4, "v0")
    world.roll_out("good")
    world.release("other")
    world.rest()
    (pod,) = world.make(1)
    world.run(5)
    world.release("good")
    world.rest()
    world.remove(pod, world.of("good")[0])
    (new,) = world.make(1)
    world.run(3)
    release_bad(world, "bad")
    world.up(new)
    world.run(200)
    assert world.image == "good"


def test_a_version_that_failed_after_it_had_passed_is_not_gone_back_to() -> None:
    world = serving("Deployment", 4)
    world.roll_out("good")
    world.settings = worlds.Settings(blocking=False)
    bad = release_bad(world, "bad-1")
    world.remove(world.of("good")[0])
    world.run(125)
    assert world.image == "good"
    world.remove(bad)
    world.up(*world.make(1))
    world.run(60)
    world.judge(world.of("good")[0], "unpass")
    world.rest()
    assert world.state("good") == SUSPEND
    release_bad(world, "bad-2")
    world.run(200)
    assert world.image == "v1", "the one before it"


# pods that are never up for long


@pytest.mark.parametrize("replicas", [3, 10, 100])
def test_pods_that_flap_out_of_phase_end_the_release(replicas: int) -> None:
    """Each is not ready for one second in twelve, and few of them are so at the same time."""
    world = serving("Deployment", replicas)
    world.release("v2")
    world.rest()
    pods = world.make(replicas)
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


def test_a_pod_that_ends_a_release_while_it_is_ready_just_then_is_told_with_what_it_had_before() -> None:
    world = World("Deployment", replicas=1)
    world.release("v1")
    world.rest()
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
    assert failed.message.startswith("not up after 123 s: CrashLoopBackOff (exit code 137)"), failed.message


def restart_all(world: World, pods: list[SimPod], turn: int) -> None:
    world.run(60)
    for pod in pods:
        pod.restart(world.t)
    world.touch(*pods)


def restart_one(world: World, pods: list[SimPod], turn: int) -> None:
    world.run(8)
    world.touch(pods[turn % len(pods)].restart(world.t))


@pytest.mark.parametrize("restart", [restart_all, restart_one])
def test_containers_that_restart_within_a_second_again_and_again_end_the_release(
    restart: Callable[[World, list[SimPod], int], None],
) -> None:
    world = serving("Deployment", 3)
    world.release("v2")
    world.rest()
    pods = world.make(3)
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


def test_pods_that_end_by_themselves_end_the_release_although_each_waits_for_its_node_first() -> None:
    world = serving("Deployment", 3)
    world.release("v2")
    world.rest()
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
def test_pods_that_end_again_and_again_after_they_were_up_end_the_release(
    disrupted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless the cluster ends them."""

    class Evicted(SimPod):
        def read(self, api: float, kubelet: float) -> Pod:
            return msgspec.structs.replace(super().read(api, kubelet), disrupted=disrupted and self.phase == "Failed")

    monkeypatch.setattr(worlds, "SimPod", Evicted)
    world = serving("Deployment", 1)
    world.release("v2")
    world.rest()
    (pod,) = world.make(1)
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


def test_a_pod_is_not_late_because_of_one_that_ended_long_ago() -> None:
    """The one that was to come in its place was scaled away."""
    world = serving("Deployment", 4)
    world.release("v2")
    world.rest()
    first, second, third = world.make(3)
    world.up(first, second)
    world.touch(third.find_no_node())
    world.run(5)
    (ended,) = world.make(1)
    world.run(3)
    end(world, ended)
    world.replicas = 3
    world.generation += 1
    world.run(400)
    world.replicas = 4
    world.generation += 1
    (late,) = world.make(1)
    world.rest()
    world.run(5)
    world.up(late)
    world.run(60)
    assert (world.image, world.state()) == ("v2", RUNNING)


@pytest.mark.parametrize("replicas", [2, 3])
def test_a_pod_that_comes_after_a_scale_down_is_not_late_because_of_one_that_ended_before(replicas: int) -> None:
    world = serving("Deployment", 3)
    world.release("v2")
    world.rest()
    first, ended = world.make(2)
    world.up(first)
    world.run(90)
    end(world, ended)
    world.replicas = 1
    world.generation += 1
    world.run(20)
    world.replicas = replicas
    world.generation += 1
    (pod,) = world.make(1)
    world.run(60)
    world.up(pod)
    world.run(20)
    assert world.image == "v2"


@pytest.mark.parametrize(("refusal", "seconds"), [("exceeded quota", 100), ("exceeded quota", 400), ("", 130)])
def test_a_pod_is_not_late_because_something_kept_it_from_being_made(refusal: str, seconds: int) -> None:
    world = serving("Deployment", 3)
    world.release("v2")
    world.rest()
    (pod,) = world.make(1)
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


def test_a_pod_that_came_up_in_time_is_not_late_because_the_news_of_it_are() -> None:
    world = World("Deployment", replicas=1)
    world.release("v1")
    world.rest()
    (pod,) = world.make(1)
    world.run(5)
    pod.come_up(world.t + 60)
    world.advance(150)
    world.touch(pod)
    world.run(20)
    assert (world.state(), world.suspended) == (SUCCESS, False)


def test_a_pod_that_came_up_again_in_time_is_not_late_under_a_new_leader() -> None:
    """The record still lists it among those that are down."""
    world = serving("Deployment", 3)
    world.release("v2")
    world.rest()
    pods = world.make(2)
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


# how far a settled success reaches


@pytest.mark.parametrize("kind", ["StatefulSet", "DaemonSet"])
def test_a_pod_that_is_replaced_under_on_delete_is_no_new_release(kind: str) -> None:
    world = World(kind)
    old = world.roll_out("v1")
    world.rolling = False
    world.release("v2")
    world.rest()
    world.remove(old[0])
    (pod,) = world.make(1)
    world.up(pod)
    world.run(200)
    assert world.said(SETTLED)[0] == "True"
    world.remove(pod)
    world.rest()
    (pod,) = world.make(1)
    world.touch(pod.wait_for_image())
    world.run(300)
    assert (world.state(), world.said(SETTLED)[0], world.suspended) == (SUCCESS, "True", False)


def test_a_settled_success_under_on_delete_is_scaled_down_and_up() -> None:
    world = World("StatefulSet")
    old = world.roll_out("v1")
    world.rolling = False
    world.release("v2")
    world.rest()
    world.remove(old[0])
    world.up(*world.make(1))
    world.run(200)
    world.replicas = 2
    world.generation += 1
    world.remove(old[1])
    world.run(30)
    world.replicas = 3
    world.generation += 1
    (pod,) = world.make(1)
    world.touch(pod.wait_for_image())
    world.run(300)
    assert (world.state(), world.said(SETTLED)[0]) == (SUCCESS, "True")


@pytest.mark.parametrize(("kind", "partition"), [("StatefulSet", 3), ("CloneSet", "50%")])
def test_a_settled_success_with_a_partition_is_scaled_down_and_up(kind: str, partition: int | str) -> None:
    world = World(kind, replicas=6)
    old = world.roll_out("v1")
    world.partition = partition
    world.release("v2")
    world.rest()
    world.remove(*old[:3])
    pods = world.make(3)
    world.up(*pods)
    world.run(200)
    for replicas in (2, 12, 4, 6):
        world.replicas = replicas
        world.generation += 1
        world.run(30)
        assert (world.state(), world.said(SETTLED)[0]) == (SUCCESS, "True"), replicas
    world.partition = 0
    world.generation += 1
    world.rest()
    assert world.state() == RUNNING, "it reaches further"


@pytest.mark.parametrize(("kind", "partition"), [("StatefulSet", 0), ("DaemonSet", 0), ("StatefulSet", 2)])
def test_a_first_release_under_on_delete_or_with_a_partition_is_no_success_while_pods_are_missing(
    kind: str, partition: int
) -> None:
    """Its strategy holds back nothing, because there is no other version."""
    world = World(kind)
    world.rolling, world.partition = partition > 0, partition
    world.release("v1")
    world.rest()
    world.up(*world.make(1))
    world.run(300)
    assert (world.state(), world.said(STALLED)) == (RUNNING, ("True", "PodsMissing"))
    world.up(*world.make(2))
    world.run(10)
    assert world.state() == SUCCESS


def test_a_partition_that_is_lowered_after_a_scale_up_lets_a_release_go_on() -> None:
    world = World("CloneSet", replicas=6)
    old = world.roll_out("v1")
    world.partition = "50%"
    world.release("v2")
    world.rest()
    world.remove(*old[:3])
    world.up(*world.make(3))
    world.run(200)
    world.replicas = 12
    world.generation += 1
    world.up(*world.make(3), *world.make(3, "v1"))
    world.run(60)
    world.partition = "40%"
    world.generation += 1
    world.rest()
    assert world.state() == RUNNING


def test_a_partition_is_reached_although_a_pod_of_the_version_before_is_missing() -> None:
    world = World("StatefulSet", replicas=5)
    old = world.roll_out("v1")
    world.partition = 3
    world.release("v2")
    world.rest()
    world.remove(*old[:3])
    world.up(*world.make(2))
    world.run(20)
    assert world.state() == SUCCESS


def test_a_release_on_delete_of_which_a_pod_cannot_be_made_is_no_success() -> None:
    world = World("StatefulSet")
    old = world.roll_out("v1")
    world.rolling = False
    world.release("v2")
    world.rest()
    world.remove(*old[:2])
    world.up(*world.make(1))
    world.run(200)
    assert (world.state(), world.said(STALLED)[0]) == (RUNNING, "True")


# minReadySeconds


@each_kind
def test_a_pod_that_stays_ready_has_its_time_however_long_it_has_to_be_ready(kind: str) -> None:
    world = serving(kind, 3)
    world.min_ready = 300
    world.release("v2")
    world.rest()
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


def test_a_pod_that_flaps_does_not_put_off_its_deadline_however_long_it_has_to_be_ready() -> None:
    world = serving("Deployment", 3)
    world.min_ready = 300
    world.release("v2")
    world.rest()
    (pod,) = world.make(1)
    for _ in range(30):
        world.up(pod)
        world.run(25)
        world.touch(pod.lose_readiness(world.t))
        world.run(5)
        if is_over(world, "v2"):
            return
    raise AssertionError(world.status())


@each_kind
def test_a_pod_that_crashes_soon_after_it_was_ready_is_late_however_long_it_has_to_be_ready(kind: str) -> None:
    world = serving(kind, 3)
    world.min_ready = 30
    world.release("v2")
    world.rest()
    (pod,) = world.make(1)
    while world.t - pod.born < 119:
        world.run(1)
        world.up(pod)
        world.run(1)
        world.touch(pod.crash(world.t))
        world.run(15)
    world.run(10)
    assert world.image == "v1"


# what keeps a release from going on, and then does not


def test_a_rollout_that_is_resumed_has_its_time() -> None:
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
    world.up(*world.make(1))
    world.run(60)
    assert world.reasons == before


def test_a_pod_that_a_person_passed_and_that_then_came_up_is_judged_as_others_are() -> None:
    world = World("Deployment", replicas=1)
    world.release("v1")
    world.rest()
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
