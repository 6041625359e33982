"""The phases of a release in steps."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from altershield.api.rollout import Phase, Rollout
from reconciler.rollout.draft import Progress
from reconciler.rollout.progress import progress, promoted
from tests.unit.reconciler.rollout.world import World, hold


def test_release_goes_to_one_pod_then_to_thirty_percent_then_to_all() -> None:
    world = World()
    reached = []
    for _ in range(4):
        world.settle()
        reached.append((world.status.phase, world.pods))
        world.now += 60
    assert reached == [("Soaking", 1), ("Soaking", 3), ("Done", 10), ("Done", 10)]
    assert world.hold is None
    assert [each.pods for each in world.status.passed_steps] == [1, 3, 10]
    assert world.events.count("StepStarted") == 3
    assert world.events[-1] == "StepsFinished"


def test_full_promotion_skips_soaks_and_not_the_verification() -> None:
    world = World()
    world.reconcile()
    found = promoted(world.status, world.view, "anna", world.now, full=True)
    assert isinstance(found, Progress)
    world.status = found.status
    world.reconcile()
    assert world.pods == 0
    world.settle(60)
    assert (world.status.phase, world.pods) == (Phase.DONE, 10)


ACTIONS = ("tick", "scale", "roll", "fail", "pass", "crash", "wait")
pods_of_steps = st.one_of(st.integers(1, 40), st.integers(1, 100).map(lambda each: f"{each}%"))


@settings(max_examples=150, deadline=None)
@given(
    st.lists(pods_of_steps, min_size=1, max_size=5), st.integers(1, 40), st.one_of(st.none(), st.integers(1, 10)),
    st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(1, 40))),
)  # fmt: skip
def test_pods_never_exceed_the_step_and_every_run_ends(
    steps: list[int | str], replicas: int, at_once: int | None, actions: list[tuple[str, int]]
) -> None:
    rollout = Rollout(pods=tuple(steps), soak_seconds=10)
    world = World(rollout=rollout, replicas=replicas, at_once=at_once)

    for action, number in actions:
        world.act(action, number)
        before = world.hold.pods if world.hold is not None else 0
        step = world.status.step
        world.reconcile()
        world.check(before)
        assert world.status.step >= step
    world.failed, world.waiting = False, ()
    for _ in range(400):
        world.reconcile()
        world.roll()
        world.now += 1
    assert world.status.phase == Phase.DONE
    assert (world.hold, world.pods) == (None, world.replicas)


def test_stored_status_alone_decides_after_a_crash_before_any_write() -> None:
    """A decision that is lost is made again."""
    world = World()
    for _ in range(200):
        lost = replace(world)
        progress(lost.status, lost.view, lost.now)
        world.reconcile()
        world.roll()
        world.now += 5
    assert world.status.phase == Phase.DONE


def test_hold_of_a_release_that_has_ended_ends() -> None:
    """Another process may have written the hold again."""
    world = World()
    for _ in range(4):
        world.settle()
        world.now += 60
    assert (world.status.phase, world.reconcile().ends_hold) == (Phase.DONE, False)
    world.hold = hold(3)
    assert world.reconcile().ends_hold
