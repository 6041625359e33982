"""What follows from the times of a status."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from altershield.api.release_window import ReleaseWindowStatus, WindowType
from kube_base.times import rfc3339
from reconciler.gates import times
from reconciler.gates.schedules import merged
from reconciler.gates.terms import DAY, Span
from reconciler.gates.times import Times

ALLOW, DENY = WindowType.ALLOW, WindowType.DENY
KNOWN = Times(((10, 20), (30, 40)), 100)


def test_times_go_into_a_status_and_come_back() -> None:
    status = ReleaseWindowStatus(intervals=times.intervals(KNOWN), computed_until=rfc3339(KNOWN.until))
    assert times.of(status) == KNOWN
    assert times.of(ReleaseWindowStatus()) == Times((), 0)


@pytest.mark.parametrize(
    ("now", "inside", "transition"),
    [(0, False, 10), (10, True, 20), (19, True, 20), (20, False, 30), (39, True, 40), (40, False, None)],
)
def test_window_changes_at_the_edges(now: int, inside: bool, transition: int | None) -> None:
    assert times.is_open(ALLOW, KNOWN, now) is inside
    assert times.is_open(DENY, KNOWN, now) is not inside
    assert times.next_transition(KNOWN, now) == transition


def test_after_the_times_allow_is_closed_and_deny_is_as_its_last_time_says() -> None:
    long = Times(((10, 200),), 100)
    assert times.next_transition(long, 50) is None
    assert (times.is_open(ALLOW, long, 99), times.is_open(ALLOW, long, 100)) == (True, False)
    assert [times.is_open(DENY, long, now) for now in (100, 199, 200)] == [False, False, True]


def test_more_than_200_times_reach_to_the_next_one() -> None:
    spans = [(each * 10, each * 10 + 5) for each in range(201)]
    assert times.bounded(spans[:200], 5000) == Times(tuple(spans[:200]), 5000)
    assert times.bounded(spans, 5000) == Times(tuple(spans[:200]), 2000)


def test_times_are_worked_out_anew_before_they_run_out() -> None:
    assert times.due(Times((), 35 * DAY)) == 7 * DAY
    hourly = times.bounded([(each * 3600, each * 3600 + 60) for each in range(300)], 35 * DAY)
    assert times.due(hourly) == 50 * 3600  # 150 of 200 times are left


spans = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=6).map(merged)


@given(spans, spans, st.integers(1, 40), st.integers(1, 40), st.integers(0, 20))
def test_times_agree_if_they_say_the_same_about_each_second(
    known: Sequence[Span], new: Sequence[Span], until: int, later: int, now: int
) -> None:
    def inside(each: Sequence[Span]) -> list[bool]:
        return [any(start <= at < stop for start, stop in each) for at in range(now, min(until, later))]

    same = times.agree(Times(tuple(known), until), Times(tuple(new), later), now)
    assert same is (inside(known) == inside(new))
