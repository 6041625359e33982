"""What a release in steps waits for before a step."""

import pytest

from altershield.api.check_specs import CheckPhase, CheckSpec
from altershield.api.rollout import WaitingFor
from altershield.rollout.waits import waits_of

PRE_RELEASE, PRE_BATCH, POST_BATCH, POST_RELEASE = CheckPhase


def checks(*phases: CheckPhase) -> list[CheckSpec]:
    return [CheckSpec(phase.lower(), phase=phase) for phase in phases]


@pytest.mark.parametrize("phases", [(), (POST_BATCH,), (POST_RELEASE, POST_BATCH)])
def test_checks_of_pods_and_of_the_end_hold_nothing(phases: tuple[CheckPhase, ...]) -> None:
    assert waits_of(checks(*phases)).before(1, first=True) == ()


def test_check_before_the_release_is_waited_for_before_the_first_step_only() -> None:
    waits = waits_of(checks(PRE_RELEASE))
    assert waits.before(1, first=True) == (WaitingFor.CHECK,)
    assert waits.before(2, first=False) == ()


def test_check_before_a_batch_is_waited_for_before_each_step() -> None:
    waits = waits_of(checks(PRE_BATCH), [(PRE_BATCH, 1)])
    assert waits.before(1, first=True) == ()
    assert waits.before(2, first=False) == (WaitingFor.CHECK,)


def test_check_before_the_release_comes_first() -> None:
    both = checks(PRE_BATCH, PRE_RELEASE)
    assert waits_of(both).due(1, first=True) == PRE_RELEASE
    assert waits_of(both, [(PRE_RELEASE, 1)]).due(1, first=True) == PRE_BATCH
    assert waits_of(both, [(PRE_RELEASE, 1), (PRE_BATCH, 1)]).due(1, first=True) == ""
