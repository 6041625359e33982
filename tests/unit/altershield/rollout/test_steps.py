"""Which step comes next, and with which one a release begins."""

import pytest

from altershield.api.rollout import Rollout, Step
from altershield.rollout.steps import first_step, next_step, of_kind, step_with

ROLLOUT = Rollout(pods=(2, "10%", 5, 4, "80%"))
"""With 10 replicas: 2, 1, 5, 4, 8 and all pods."""


@pytest.mark.parametrize(
    ("number", "replicas", "following"),
    [(0, 10, 1), (1, 10, 3), (2, 10, 3), (3, 10, 5), (5, 10, 6), (6, 10, 6), (1, 2, 6), (0, 1, 1), (1, 1, 6)],
)
def test_step_that_is_not_larger_than_all_before_is_skipped(number: int, replicas: int, following: int) -> None:
    assert next_step(ROLLOUT, number, replicas) == following


@pytest.mark.parametrize(("pods", "number"), [(1, 1), (2, 1), (3, 3), (5, 3), (6, 5), (8, 5), (9, 5), (10, 5)])
def test_repair_begins_with_the_first_step_that_has_the_pods_of_the_failed_version(pods: int, number: int) -> None:
    assert step_with(ROLLOUT, pods, 10) == first_step(ROLLOUT, pods, 10) == number


def test_step_that_selects_nodes_is_never_skipped() -> None:
    rollout = Rollout(steps=(Step(5), Step(node_selector={"pool": "canary"}), Step(5), Step(6)))
    assert [next_step(rollout, each, 10) for each in range(5)] == [1, 2, 4, 4, 5]
    assert step_with(rollout, 6, 10) == 2


def test_kinds_whose_nodes_can_be_chosen_have_the_selector_of_a_step_and_others_its_pods() -> None:
    labels = {"pool": "canary"}
    nodes, pods = Step(node_selector=labels), Step(2)
    rollout = Rollout(steps=(Step(1, node_selector=labels), nodes, pods), step_deadline_seconds=60)
    assert of_kind(rollout, evicts=True) == Rollout(steps=(nodes, nodes, pods), step_deadline_seconds=60)
    assert of_kind(rollout, evicts=False) == Rollout(steps=(Step(1), pods), step_deadline_seconds=60)
    assert of_kind(Rollout(steps=(nodes,)), evicts=False) is None
    assert of_kind(ROLLOUT, evicts=True) == ROLLOUT


def test_release_without_a_held_step_begins_with_the_last_one() -> None:
    assert first_step(Rollout(steps=(Step("100%"),)), 3, 10) == 1
