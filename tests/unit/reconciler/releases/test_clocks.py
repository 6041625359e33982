"""Clocks of kubelets, the API server and the reconciler that differ."""

import pytest

from reconciler.releases.pods.group import Group

from .scenarios import RUNNING, SUCCESS, first_release_up, is_restored, second_release
from .world import World


@pytest.mark.parametrize("skew", [-300, -130, 130, 300])
def test_good_release_succeeds_although_the_kubelet_clock_is_wrong(kind: str, skew: int) -> None:
    world, pods = second_release(kind, 3)
    world.kubelet = skew
    world.run(20)
    world.up(*pods)
    world.remove(*world.of("v1"))
    world.run(5)
    assert (world.state(), len(world.batches)) == (RUNNING, 3), "the batches of v1"
    world.run(6)
    assert (world.image, world.state()) == ("v2", SUCCESS)


@pytest.mark.parametrize("skew", [-300, -130, 130, 300])
def test_crashing_release_is_rolled_back_although_the_kubelet_clock_is_wrong(kind: str, skew: int) -> None:
    world, pods = second_release(kind, 3)
    world.kubelet = skew
    for _ in range(20):
        if world.image != "v2":
            break
        world.up(*pods)
        world.run(5)
        for pod in pods:
            pod.crash(world.t)
        world.touch(*pods)
        world.run(5)
    assert is_restored(world)


def test_new_leader_trusts_the_kubelet_ready_time_only_beyond_the_clock_skew(kind: str) -> None:
    """A new leader does not observe a pod again that has been ready for long. It knows that only from the kubelet."""
    world, _ = first_release_up(kind)
    world.die()
    world.advance(309)
    world.rest()
    assert (world.state(), len(world.batches)) == (RUNNING, 0)
    world.die()
    world.advance(1)
    world.rest()
    assert world.state() == SUCCESS


def test_restart_is_observed_although_the_kubelet_never_reported_not_ready(kind: str) -> None:
    """A container can end and be back before the kubelet reports the pod as not ready."""
    world, pods = first_release_up(kind)
    world.run(20)
    world.advance(400)
    world.rest()
    pods[0].restarts += 1
    world.touch(pods[0])
    world.rest()
    assert world.groups is not None
    assert [tracked.pod.metadata.uid for tracked in world.groups.pods_in(Group.OBSERVING)] == [pods[0].uid]


@pytest.mark.parametrize("skew", [-1.5, 1.5])
def test_start_timeout_holds_although_the_reconciler_clock_differs_from_the_api_server_clock(
    kind: str, skew: float
) -> None:
    world = World(kind)
    world.ours = skew
    world.roll_out("v1")
    world.release("v2")
    world.run(30)
    world.make(1)
    world.run(117)
    assert (world.image, world.state()) == ("v2", RUNNING)
    world.run(6)
    assert is_restored(world)
