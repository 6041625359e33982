"""How many pods a release reaches: partitions, OnDelete, updates in place, and nodes that come and go."""

import contextlib

import pytest

from altershield.api import labels

from .scenarios import (
    NO_REPLICAS,
    RUNNING,
    SETTLED,
    STALLED,
    SUCCESS,
    SUSPEND,
    assert_rolled_back_after,
    is_restored,
    second_release,
)
from .world import Conflicted, World, fingerprint
from .world.pods import SimPod


def rolling_out(kind: str, *, replicas: int, surge: int, new: int) -> tuple[World, list[SimPod], list[SimPod]]:
    """A rollout from v1 to v2 in which so many new pods are up, and the pods of v1 and of v2."""
    world = World(kind, replicas=replicas)
    world.surge = surge
    v1 = world.roll_out("v1")
    world.begin("v2")
    v2 = world.make_up(new)
    world.updated = new
    return world, v1, v2


def test_pod_updated_in_place_is_observed_again() -> None:
    world = World("CloneSet")
    pods = world.roll_out("v1")
    pods[0].restarts = 7
    world.touch(pods[0])
    world.begin("v2")
    for pod in pods:
        world.update_in_place(pod)
    world.run(5)
    assert (world.state(), len(world.of("v2"))) == (RUNNING, 3)
    world.up(*pods)
    world.run(9)
    assert world.state() == RUNNING
    world.run(1)
    assert world.state() == SUCCESS, "restarts before the update do not count"
    assert len([each for each in world.batches.values() if fingerprint("v2") in each.metadata.name]) == 3


def test_pod_that_a_partition_held_back_is_observed_after_its_update_in_place() -> None:
    """It was created after the release began, and has been ready for long. Its old container is still ready."""
    world = World("CloneSet", replicas=2)
    world.partition = 1
    pods = world.roll_out("v1")
    world.begin("v2")
    world.update_in_place(pods[0])
    world.run(5)
    world.up(pods[0])
    world.remove(pods[1])
    (created,) = world.make_up(1, "v1")
    world.run(500)
    assert world.state() == SUCCESS
    world.partition = 0
    world.rest()
    world.update_in_place(created, ready=True)
    world.rest()
    assert world.state() == RUNNING
    world.run(9)
    assert world.state() == RUNNING
    world.run(1)
    assert world.state() == SUCCESS


def test_start_timeout_of_a_pod_updated_in_place_starts_at_the_update() -> None:
    world = World("CloneSet")
    pods = world.roll_out("v1")
    world.release("v2")
    world.run(60)
    world.update_in_place(pods[0])
    assert_rolled_back_after(world, 120)


def test_pod_updated_in_place_has_the_start_timeout_from_the_next_leader() -> None:
    """A pod that is updated does not show since when it is down: the leader that saw it is gone."""
    world = World("CloneSet")
    pods = world.roll_out("v1")
    world.begin("v2")
    world.update_in_place(pods[0])
    world.die()
    world.advance(100)
    assert_rolled_back_after(world, 120)


@pytest.mark.parametrize(("kind", "partition"), [("StatefulSet", 2), ("CloneSet", 2), ("CloneSet", "50%")])
def test_release_with_a_partition_succeeds_when_the_pods_beyond_it_are_up(kind: str, partition: int | str) -> None:
    world = World(kind, replicas=4)
    old = world.roll_out("v1")
    world.partition = partition
    world.begin("v2")
    world.make_up(2)
    world.remove(*old[:2])
    world.run(140)
    assert (world.state(), world.said(SETTLED)[0], world.status().reached) == (SUCCESS, "True", 2)
    world.partition = 0
    world.rest()
    assert world.state() == RUNNING, "a lower partition makes the release continue"
    assert world.said(SETTLED) == ("", "")
    world.remove(*old[2:])
    world.make_up(2)
    world.run(10)
    assert (world.state(), world.status().reached) == (SUCCESS, 4)


@pytest.mark.parametrize("kind", ["StatefulSet", "CloneSet"])
def test_release_with_a_partition_of_all_pods_has_no_pods_to_verify(kind: str) -> None:
    world = World(kind)
    world.roll_out("v1")
    world.partition = 3
    world.release("v2")
    world.run(500)
    assert (world.state(), world.said(NO_REPLICAS)) == (RUNNING, ("True", "NoPods"))


