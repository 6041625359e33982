"""Which failures of the measurements are excused: as many as calls were lost, of releases that these calls were for."""

import pytest

from bench.availability.losses import CALL_FAILED, UNNOTICED_PER_KILL, Cause, Loss, Sent, explained, wrong_with

LOST = f'Internal error occurred: {CALL_FAILED} "gate": EOF'


def failed(due: float, ended: float, failure: str = LOST) -> Sent:
    return Sent(due, ended - due, failure)


def lost(asked: float, cause: Cause = Cause.UNDER_WAY) -> Loss:
    return Loss(asked, cause)


def test_a_failure_is_excused_by_a_call_that_was_lost_while_the_release_was_under_way() -> None:
    release = failed(10.0, 11.0)
    assert explained([release], [lost(10.5, Cause.HUNG)]) == {release: Cause.HUNG}


@pytest.mark.parametrize("asked", [9.9, 11.1])
def test_a_call_before_or_after_the_release_excuses_nothing(asked: float) -> None:
    assert explained([failed(10.0, 11.0)], [lost(asked)]) == {}


def test_each_lost_call_excuses_one_failure_and_no_other_that_was_under_way_too() -> None:
    releases = [failed(10.0 + number / 10, 11.0 + number / 10) for number in range(5)]
    assert len(explained(releases, [lost(10.6), lost(10.7)])) == 2


def test_another_failure_than_of_the_call_is_never_excused() -> None:
    assert explained([failed(10.0, 11.0, "the object has been modified")], [lost(10.5)]) == {}


def test_releases_that_overlap_are_excused_whenever_each_can_have_a_call_of_its_own() -> None:
    long, early, late = failed(10.0, 13.0), failed(10.1, 10.9), failed(11.0, 12.0)
    assert set(explained([long, early, late], [lost(11.5), lost(10.5), lost(12.5)])) == {long, early, late}


def test_a_failure_without_an_excuse_is_wrong() -> None:
    release, other = failed(10.0, 11.0), failed(10.0, 11.0, "another one")
    assert wrong_with([release, other], {release: Cause.UNDER_WAY}, kills=1) == ("another one",)


@pytest.mark.parametrize("kills", [0, 1, 3])
def test_no_more_than_a_few_go_unnoticed_with_each_kill(kills: int) -> None:
    most = kills * UNNOTICED_PER_KILL
    releases = [failed(10.0 + number, 10.5 + number) for number in range(most + 1)]
    assert wrong_with(releases[:most], dict.fromkeys(releases[:most], Cause.UNNOTICED), kills) == ()
    assert wrong_with(releases, dict.fromkeys(releases, Cause.UNNOTICED), kills) != ()
