"""How many pods a release reaches: partitions, OnDelete, updates in place, and nodes that come and go."""

import pytest

from .scenarios import NO_REPLICAS, RUNNING, SETTLED, SUCCESS, is_restored
from .world import World, fingerprint


def test_pod_updated_in_place_is_observed_again() -> None:
    world = World("CloneSet")
    pods = world.roll_out("v1")
    pods[0].restarts = 7
    world.touch(pods[0])
    world.release("v2")
    world.rest()
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


def test_start_timeout_of_a_pod_updated_in_place_starts_at_the_update() -> None:
    world = World("CloneSet")
    pods = world.roll_out("v1")
    world.release("v2")
    world.run(60)
    world.update_in_place(pods[0])
    world.run(119)
    assert world.image == "v2"
    world.run(1)
    assert is_restored(world)


@pytest.mark.parametrize(("kind", "partition"), [("StatefulSet", 2), ("CloneSet", 2), ("CloneSet", "50%")])
def test_release_with_a_partition_succeeds_when_the_pods_beyond_it_are_up(kind: str, partition: int | str) -> None:
    world = World(kind, replicas=4)
    old = world.roll_out("v1")
    world.partition = partition
    world.release("v2")
    world.rest()
    world.up(*world.make(2))
    world.remove(*old[:2])
    world.run(140)
    assert (world.state(), world.said(SETTLED)[0], world.status().reached) == (SUCCESS, "True", 2)
    world.partition = 0
    world.rest()
    assert world.state() == RUNNING, "a lower partition makes the release continue"
    assert world.said(SETTLED) == ("", "")
    world.up(*world.make(2))
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
    world.up(*world.make(1))
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
    world.up(*world.make(1))
    world.run(20)
    assert (world.state(), len(world.batches)) == (SUCCESS, 4)
