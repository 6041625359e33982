"""A step soaks anew if no pod stayed ready."""

from altershield.api.rollout import Phase, Rollout, Step
from tests.unit.reconciler.rollout.world import World


def test_soak_in_which_all_pods_restarted_begins_anew_until_the_deadline() -> None:
    """The deadline is an hour, and a soak takes a minute."""
    world = World()
    world.settle()
    begin = world.now
    while not (found := world.reconcile()).overdue and world.now < begin + 10_000:
        assert (world.status.step, world.status.phase) == (1, Phase.SOAKING)
        world.now = found.wake or world.now + 60
        world.steady = int(world.now) - 9
    assert world.now - begin == 3600 + 60
    assert found.overdue == "step 1 of 3: no pod stayed ready for a whole soak within 3600 s"
    assert world.status.phase == Phase.STOPPED


def test_soak_in_which_all_pods_were_replaced_begins_anew_with_a_deadline_of_its_own() -> None:
    world = World()
    world.settle()
    for _ in range(100):
        world.now += 60
        world.oldest = world.steady = int(world.now) - 9
        found = world.reconcile()
        assert not found.overdue
    assert (world.status.step, world.status.phase) == (1, Phase.SOAKING)
    assert found.wake == world.now + 60
    world.now += 60
    world.settle()
    assert world.status.step == 2


def test_last_step_soaks_anew_without_a_deadline() -> None:
    world = World(rollout=Rollout(steps=(Step(1, 0), Step("100%", 60))))
    world.settle()
    assert (world.status.step, world.status.phase) == (2, Phase.SOAKING)
    for _ in range(100):
        world.now += 60
        world.steady = int(world.now) - 9
        world.reconcile()
        assert world.status.phase == Phase.SOAKING
    world.now += 60
    assert world.reconcile().done


def test_pod_that_stayed_ready_is_enough_and_a_clock_that_is_ahead_does_not_count() -> None:
    for steady in (1_000, 2_000):
        world = World()
        world.settle()
        world.steady = steady
        world.now += 60
        world.settle()
        assert (world.status.step, world.now) == (2, 1_060.0)
