"""A step waits for the checks before it."""

import msgspec
import pytest

from altershield.api.check_specs import CheckPhase
from altershield.api.rollout import Phase, Rollout
from reconciler.rollout.draft import Progress
from reconciler.rollout.progress import promoted
from tests.unit.reconciler.rollout.world import World, checked, hold, passes_up_to


@pytest.mark.parametrize("phase", [CheckPhase.PRE_RELEASE, CheckPhase.PRE_BATCH])
def test_no_pod_gets_the_version_before_its_check_passes(phase: CheckPhase) -> None:
    world = World(waits=checked(phase=phase))
    world.settle()
    assert (world.status.phase, world.status.step, world.pods) == (Phase.HELD, 1, 0)
    assert (world.status.waiting_for, world.status.waiting_since_unix) == (("check",), 0)
    assert world.events == ["StepHeld"]
    world.waits = checked((phase, 1), phase=phase)
    world.settle()
    assert (world.status.phase, world.pods, world.events) == (Phase.SOAKING, 1, ["StepHeld", "StepStarted"])


def test_each_step_waits_for_its_check_with_the_pods_of_the_step_before() -> None:
    world = World()
    reached = []
    for step in range(4):
        world.waits = passes_up_to(step)
        if not step:
            world.hold = hold(0)
        for _ in range(4):
            world.settle()
            world.now += 60
        reached.append((world.status.phase, world.status.step, world.pods))
    assert reached == [("Held", 1, 0), ("Held", 2, 1), ("Held", 3, 3), ("Done", 3, 10)]
    assert world.hold is None


def test_check_of_the_release_is_not_asked_before_later_steps() -> None:
    world = World(waits=checked((CheckPhase.PRE_RELEASE, 1), phase=CheckPhase.PRE_RELEASE))
    for _ in range(4):
        world.settle()
        world.now += 60
    assert world.status.phase == Phase.DONE


@pytest.mark.parametrize("step", [1, 2, 3])
def test_waiting_for_a_check_counts_for_the_deadline_of_its_step(step: int) -> None:
    rollout = Rollout(pods=(1, "30%"), soak_seconds=0, step_deadline_seconds=100)
    world = World(rollout=rollout, waits=passes_up_to(step - 1), hold=hold(0, rollout=rollout))
    world.settle(60)
    world.said = "smoke: no column"
    assert (world.status.phase, world.status.step) == (Phase.HELD, step)
    pods, world.now = world.pods, world.status.step_time_unix + 99
    found = world.reconcile()
    assert (found.overdue, found.wake) == ("", world.status.step_time_unix + 100)
    world.now += 1
    found = world.reconcile()
    assert found.overdue == f"step {step} of 3 has not begun within 100 s: smoke: no column"
    assert (found.status.phase, found.status.failed_step, found.status.waiting_for) == (Phase.STOPPED, step, ())
    world.failed = True
    world.settle()
    assert world.pods == pods


def test_person_who_holds_a_release_that_waits_for_a_check_stops_its_deadline() -> None:
    world = World(rollout=Rollout(pods=(1,), step_deadline_seconds=100), waits=checked())
    world.settle()
    world.status = msgspec.structs.replace(world.status, held_by="anna")
    world.reconcile()
    world.now += 1_000
    assert not world.reconcile().overdue
    assert world.status.waiting_for == ("person", "check")
    world.waits = passes_up_to(1)
    world.settle()
    assert world.pods == 0, "the person still holds it"


def test_step_of_a_release_that_goes_on_after_a_failure_waits_for_its_check_again() -> None:
    world = World(waits=checked())
    world.settle()
    world.failed = True
    world.settle()
    world.failed = False
    world.settle()
    assert (world.status.phase, world.pods) == (Phase.HELD, 0)
    world.waits = passes_up_to(1)
    world.settle()
    assert world.pods == 1


def test_promotion_does_not_replace_a_check() -> None:
    world = World(waits=checked())
    world.settle()
    found = promoted(world.status, world.view, "anna", world.now, full=False)
    assert isinstance(found, str)
    assert "a check has not passed" in found
    fully = promoted(world.status, world.view, "anna", world.now, full=True)
    assert isinstance(fully, Progress)
    world.status = fully.status
    world.settle()
    assert world.pods == 0


def test_scaling_of_a_release_that_waits_for_a_check_lets_no_pod_of_the_next_step_through() -> None:
    world = World(waits=checked())
    world.settle()
    world.replicas = 20
    assert world.reconcile().new_hold is None, "the hold without pods holds at any size"
    world.waits = passes_up_to(1)
    world.settle()
    world.now += 60
    world.settle()
    assert (world.status.phase, world.status.step, world.pods) == (Phase.HELD, 2, 1)
    world.replicas = 10
    world.settle()
    assert (world.hold is not None and world.hold.replicas, world.pods) == (10, 1)


def test_release_without_a_hold_goes_on_without_its_check() -> None:
    world = World(waits=checked())
    world.settle()
    world.hold = None
    world.settle()
    assert "StepsEscaped" in world.events
    assert world.status.phase == Phase.DONE
