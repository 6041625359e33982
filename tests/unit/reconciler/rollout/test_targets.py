"""How many pods get the version in a step, and the hold that lets them have it."""

from dataclasses import replace

import msgspec
import pytest

from altershield.api.rollout import Phase, Rollout, RolloutStatus
from reconciler.rollout.progress import progress
from reconciler.rollout.targets import NewHold, new_hold_of
from tests.unit.altershield.workloads.objects import pod
from tests.unit.reconciler.rollout.world import World, hold


def test_pods_rise_by_what_the_own_strategy_allows() -> None:
    """With `maxUnavailable: 0` and `maxSurge: 1`, a further pod is replaced after the one before is available."""
    world = World(rollout=Rollout(pods=("50%",), soak_seconds=0))
    seen = set()
    for _ in range(30):
        world.reconcile()
        if world.hold is None:
            break
        assert world.hold.pods <= world.up + 1
        seen.add(world.hold.pods)
        world.roll()
    assert seen == {1, 2, 3, 4, 5}


def test_nothing_is_evicted_while_a_person_holds_the_release_or_the_hold_is_written() -> None:
    world = World(rollout=Rollout(pods=(3,)), at_once=None, evictable=(pod(),))
    assert not world.reconcile().evicts
    assert world.reconcile().evicts
    world.replicas = 2
    found = world.reconcile()
    assert found.new_hold is not None
    assert not found.evicts
    world.status = msgspec.structs.replace(world.status, held_by="anna")
    assert not world.reconcile().evicts


def test_scaled_to_zero_and_back_escapes() -> None:
    world = World()
    world.settle()
    world.replicas = 0
    world.reconcile()
    assert world.status.phase == Phase.SOAKING, "its pods are ending"
    world.replicas = world.pods = world.up = world.passed = 10
    assert world.view.older == 0
    world.reconcile()
    assert (world.events[-1], world.status.phase) == ("StepsEscaped", Phase.FINISHING)
    world.settle()
    assert (world.status.phase, world.hold) == (Phase.DONE, None)


@pytest.mark.parametrize(("replicas", "reached"), [(20, 6), (5, 2), (1, 1)])
def test_scaled_workload_gets_the_share_of_its_replicas(replicas: int, reached: int) -> None:
    world = World()
    world.settle()
    world.now += 60
    world.reconcile()
    assert world.status.step == 2
    world.replicas = replicas
    world.pods = world.up = world.passed = min(world.pods, replicas)
    for _ in range(30):
        world.reconcile()
        if world.status.step != 2:
            break
        world.roll()
    assert world.status.step == 2
    assert world.pods == reached


def test_scaling_down_takes_no_more_old_pods_than_the_own_strategy_of_fewer_replicas() -> None:
    """Two of four pods were allowed, and are not up. One of two may be unavailable."""
    rollout = Rollout(pods=(2,), soak_seconds=60)
    world = World(rollout=rollout, replicas=4, at_once=2, hold=hold(2, 4, rollout))
    world.reconcile()
    world.replicas, world.at_once = 2, 1
    found = world.reconcile()
    assert found.new_hold == NewHold("new", 1, 2, surge=True)
    world.up = 1
    found = world.reconcile()
    assert found.new_hold == NewHold("new", 2, 2, surge=True)


def test_quota_that_refuses_surge_takes_no_more_old_pods_than_the_own_strategy() -> None:
    """Three pods were allowed, all above the replicas. Without them, one old pod at once makes room."""
    world = World(rollout=Rollout(pods=(3,), soak_seconds=60), at_once=3, hold=hold(3, rollout=Rollout(pods=(3,))))
    world.reconcile()
    world.at_once = 1
    found = progress(world.status, replace(world.view, surge_refused=True), world.now)
    assert found.new_hold is not None
    assert (found.new_hold.pods, found.new_hold.surge) == (1, False)


def test_failed_version_has_no_pod_in_the_soak_of_its_repair() -> None:
    world = World(at_once=2, replaced_first=1, hold=msgspec.structs.replace(hold(2), at_least=10))
    for _ in range(40):
        assert world.hold is not None
        assert world.hold.surge or world.up == 10, "old pods go when the new ones are up"
        world.reconcile()
        world.roll()
    assert world.hold is not None
    assert (world.status.phase, world.hold.pods, world.hold.surge) == (Phase.SOAKING, 10, False)


def test_pods_of_the_base_stay_beside_all_pods_of_a_repair_in_its_soak() -> None:
    """Kubernetes counts them as available. It would remove all others for the next version."""
    world = World(replicas=1, hold=msgspec.structs.replace(hold(1, 1), at_least=1))
    for _ in range(40):
        world.reconcile()
        world.roll()
    assert world.hold is not None
    assert (world.status.phase, world.hold.pods, world.hold.surge) == (Phase.SOAKING, 1, True)


def test_hold_whose_fields_somebody_changed_is_written_again() -> None:
    world = World()
    world.settle()
    found = progress(world.status, replace(world.view, follows=False), world.now)
    assert world.hold is not None
    assert found.new_hold is not None
    assert (found.new_hold.pods, found.new_hold.replicas) == (world.hold.pods, world.hold.replicas)


def test_hold_of_a_failed_release_is_written_again_with_the_same_pods() -> None:
    """Somebody changed its fields while no gatekeeper answered: the failed version must not go on to further pods."""
    world = World()
    world.settle()
    world.failed = True
    world.reconcile()
    assert world.status.phase == Phase.STOPPED
    assert world.hold is not None
    world.status = msgspec.structs.replace(world.status, waiting_for=("write",), waiting_since_unix=int(world.now))
    found = progress(world.status, replace(world.view, follows=False, replicas=20), world.now)
    assert found.new_hold == NewHold("new", world.hold.pods, 10, surge=True)
    assert found.status.waiting_for == ("write",)
    assert progress(found.status, world.view, world.now).status.waiting_for == ()
    world.now += 1_000
    world.failed = False
    world.reconcile()
    world.reconcile()
    assert world.status.stopped_seconds == 0


def test_scaling_in_a_soak_counts_new_pods_only_as_far_as_they_are_up() -> None:
    world = World(
        rollout=Rollout(pods=("30%",), soak_seconds=60), at_once=1, hold=hold(3, rollout=Rollout(pods=("30%",)))
    )
    world.settle()
    assert world.status.phase == Phase.SOAKING
    world.replicas, world.pods = 20, 6  # the deployment controller scales old and new pods in proportion
    found = world.reconcile()
    assert found.new_hold is not None
    assert found.new_hold.pods == 4
    world.up = 6
    found = world.reconcile()
    assert found.new_hold is None


def test_release_that_replaces_a_held_one_begins_with_as_many_pods() -> None:
    found = msgspec.structs.replace(hold(1), at_least=3)
    world = World(hold=found)
    world.settle()
    assert (world.status.step, world.pods, world.status.phase) == (2, 3, Phase.SOAKING)


def test_no_more_pods_than_the_own_partition_lets_have_the_version_and_else_at_least_one() -> None:
    world = World(at_once=None, hold=hold(0))
    view = replace(world.view, reach=0, follows=False)
    assert world.hold is not None
    rolling = RolloutStatus(phase=Phase.ROLLING, step=1)
    assert new_hold_of(view, world.hold, rolling, 0) == NewHold("new", 0, 10, True)
    assert new_hold_of(replace(view, reach=2), hold(3), rolling, 2) == NewHold("new", 2, 10, True)
    assert new_hold_of(replace(view, at_once=0), world.hold, rolling, 2) == NewHold("new", 1, 10, True)
