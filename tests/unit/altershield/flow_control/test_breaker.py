"""The breaker: what opens and closes it."""

import msgspec
import pytest

from altershield.api.flow_control import Breaker, BreakerMode, BreakerState, PodDeletionFlowControl
from altershield.flow_control import breaker as breakers
from altershield.flow_control.decision import Working, step, undo
from altershield.flow_control.deletion import Operation
from altershield.flow_control.rules import cooldown
from altershield.flow_control.settling import Seen, settle
from kube_base.times import rfc3339
from tests.unit.altershield.flow_control.builders import NOW, asked, deletion, one, policy, refusal, written

OPEN = "PodDeletionFlowControl guard is open since 2027-01-15T08:00:00Z (rule 1m/20)"


def tripped(mode: BreakerMode, *rules: str) -> PodDeletionFlowControl:
    """A policy whose breaker a deletion beyond the limit has opened."""
    of = asked(policy(*(rules or ("1m/20",)), breaker=mode), *(f"u{number}" for number in range(20)))
    done, after = one(of, "beyond")
    assert done.verdicts[0].refusal == "PodDeletionFlowControl guard: 20 of 20 pod deletions in 1m are used"
    assert str(done.verdicts[0].hints[0]).startswith("this deletion opens the breaker")
    assert after.status.breaker.state == BreakerState.OPEN
    assert after.status.last_denied[0].name == "web-beyond"
    return after


def with_breaker(of: PodDeletionFlowControl, breaker: Breaker) -> PodDeletionFlowControl:
    return written(of, msgspec.structs.replace(of.status, breaker=breaker))


def state(of: PodDeletionFlowControl, now: int) -> BreakerState:
    return breakers.current(of.status.breaker, of.spec, now).state


def test_manual_breaker_refuses_all_deletions_until_a_person_resets_it() -> None:
    of = tripped(BreakerMode.MANUAL)
    for now in (NOW, NOW + 100, NOW + 10**7):
        done, _ = one(of, "x", now)
        assert (done.status, done.verdicts[0].refusal) == (None, OPEN)
    assert next(str(hint) for hint in done.verdicts[0].hints) == (
        "to let deletions pass again, a user with the ClusterRole altershield-breaker runs: "
        "altershield breaker reset guard"
    )
    reset = with_breaker(of, breakers.reset_by("ann", NOW + 100))
    assert refusal(reset, "x", NOW + 100) == ""
    assert reset.status.breaker == Breaker(since="2027-01-15T08:01:40Z", reset_by="ann")


def test_patch_of_the_state_alone_resets_and_opens_the_breaker() -> None:
    of = tripped(BreakerMode.MANUAL)
    reset = with_breaker(of, msgspec.structs.replace(of.status.breaker, state=BreakerState.CLOSED))
    assert refusal(reset, "x", NOW + 100) == ""
    assert breakers.current(reset.status.breaker, reset.spec, NOW + 100) == Breaker(since="2027-01-15T08:01:40Z")
    opened = with_breaker(policy("1m/5", breaker=BreakerMode.AUTO), Breaker(BreakerState.OPEN))
    assert refusal(opened, "x") == (
        "PodDeletionFlowControl guard is open since 2027-01-15T08:00:00Z (opened by unknown)"
    )


def test_reset_breaker_opens_again_once_the_later_deletions_reach_a_limit() -> None:
    of = with_breaker(tripped(BreakerMode.MANUAL), breakers.reset_by("ann", NOW + 2))
    done, of = one(of, "x", NOW + 3)  # the window is still full
    assert done.verdicts[0].refusal == "PodDeletionFlowControl guard: 20 of 20 pod deletions in 1m are used"
    assert state(of, NOW + 3) == BreakerState.CLOSED
    of = asked(of, *(f"later{number}" for number in range(20)), now=NOW + 70)
    _, of = one(of, "y", NOW + 71)
    assert state(of, NOW + 71) == BreakerState.OPEN


