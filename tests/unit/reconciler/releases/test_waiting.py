"""What a release waits for: pods, and faults of the cluster."""

from collections.abc import Callable

import pytest

from altershield.api import labels
from altershield.workloads.pods import Fault

from .scenarios import (
    NO_REPLICAS,
    RUNNING,
    STALLED,
    SUCCESS,
    SUSPEND,
    VERIFIED,
    first_release,
    is_restored,
    second_release,
)
from .world import SimPod, World, fingerprint


def test_release_with_zero_replicas_keeps_running_and_stays_suspended(kind: str) -> None:
    world = World(kind)
    world.roll_out("v1")
    world.own_labels[labels.SUSPEND] = "1"
    world.replicas = 0
    world.remove(*list(world.pods.values()))
    world.release("v2")
    world.run(1000)
    assert world.state() == RUNNING
    assert world.said(NO_REPLICAS) == ("True", "NoPods")
    assert world.suspended
    assert set(world.releases) == {fingerprint("v1"), fingerprint("v2")}
    world.replicas = 2
    world.make_up(2)
    world.run(10)
    assert world.state() == SUCCESS
    assert world.condition(NO_REPLICAS) is None
    assert not world.suspended
    assert set(world.releases) == {fingerprint("v2")}


def test_suspended_release_scaled_to_zero_stays_suspended(kind: str) -> None:
    world = first_release(kind)
    pods = world.make(3)
    world.run(121)
    assert world.state() == SUSPEND
    message = world.condition(VERIFIED)
    world.replicas = 0
    world.remove(*pods)
    world.run(100)
    assert (world.state(), world.suspended) == (SUSPEND, True)
    assert world.condition(VERIFIED) == message, "the condition still explains the suspension"
    world.replicas = 1
    world.make(1)
    world.rest()
    assert (world.state(), world.suspended) == (RUNNING, True)


def test_suspension_stays_while_the_pods_of_a_workload_scaled_to_zero_are_deleted(kind: str) -> None:
    world = World(kind)
    failed, *others = world.roll_out("v1")
    world.fail(failed)
    assert (world.state(), world.suspended) == (SUSPEND, True)
    world.replicas = 0
    for pod in (failed, *others):
        world.remove(pod)
        world.run(20)
        assert (world.state(), world.suspended) == (SUSPEND, True)


def unscheduled(world: World, pod: SimPod) -> None:
    world.touch(pod.find_no_node())


def lost(world: World, pod: SimPod) -> None:
    pod.node = "node-2"
    world.touch(pod)
    world.lose_node("node-2")


def no_volume(world: World, pod: SimPod) -> None:
    world.events_say = Fault.VOLUME
    world.touch(pod.be_created())


CLUSTER_FAULTS = [(unscheduled, "Unschedulable"), (lost, "NodeNotReady"), (no_volume, "VolumeNotAttached")]


@pytest.mark.parametrize(("spoil", "reason"), CLUSTER_FAULTS, ids=[reason for _, reason in CLUSTER_FAULTS])
def test_cluster_fault_stalls_the_release_but_does_not_end_it(
    kind: str, spoil: Callable[[World, SimPod], None], reason: str
) -> None:
    world, (pod, *_) = second_release(kind)
    spoil(world, pod)
    world.run(1000)
    assert (world.image, world.state(), world.suspended) == ("v2", RUNNING, False)
    assert world.said(STALLED) == ("True", reason)
    assert world.reasons.count("ReleaseStalled") == 1
    assert world.announced[-1].warning
    assert world.rest() == 0


@pytest.mark.parametrize(("spoil", "reason"), CLUSTER_FAULTS, ids=[reason for _, reason in CLUSTER_FAULTS])
def test_release_continues_after_a_cluster_fault_is_gone(
    kind: str, spoil: Callable[[World, SimPod], None], reason: str
) -> None:
    world, (pod, *more) = second_release(kind, 3)
    world.up(*more)
    spoil(world, pod)
    world.run(1000)
    pod.unscheduled, pod.node, pod.creating = False, "node-1", False
    world.touch(pod)
    world.run(60)
    assert world.state() == RUNNING, "the start timeout starts again"
    world.up(pod)
    world.remove(*world.of("v1"))
    world.run(10)
    assert world.state() == SUCCESS
    assert world.said(STALLED) == ("False", "GoesOn")


def test_pod_that_crashes_after_a_cluster_fault_causes_a_rollback(kind: str) -> None:
    world, (pod, *_) = second_release(kind)
    world.touch(pod.find_no_node())
    world.run(1000)
    pod.unscheduled, pod.node = False, "node-1"
    world.touch(pod.crash(world.t))
    world.run(121)
    assert is_restored(world)


def test_pods_refused_by_a_quota_stall_the_release() -> None:
    world, (pod, *_) = second_release("Deployment")
    world.refusal = "exceeded quota: pods"
    world.up(pod)
    world.run(1000)
    assert world.state() == RUNNING
    assert world.said(STALLED) == ("True", "FailedCreate")
    assert "2 pods cannot be created: FailedCreate: exceeded quota: pods" in world.message(STALLED)


def test_missing_pods_stall_the_release_after_the_start_timeout(kind: str) -> None:
    world, (pod, *_) = second_release(kind)
    world.up(pod)
    world.run(10 + 119)
    assert world.said(STALLED) == ("", "")
    world.run(1)
    assert world.said(STALLED) == ("True", "PodsMissing")


@pytest.mark.parametrize("kind", ["StatefulSet", "DaemonSet"])
@pytest.mark.parametrize("restarted", [False, True])
def test_missing_pods_name_the_one_that_does_not_end(kind: str, *, restarted: bool) -> None:
    world, (pod, *_) = second_release(kind)
    replaced, old, *_ = world.of("v1")
    world.remove(replaced)
    world.up(pod)
    old.deleting = True
    world.touch(old)
    if restarted:
        world.groups = None
    world.run(10 + 120)
    found = world.condition(STALLED)
    assert found is not None
    assert (found.status, found.reason) == ("True", "PodTerminating")
    assert f"waits for the end of pod {old.name}, which is terminating" in found.message
    world.remove(old)
    world.run(1)
    assert world.said(STALLED) == ("True", "PodsMissing")


def test_missing_pods_name_the_budget_that_admits_no_deletion(kind: str) -> None:
    world, (pod, *_) = second_release(kind)
    world.exhausted_budget = "web"
    world.up(pod)
    world.run(10 + 120)
    found = world.condition(STALLED)
    assert found is not None
    assert found.reason == "PodsMissing"
    name, namespace = "PodUnavailableBudget web", world.workload.metadata.namespace
    text = f"{name} admits no deletion of the workload's pods now; to see why: altershield budgets web -n {namespace}"
    assert found.message.endswith(f"none came up for 120 s; {text}")


@pytest.mark.parametrize("kind", ["Deployment", "CloneSet"])
def test_paused_rollout_stalls_the_release_with_reason_paused(kind: str) -> None:
    world, (pod, *_) = second_release(kind)
    world.paused = True
    world.up(pod)
    world.run(200)
    assert (world.state(), world.said(STALLED)) == (RUNNING, ("True", "Paused"))


def test_template_without_a_revision_stalls_the_release(kind: str) -> None:
    world = World(kind)
    world.release("v1")
    made = world.revisions.pop("v1")
    world.run(119)
    assert world.said(STALLED) == ("", "")
    world.run(1)
    assert world.said(STALLED) == ("True", "NotRolledOut")
    world.revisions["v1"] = made
    world.make_up(3)
    world.run(20)
    assert world.state() == SUCCESS