@pytest.mark.parametrize("kind", ["StatefulSet", "DaemonSet"])
def test_on_delete_release_covers_the_pods_that_were_replaced(kind: str) -> None:
    world = World(kind)
    old = world.roll_out("v1")
    world.rolling = False
    world.release("v2")
    world.run(500)
    assert world.said(NO_REPLICAS) == ("True", "NoPods")
    world.remove(old[0])
    world.make_up(1)
    world.run(10)
    assert (world.state(), world.status().reached) == (SUCCESS, 1)
    world.remove(old[1])
    (bad,) = world.make(1)
    world.rest()
    assert world.state() == RUNNING
    world.up(bad)
    world.run(10)
    assert (world.state(), world.status().reached) == (SUCCESS, 2)


def test_release_stays_successful_when_nodes_are_removed_and_added() -> None:
    world = World("DaemonSet")
    pods = world.roll_out("v1")
    world.replicas = 2
    world.remove(pods[0])
    world.run(200)
    assert world.state() == SUCCESS
    world.replicas = 3
    world.make_up(1)
    world.run(20)
    assert (world.state(), len(world.batches)) == (SUCCESS, 4)


@pytest.mark.parametrize("kind", ["StatefulSet", "DaemonSet"])
def test_on_delete_release_stays_settled_if_a_replaced_pod_does_not_come_up(kind: str) -> None:
    world = World(kind)
    old = world.roll_out("v1")
    world.rolling = False
    world.begin("v2")
    world.remove(old[0])
    (pod,) = world.make_up(1)
    world.run(200)
    assert world.said(SETTLED)[0] == "True"
    world.remove(pod)
    world.rest()
    (pod,) = world.make(1)
    world.touch(pod.wait_for_image())
    world.run(300)
    assert (world.state(), world.said(SETTLED)[0], world.suspended) == (SUCCESS, "True", False)


def test_on_delete_release_stays_settled_when_it_is_scaled_down_and_up() -> None:
    world = World("StatefulSet")
    old = world.roll_out("v1")
    world.rolling = False
    world.begin("v2")
    world.remove(old[0])
    world.make_up(1)
    world.run(200)
    world.scale(2)
    world.remove(old[1])
    world.run(30)
    world.scale(3)
    (pod,) = world.make(1)
    world.touch(pod.wait_for_image())
    world.run(300)
    assert (world.state(), world.said(SETTLED)[0]) == (SUCCESS, "True")


def test_on_delete_release_with_a_broken_pod_stays_settled_when_it_is_scaled_down() -> None:
    world = World("StatefulSet")
    world.rolling = False
    old = world.roll_out("v1")
    world.begin("v2")
    world.remove(*old)
    pods = world.make_up(3)
    world.run(200)
    world.touch(pods[0].crash(world.t))
    world.scale(2)
    world.run(300)
    assert (world.image, world.state(), world.said(SETTLED)[0]) == ("v2", SUCCESS, "True")


@pytest.mark.parametrize(("kind", "partition"), [("StatefulSet", 3), ("CloneSet", "50%")])
def test_release_with_a_partition_stays_settled_when_it_is_scaled_down_and_up(kind: str, partition: int | str) -> None:
    world = World(kind, replicas=6)
    old = world.roll_out("v1")
    world.partition = partition
    world.begin("v2")
    world.remove(*old[:3])
    world.make_up(3)
    world.run(200)
    for replicas in (2, 12, 4, 6):
        world.scale(replicas)
        world.run(30)
        assert (world.state(), world.said(SETTLED)[0]) == (SUCCESS, "True"), replicas
    world.partition = 0
    world.generation += 1
    world.rest()
    assert world.state() == RUNNING, "the release reaches more pods"


@pytest.mark.parametrize(("kind", "partition"), [("StatefulSet", 0), ("DaemonSet", 0), ("StatefulSet", 2)])
def test_first_release_with_on_delete_or_a_partition_needs_all_pods(kind: str, partition: int) -> None:
    """The strategy holds back no pods, because there is no other version."""
    world = World(kind)
    world.rolling, world.partition = partition > 0, partition
    world.begin("v1")
    world.make_up(1)
    world.run(300)
    assert (world.state(), world.said(STALLED)) == (RUNNING, ("True", "PodsMissing"))
    world.make_up(2)
    world.run(10)
    assert world.state() == SUCCESS


