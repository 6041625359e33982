"""In which step a failure would have stopped a release."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from altershield.api.rollout import Rollout, Step
from altershield.rollout.observed import Failure, HeldStep, held_steps, stopping_step

STEPS = (HeldStep(1, 1, 60), HeldStep(3, 3, 300), HeldStep(4, 10, 0))
failures = st.builds(Failure, st.integers(1, 20), st.integers(0, 1000))


def test_held_steps_are_those_with_more_pods_than_before() -> None:
    steps = (
        Step(1, 60),
        Step(node_selector={"pool": "canary"}),
        Step("30%", 300),
        Step(2, 7),
        Step("25%", 8),
        Step(10, 0),
    )
    found = tuple(held_steps(Rollout(steps=steps), 10))
    assert found == (HeldStep(1, 1, 60), HeldStep(3, 3, 300), HeldStep(6, 10, 0))
    of_nodes = tuple(held_steps(Rollout(steps=steps[:3]), 10, (0, 2, 0)))
    assert of_nodes == (HeldStep(1, 1, 60), HeldStep(2, 2, 300), HeldStep(3, 3, 300))


def number(*found: Failure) -> int | None:
    step = stopping_step(STEPS, found)
    return step.number if step is not None else None


@pytest.mark.parametrize(("place", "stopped"), [(1, 1), (2, 3), (3, 3), (4, 4), (10, 4), (11, None)])
def test_pod_that_never_passed_stops_the_step_that_has_it(place: int, stopped: int | None) -> None:
    assert number(Failure(place, 0)) == stopped


@pytest.mark.parametrize(("seconds", "stopped"), [(60, 1), (61, 3), (360, 3), (361, None)])
def test_pod_that_failed_later_stops_the_step_that_would_have_soaked_then(seconds: int, stopped: int | None) -> None:
    assert number(Failure(1, seconds)) == stopped


def test_first_of_several_failures_counts() -> None:
    assert number(Failure(11, 0), Failure(2, 100), Failure(1, 500)) == 3
    assert number() is None
    assert stopping_step((), [Failure(1, 0)]) is None


@given(st.lists(failures, min_size=1), failures)
def test_another_failure_never_lets_the_release_come_further(known: list[Failure], more: Failure) -> None:
    before, after = number(*known), number(*known, more)
    assert before is None or (after is not None and after <= before)
