"""When a step is overdue."""

import msgspec
import pytest

from altershield.api.rollout import Phase, Rollout, Step, WaitingFor
from tests.unit.altershield.workloads.objects import pod
from tests.unit.reconciler.rollout.world import World


@pytest.mark.parametrize("waiting", [WaitingFor.PAUSED, WaitingFor.QUOTA])
def test_deadline_does_not_run_while_the_release_waits(waiting: WaitingFor) -> None:
    world = World(rollout=Rollout(pods=(3,), step_deadline_seconds=100))
    world.reconcile()
    world.reconcile()
    world.waiting = (waiting,)
    world.reconcile()
    world.now += 1_000
    assert not world.reconcile().overdue
    world.waiting = ()
    world.reconcile()
    world.now += 99
    assert not world.reconcile().overdue
    world.now += 2
    assert "is not verified within 100 s" in world.reconcile().overdue


def test_deadline_does_not_run_while_the_release_waits_in_its_soak_or_after_it() -> None:
    """A person holds the release, and a pod breaks. It has the rest of the deadline after that."""
    world = World(rollout=Rollout(steps=(Step(1, 30),), step_deadline_seconds=100))
    world.settle()
    assert world.status.phase == Phase.SOAKING
    world.status = msgspec.structs.replace(world.status, held_by="anna")
    world.reconcile()
    world.now += 1_000
    world.passed = 0
    assert not world.reconcile().overdue
    world.status = msgspec.structs.replace(world.status, held_by="")
    found = world.reconcile()
    assert (found.overdue, found.wake) == ("", world.now + 130)
    world.now += 130
    assert "is not verified within 100 s" in world.reconcile().overdue


@pytest.mark.parametrize("soaks", [False, True])
def test_pod_that_does_not_end_stops_the_deadline_and_is_named(*, soaks: bool) -> None:
    world = World(rollout=Rollout(pods=(1,), soak_seconds=60, step_deadline_seconds=100))
    world.reconcile()
    if soaks:
        world.settle()
        assert world.status.phase == Phase.SOAKING
        world.pods = world.up = world.passed = 0
    world.terminating = ("web-2",)
    found = world.reconcile()
    assert world.status.waiting_for == ("termination",)
    assert [each.message.rpartition("place ")[2] for each in found.events if each.reason == "StepHeld"] == ["(web-2)"]
    world.now += 10_000
    assert not world.reconcile().overdue
    world.terminating = ()
    world.reconcile()
    assert world.status.waiting_for == ()
    world.now += 159 if soaks else 99
    assert not world.reconcile().overdue
    world.now += 2
    assert "is not verified within 100 s" in world.reconcile().overdue


def test_refused_eviction_stops_the_deadline_until_no_eviction_is_due() -> None:
    """A later pod that does not come up makes the step overdue, although the step has not all its pods."""
    world = World(rollout=Rollout(pods=(3,), step_deadline_seconds=100), at_once=None)
    world.reconcile()
    world.evictable = (pod(),)
    assert world.reconcile().evicts == world.evictable
    world.status = msgspec.structs.replace(world.status, waiting_for=("eviction",), waiting_since_unix=int(world.now))
    world.now += 1_000
    found = world.reconcile()
    assert (found.overdue, found.evicts, found.status.waiting_for) == ("", world.evictable, ("eviction",))
    world.evictable = ()
    assert world.reconcile().status.waiting_for == ()
    world.now += 101
    assert "is not verified within 100 s" in world.reconcile().overdue


def test_step_whose_soak_was_broken_is_overdue_by_its_pods_and_not_by_the_soak() -> None:
    world = World(rollout=Rollout(pods=(1,), soak_seconds=60, step_deadline_seconds=100))
    world.settle()
    world.steady = int(world.now) + 10
    world.up = world.passed = 0
    world.now += 160
    assert world.reconcile().overdue == "step 1 of 2 is not verified within 100 s: 0 of 1 pods passed, 0 are up"


def test_soak_that_began_anew_before_the_deadline_is_not_cut_short() -> None:
    world = World(rollout=Rollout(pods=(1,), soak_seconds=60, step_deadline_seconds=100))
    world.settle()
    world.now += 150
    world.steady = int(world.now) - 9
    world.reconcile()
    assert world.status.soak_end_time_unix == world.now + 60
    world.now += 10
    found = world.reconcile()
    assert (found.overdue, found.wake) == ("", world.now + 50)