def test_release_continues_if_the_partition_is_lowered_after_a_scale_up() -> None:
    world = World("CloneSet", replicas=6)
    old = world.roll_out("v1")
    world.partition = "50%"
    world.begin("v2")
    world.remove(*old[:3])
    world.make_up(3)
    world.run(200)
    world.scale(12)
    world.up(*world.make(3), *world.make(3, "v1"))
    world.run(60)
    world.partition = "40%"
    world.generation += 1
    world.rest()
    assert world.state() == RUNNING


@pytest.mark.parametrize(
    ("kind", "before", "after", "continues"),
    [
        ("StatefulSet", 4, 2, True),
        ("CloneSet", 4, 2, True),
        ("StatefulSet", 4, 4, False),
        ("CloneSet", "80%", "80%", False),
    ],
)
def test_release_continues_if_the_partition_is_lowered_with_a_scale_down(
    kind: str, before: int | str, after: int | str, continues: bool
) -> None:
    """Both happen in one write. The number of pods that the release reaches stays 1."""
    world = World(kind, replicas=5)
    old = world.roll_out("v1")
    world.partition = before
    world.begin("v2")
    (first,) = world.make_up(1)
    world.remove(old[4])
    world.run(140)
    assert (world.state(), world.said(SETTLED)[0], world.status().reached) == (SUCCESS, "True", 1)
    world.replicas, world.partition = 3, after
    world.generation += 1
    world.remove(first, old[3])
    world.rest()
    assert world.state() == (RUNNING if continues else SUCCESS)
    world.remove(old[2])
    world.touch(*[pod.wait_for_image() for pod in world.make(1)])
    world.run(130)
    assert is_restored(world) is continues


def test_release_with_a_partition_succeeds_although_a_pod_of_the_older_version_is_missing() -> None:
    world = World("StatefulSet", replicas=5)
    old = world.roll_out("v1")
    world.partition = 3
    world.begin("v2")
    world.remove(*old[:3])
    world.make_up(2)
    world.run(20)
    assert world.state() == SUCCESS


def test_on_delete_release_with_a_missing_pod_does_not_succeed() -> None:
    world = World("StatefulSet")
    old = world.roll_out("v1")
    world.rolling = False
    world.begin("v2")
    world.remove(*old[:2])
    world.make_up(1)
    world.run(200)
    assert (world.state(), world.said(STALLED)[0]) == (RUNNING, "True")


def test_daemon_set_that_altershield_paused_with_on_delete_does_not_succeed_with_the_pods_it_has() -> None:
    world, (first,) = second_release("DaemonSet")
    world.up(first)
    world.run(30)
    world.fail(first)
    assert (world.state(), world.suspended) == (SUSPEND, True)
    world.held = world.paused = True
    world.held_version = world.version
    world.remove(first)
    world.make_up(1)
    world.checked = False
    world.run(30)
    assert (world.state(), world.held) == (RUNNING, True)
    world.checked = True
    world.run(60)
    assert (world.state(), world.suspended, world.held) == (RUNNING, True, False), "1 of 3 pods passed"


def test_repair_of_a_paused_daemon_set_does_not_succeed_before_the_pause_is_taken_back() -> None:
    """A policy of the cluster refuses each change of the DaemonSet's strategy."""
    world, (first,) = second_release("DaemonSet")
    world.held = world.paused = True
    world.held_version = world.version
    world.own_labels[labels.SUSPEND] = "1"

    def refuse(what: str) -> None:
        if what == "continue":
            raise Conflicted

    world.write_hook = refuse
    world.release("v3")
    world.remove(first)
    world.make_up(1)
    for _ in range(60):
        world.t += 1
        with contextlib.suppress(Conflicted):
            world.rest()
    assert (world.state(), world.suspended) == (RUNNING, True), "1 of 3 pods passed"
    world.write_hook = lambda what: None
    world.rest()
    assert (world.state(), world.suspended, world.held) == (RUNNING, True, False)