def test_automatic_breaker_half_opens_after_its_cooldown_and_then_closes() -> None:
    of = tripped(BreakerMode.AUTO)
    assert of.status.breaker.until == rfc3339(NOW + 600)
    assert next(str(hint) for hint in one(of, "x", NOW + 599)[0].verdicts[0].hints) == (
        "the breaker lets some deletions pass from 2027-01-15T08:10:00Z"
    )
    assert [state(of, NOW + after) for after in (599, 600, 659, 660)] == [
        BreakerState.OPEN, BreakerState.HALF_OPEN, BreakerState.HALF_OPEN, BreakerState.CLOSED,
    ]  # fmt: skip
    of = asked(of, "x", "y", now=NOW + 601)  # a tenth of 20
    assert of.status.breaker == Breaker(
        BreakerState.HALF_OPEN, rfc3339(NOW + 600), rfc3339(NOW + 660), rule="1m/20", passed=2
    )
    done, opened = one(of, "z", NOW + 602)
    assert done.verdicts[0].refusal == (
        "PodDeletionFlowControl guard: 2 of 2 pod deletions of the half-open breaker are used"
    )
    assert opened.status.breaker.since == rfc3339(NOW + 602)
    assert state(of, NOW + 660) == BreakerState.CLOSED


def test_repeated_deletion_passes_a_half_open_breaker_once() -> None:
    of = tripped(BreakerMode.AUTO)
    for after in range(601, 631, 5):  # as kubectl drain repeats an eviction that a PodDisruptionBudget blocks
        of = asked(of, "blocked", now=NOW + after, operation=Operation.EVICT)
        assert (state(of, NOW + after), of.status.breaker.passed) == (BreakerState.HALF_OPEN, 1)
    of = asked(of, "x", now=NOW + 632)
    assert refusal(of, "y", NOW + 632)


def test_deletion_that_did_not_happen_leaves_its_place_in_a_half_open_breaker() -> None:
    of = asked(tripped(BreakerMode.AUTO), "x", "y", now=NOW + 601, shared=True)
    given_back = undo(of, "x", "claim-of-x", NOW + 602)
    assert given_back is not None
    assert given_back.breaker.passed == 1
    work = Working(of, NOW + 645)
    settle(work, {"x": Seen.ALIVE, "y": Seen.ALIVE})
    assert refusal(written(of, work.status()), "z", NOW + 646) == ""


def test_dry_run_of_a_repeated_deletion_leaves_no_place_in_a_half_open_breaker() -> None:
    of = asked(tripped(BreakerMode.AUTO), "x", "y", now=NOW + 601)
    done = step(of, [deletion("x", dry_run=True), deletion("z")], NOW + 606)
    assert [bool(each.refusal) for each in done.verdicts] == [False, True]


@pytest.mark.parametrize("mode", [BreakerMode.MANUAL, BreakerMode.AUTO])
def test_time_in_the_future_keeps_no_breaker_from_opening_or_closing(mode: BreakerMode) -> None:
    closed = with_breaker(policy("1m/5", breaker=mode), Breaker(since="2099-01-01T00:00:00Z"))
    of = asked(asked(closed, "early"), *"abcde", now=NOW + 70)
    assert state(one(of, "f", NOW + 71)[1], NOW + 71) == BreakerState.OPEN
    opened = with_breaker(closed, Breaker(BreakerState.OPEN, since="2099-01-01T00:00:00Z", opened_by="ann"))
    assert breakers.current(opened.status.breaker, opened.spec, NOW).since == rfc3339(NOW)


def test_full_window_opens_a_breaker_that_is_half_open() -> None:
    of = tripped(BreakerMode.AUTO, "1m/20", "2h/20")
    _, again = one(of, "x", NOW + 601)
    assert (again.status.breaker.state, again.status.breaker.rule) == (BreakerState.OPEN, "2h/20")


