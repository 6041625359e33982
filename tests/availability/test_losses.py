"""Which failed releases lost calls explain: one per lost call, and only one that was under way at that time."""

import pytest

from bench.availability.losses import CALL_FAILED, UNNOTICED_PER_KILL, Cause, Loss, Sent, explained, wrong_with

LOST = f'Internal error occurred: {CALL_FAILED} "vdeployment.kb.io": EOF'


def failed(due: float, ended: float, failure: str = LOST) -> Sent:
    return Sent(due, ended - due, failure)


def lost(asked: float, cause: Cause = Cause.UNDER_WAY) -> Loss:
    return Loss(asked, cause)


def test_a_failed_release_is_explained_by_a_call_lost_during_it() -> None:
    release = failed(10.0, 11.0)
    assert explained([release], [lost(10.5, Cause.HUNG)]) == {release: Cause.HUNG}


@pytest.mark.parametrize("asked", [9.9, 11.1])
def test_a_call_lost_before_or_after_a_release_does_not_explain_its_failure(asked: float) -> None:
    assert explained([failed(10.0, 11.0)], [lost(asked)]) == {}


def test_a_lost_call_explains_only_one_of_several_concurrent_failures() -> None:
    releases = [failed(10.0 + number / 10, 11.0 + number / 10) for number in range(5)]
    assert len(explained(releases, [lost(10.6), lost(10.7)])) == 2


def test_a_failure_other_than_of_the_webhook_call_is_not_explained() -> None:
    assert explained([failed(10.0, 11.0, "the object has been modified")], [lost(10.5)]) == {}


def test_overlapping_failures_are_explained_if_each_can_be_assigned_a_lost_call() -> None:
    long, early, late = failed(10.0, 13.0), failed(10.1, 10.9), failed(11.0, 12.0)
    assert set(explained([long, early, late], [lost(11.5), lost(10.5), lost(12.5)])) == {long, early, late}


def test_an_unexplained_failure_is_reported() -> None:
    release, other = failed(10.0, 11.0), failed(10.0, 11.0, "another one")
    assert wrong_with([release, other], {release: Cause.UNDER_WAY}, kills=1) == ("another one",)


@pytest.mark.parametrize("kills", [0, 1, 3])
def test_more_unnoticed_losses_per_kill_than_allowed_are_reported(kills: int) -> None:
    most = kills * UNNOTICED_PER_KILL
    releases = [failed(10.0 + number, 10.5 + number) for number in range(most + 1)]
    assert wrong_with(releases[:most], dict.fromkeys(releases[:most], Cause.UNNOTICED), kills) == ()
    assert wrong_with(releases, dict.fromkeys(releases, Cause.UNNOTICED), kills) != ()
