"""What follows from the times of a status."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from altershield.api.gates.windows import ReleaseWindowStatus
from kube_base.times import rfc3339
from reconciler.gates import times
from reconciler.gates.schedules import merged
from reconciler.gates.terms import DAY, Span
from reconciler.gates.times import Times

KNOWN = Times(((10, 20), (30, 40)), 100)


def test_times_go_into_a_status_and_come_back() -> None:
    status = ReleaseWindowStatus(intervals=times.intervals(KNOWN), computed_until=rfc3339(KNOWN.until))
    assert times.of(status) == KNOWN
    assert times.of(ReleaseWindowStatus()) == Times((), 0)


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