@pytest.mark.parametrize("stored", list(BreakerState))
def test_changed_mode_takes_effect_at_once(stored: BreakerState) -> None:
    breaker = Breaker(stored, rfc3339(NOW), rule="1m/20")
    off, manual = policy("1m/20"), policy("1m/20", breaker=BreakerMode.MANUAL)
    assert breakers.current(breaker, off.spec, NOW + 5).state == BreakerState.CLOSED
    wanted = BreakerState.CLOSED if stored == BreakerState.CLOSED else BreakerState.OPEN
    assert breakers.current(breaker, manual.spec, NOW + 5).state == wanted
    shorter = policy("1m/20", breaker=BreakerMode.AUTO, cooldown="1s")
    assert breakers.current(breaker, shorter.spec, NOW + 100).state == BreakerState.CLOSED


@pytest.mark.parametrize("since", ["", "soon", "99999999-01-01T00:00:00Z"])
def test_unreadable_times_stop_no_deletion_for_ever(since: str) -> None:
    breaker = Breaker(BreakerState.OPEN, since, rule="1m/20")
    of = with_breaker(policy("1m/20", breaker=BreakerMode.AUTO), breaker)
    now = breakers.current(of.status.breaker, of.spec, NOW)
    assert now.until == rfc3339(NOW + 600)  # the leading reconciler stores it
    assert state(with_breaker(of, now), NOW + 600) == BreakerState.HALF_OPEN


def test_clocks_may_differ_by_two_seconds() -> None:
    spec = policy("1m/20", breaker=BreakerMode.MANUAL).spec
    for ahead, since in ((2, 2), (3, 0)):
        breaker = Breaker(since=rfc3339(NOW + ahead), reset_by="ann")
        assert breakers.current(breaker, spec, NOW).since == rfc3339(NOW + since)


def test_breaker_begins_each_state_with_no_deletion_passed() -> None:
    spec = policy("1m/20", breaker=BreakerMode.AUTO).spec
    patched = Breaker(since=rfc3339(NOW), passed=3)
    assert breakers.current(patched, spec, NOW + 5) == Breaker(since=rfc3339(NOW + 5))
    opened = Breaker(BreakerState.OPEN, rfc3339(NOW), rule="1m/20", passed=2)
    half_open = breakers.current(opened, spec, NOW + 601)
    assert (half_open.state, half_open.passed) == (BreakerState.HALF_OPEN, 0)


@pytest.mark.parametrize(("limit", "passing"), [(5, 1), (19, 1), (20, 2), (0, 1)])
def test_half_open_breaker_lets_a_tenth_of_the_limit_pass_and_one_deletion_at_least(limit: int, passing: int) -> None:
    assert breakers.quota(policy(f"1m/{limit}", "1h/1000").spec) == passing


def test_one_limit_that_is_reached_since_the_reset_opens_the_breaker_again() -> None:
    of = policy("1m/2", "1h/4", breaker=BreakerMode.MANUAL)
    of = with_breaker(asked(of, "a", "b"), breakers.reset_by("ann", NOW + 110))
    _, after = one(asked(of, "c", "d", now=NOW + 120), "e", NOW + 121)
    assert after.status.breaker.state == BreakerState.OPEN


def test_deletion_that_was_counted_before_the_breaker_was_half_open_leaves_no_place_in_it() -> None:
    breaker = Breaker(BreakerState.HALF_OPEN, rfc3339(NOW), passed=2)
    assert [breakers.taken_back(breaker, NOW + after).passed for after in (-1, 0, 5)] == [2, 1, 1]


def test_open_breaker_still_names_who_reset_it_last() -> None:
    assert breakers.opened_by(breakers.reset_by("bob", NOW), "ann", NOW + 5) == Breaker(
        BreakerState.OPEN, rfc3339(NOW + 5), opened_by="ann", reset_by="bob"
    )


def test_cooldown_that_cannot_be_read_is_that_of_a_spec_without_one() -> None:
    assert [cooldown(policy("1m/1", cooldown=text).spec) for text in ("soon", "5m")] == [600, 300]
