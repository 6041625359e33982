"""The steps of a release, and the sentences about them."""

import msgspec
import pytest

from altershield.api.rollout import PassedStep, Phase, RolloutStatus, WaitingFor
from altershield.releases import steps
from altershield.releases.steps import StepState
from kube_base.times import rfc3339
from tests.unit.altershield.releases.steps import NOW, ROLLOUT, SOAKING
from tests.unit.altershield.views.builders import in_steps


def test_each_step_is_passed_present_skipped_or_still_to_come() -> None:
    shown = steps.views(in_steps(ROLLOUT, SOAKING), 10)
    assert [(each.number, each.pods, each.state) for each in shown] == [
        (1, 1, StepState.PASSED),
        (2, 1, StepState.SKIPPED),
        (3, 3, Phase.SOAKING),
        (4, 10, StepState.PENDING),
    ]
    assert [each.taken for each in shown] == [True, False, True, False]
    assert (shown[0].begin, shown[0].end, shown[0].promoted_by) == (NOW - 900, NOW - 50, "ann")
    assert [each.approval for each in shown] == [False, False, True, False]


def test_release_without_steps_has_none() -> None:
    assert steps.views(in_steps(ROLLOUT, RolloutStatus()), 10) == ()
    assert not steps.in_steps(RolloutStatus())
    assert steps.earliest_end(in_steps(ROLLOUT, RolloutStatus()), 10, NOW) == 0


def test_full_promotion_leaves_no_soak_and_no_approval() -> None:
    full = msgspec.structs.replace(SOAKING, phase=Phase.VERIFYING, full=True)
    shown = steps.views(in_steps(ROLLOUT, full), 10)
    assert [(each.soak_seconds, each.approval) for each in shown] == [(0, False)] * 4
    assert steps.earliest_end(in_steps(ROLLOUT, full), 10, NOW) == NOW


@pytest.mark.parametrize(
    ("phase", "seconds"),
    [
        (Phase.HELD, 60 + 120),
        (Phase.VERIFYING, 60 + 120),
        (Phase.SOAKING, 40 + 120),
        (Phase.WAITING_FOR_APPROVAL, 120),
        (Phase.STOPPED, None),
        (Phase.DONE, None),
    ],
)
def test_earliest_end_has_the_soaks_that_are_left(phase: Phase, seconds: int | None) -> None:
    found = steps.earliest_end(in_steps(ROLLOUT, msgspec.structs.replace(SOAKING, phase=phase)), 10, NOW)
    assert found == (NOW + seconds if seconds is not None else 0)


@pytest.mark.parametrize("phase", [*Phase, "Later"])
def test_each_phase_has_a_sentence(phase: str) -> None:
    assert steps.sentence(msgspec.structs.replace(SOAKING, phase=phase)).startswith("step 3 of 4: ")


def test_sentence_names_what_it_waits_for() -> None:
    held = msgspec.structs.replace(
        SOAKING, phase=Phase.VERIFYING, passed=2, waiting_for=(WaitingFor.PERSON, WaitingFor.QUOTA), held_by="ann"
    )
    assert steps.sentence(held) == (
        "step 3 of 4: 2 of 3 pods are verified; it waits: ann holds the release until somebody promotes it; it waits: "
        "a ResourceQuota refuses a further pod"
    )
    assert steps.sentence(SOAKING) == f"step 3 of 4: its 3 pods have to stay verified until {rfc3339(NOW + 40)}"


@pytest.mark.parametrize("waiting_for", [*WaitingFor, "later"])
def test_each_reason_to_wait_has_a_sentence(waiting_for: str) -> None:
    (found,) = steps.reasons(msgspec.structs.replace(SOAKING, waiting_for=(waiting_for,)))
    assert found
    assert (found == waiting_for) is (waiting_for == "later")


def test_release_waits_for_a_person_before_an_approval_and_in_a_hold() -> None:
    assert not steps.waits_for_person(SOAKING)
    assert steps.waits_for_person(msgspec.structs.replace(SOAKING, phase=Phase.WAITING_FOR_APPROVAL))
    held = msgspec.structs.replace(SOAKING, waiting_for=(WaitingFor.PERSON,))
    assert steps.waits_for_person(held)
    assert not steps.waits_for_person(msgspec.structs.replace(held, phase=Phase.ABORTED))
    later = msgspec.structs.replace(SOAKING, held_by="ann")
    assert steps.waits_for_person(later), "it is held, and will wait after its soak"
    assert steps.reasons(later) == ["ann holds the release until somebody promotes it"]


def test_step_that_was_skipped_has_passed_with_the_next_one() -> None:
    assert [steps.has_passed(SOAKING, each) for each in (1, 2, 3)] == [True, False, False]
    later = msgspec.structs.replace(SOAKING, passed_steps=(*SOAKING.passed_steps, PassedStep(3, 3)))
    assert steps.has_passed(later, 2)
    assert steps.has_passed(msgspec.structs.replace(SOAKING, phase=Phase.DONE), 4)


def test_step_is_verified_in_its_soak_and_while_a_person_holds_it_after() -> None:
    assert steps.is_verified(SOAKING)
    assert not steps.is_verified(msgspec.structs.replace(SOAKING, phase=Phase.VERIFYING))
    assert steps.is_verified(msgspec.structs.replace(SOAKING, phase=Phase.HELD))
    assert not steps.is_verified(msgspec.structs.replace(SOAKING, phase=Phase.HELD, pods=5))


def test_plan_of_a_policy_skips_steps_that_are_too_small_for_the_replicas() -> None:
    assert [each.state for each in steps.plan(ROLLOUT, 10)] == ["Pending", "Skipped", "Pending", "Pending"]
    assert [each.pods for each in steps.plan(ROLLOUT, 200)] == [1, 10, 60, 200]
    assert steps.least_seconds(ROLLOUT, 10) == 600 + 60 + 120
    assert steps.least_seconds(ROLLOUT, 200) == 600 + 300 + 60 + 120