@pytest.mark.parametrize(
    ("kind", "surge", "deleted"), [("StatefulSet", 0, 2), ("DaemonSet", 0, 2), ("CloneSet", 0, 2), ("Deployment", 1, 2)]
)
def test_pods_that_a_scale_down_deletes_do_not_make_a_release_succeed(kind: str, surge: int, deleted: int) -> None:
    """A StatefulSet deletes them one after the other, those of the new version first. The ReplicaSets of a Deployment
    delete them together, and its status tells how many there are after that."""
    world = World(kind, replicas=10)
    old = world.roll_out("v1")
    world.surge = surge
    world.begin("v2")
    world.remove(*old[5:])
    new = [pod for ordinal in (9, 8, 7, 6, 5) for pod in world.make(number=ordinal)]
    world.up(*new)
    world.run(30)
    world.replicas, world.updated = 3, 5
    world.generation += 1
    world.rest()
    for pod in new[:deleted]:
        world.remove(pod)
        world.rest()
        assert world.state() == RUNNING, f"all {len(old[:5])} pods of the older version exist"
    world.remove(*new[deleted:], *old[:5])
    world.updated = 3
    world.make_up(3)
    world.run(30)
    assert world.state() == SUCCESS


@pytest.mark.parametrize("partition", [0, 2])
def test_pod_that_a_stateful_set_is_about_to_delete_is_not_counted_for_one_that_is_missing(partition: int) -> None:
    """The last pod of the older version is being replaced when the StatefulSet is scaled down by one."""
    world = World("StatefulSet", replicas=5)
    old = world.roll_out("v1")
    world.partition = partition
    world.begin("v2")
    world.remove(*old[partition:])
    world.up(*(pod for ordinal in range(partition + 1, 5) for pod in world.make(number=ordinal)))
    world.run(30)
    world.scale(4)
    world.run(30)
    assert world.state() == RUNNING, f"pod {partition} is missing"
    world.make_up(number=partition)
    world.run(30)
    assert world.state() == SUCCESS


def test_pod_that_a_partition_holds_back_is_not_counted_for_one_that_is_missing() -> None:
    world = World("StatefulSet", replicas=5)
    old = world.roll_out("v1")
    world.begin("v2")
    world.remove(*old[3:])
    world.make_up(number=3)
    world.partition = 4
    world.generation += 1
    world.run(30)
    assert world.state() == RUNNING, "pod 4 is missing"
    world.make_up(number=4)
    world.run(30)
    assert world.state() == SUCCESS


def test_pod_on_a_deleted_node_is_not_counted_for_one_that_is_missing() -> None:
    """The pod is deleted a minute after its node. Until then, nothing in it changes."""
    world = World("DaemonSet", replicas=3)
    old = world.roll_out("v1")
    world.begin("v2")
    world.remove(*old)
    first, second = world.make(2)
    second.node = "node-2"
    world.up(first, second)
    world.run(30)
    world.deleted_nodes.add("node-2")
    world.replicas = 2
    world.run(30)
    assert world.state() == RUNNING, "1 of 2 pods is up"
    world.remove(second)
    world.make_up()
    world.run(30)
    assert world.state() == SUCCESS


@pytest.mark.parametrize("kind", ["Deployment", "DaemonSet", "CloneSet"])
def test_scale_down_to_the_number_of_new_pods_is_no_success_while_its_controller_has_to_delete_pods(kind: str) -> None:
    world, v1, v2 = rolling_out(kind, replicas=10, surge=2, new=5)
    world.remove(*v1[:3])
    world.run(30)
    assert world.state() == RUNNING
    world.scale(5)
    world.rest()
    assert world.state() == RUNNING, "12 pods exist, and at most 7 are allowed"
    world.remove(*v2[:2], *v1[3:7])
    world.updated = 3
    world.rest()
    assert world.state() == RUNNING
    world.make_up(2)
    world.updated = 5
    world.remove(*world.of("v1"))
    world.run(30)
    assert world.state() == SUCCESS


def test_scale_down_below_the_number_of_new_pods_is_no_success_although_all_pods_may_stay() -> None:
    """The controller may delete new pods, and keep an old one for a while."""
    world, v1, _ = rolling_out("Deployment", replicas=10, surge=2, new=6)
    world.remove(*v1[1:])
    world.run(30)
    assert world.state() == RUNNING
    world.scale(5)
    world.rest()
    assert world.state() == RUNNING


def test_old_pods_that_are_terminating_do_not_hold_up_a_success() -> None:
    world, v1, _ = rolling_out("Deployment", replicas=3, surge=1, new=3)
    for pod in v1:
        pod.deleting = True
    world.touch(*v1)
    world.run(30)
    assert world.state() == SUCCESS
