"""The times of schedules, in particular where clocks change."""

import bisect
import datetime
import functools
import itertools
import zoneinfo
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from altershield.api.gates.windows import Day
from reconciler.gates.problems import ScheduleError
from reconciler.gates.schedules import intervals, merged
from reconciler.gates.terms import DAY, Span

from .specs import at, shown, spec

WEEKEND = {"weekly": {"days": ["Sat", "Sun"]}}


def times(begin: str, end: str, *schedules: dict[str, Any], zone: str = "UTC") -> list[str]:
    """The times of these schedules between two local times."""
    found = intervals(spec(*schedules, zone=zone), {}, at(begin, zone), at(end, zone))
    return shown(found, zone)


def test_weekend_in_shanghai_begins_on_friday_by_utc() -> None:
    found = intervals(spec(WEEKEND, zone="Asia/Shanghai"), {}, at("2026-11-25 00:00"), at("2026-12-09 00:00"))
    assert shown(found) == [
        "11-27 16:00+00:00 > 11-29 16:00+00:00",
        "12-04 16:00+00:00 > 12-06 16:00+00:00",
    ]


def test_time_that_has_begun_has_its_real_begin() -> None:
    assert times("2026-11-29 12:00", "2026-11-30 12:00", WEEKEND) == ["11-28 00:00+00:00 > 11-30 00:00+00:00"]
    long = {"cron": {"schedule": "0 0 1 * *", "durationSeconds": 31 * DAY}}
    assert times("2026-11-28 00:00", "2026-11-29 00:00", long) == ["11-01 00:00+00:00 > 12-02 00:00+00:00"]


def test_time_that_ends_at_the_begin_of_the_span_is_left_out() -> None:
    assert times("2026-11-30 00:00", "2026-12-05 00:00", WEEKEND) == []


@pytest.mark.parametrize(
    ("from_", "to", "expected"),
    [
        ("22:00", "06:00", ["11-28 22:00+00:00 > 11-29 06:00+00:00"]),
        ("12:00", "12:00", ["11-28 12:00+00:00 > 11-29 12:00+00:00"]),
        ("00:00", "24:00", ["11-28 00:00+00:00 > 11-29 00:00+00:00"]),
        ("09:30", "09:31", ["11-28 09:30+00:00 > 11-28 09:31+00:00"]),
    ],
)
def test_weekly_time_that_does_not_end_later_ends_on_the_next_day(from_: str, to: str, expected: list[str]) -> None:
    weekly = {"weekly": {"days": ["Sat"], "from": from_, "to": to}}
    assert times("2026-11-27 00:00", "2026-12-04 00:00", weekly) == expected


def test_dates_include_the_last_day() -> None:
    dates = {"dates": {"from": "2026-12-20", "to": "2027-01-02"}}
    zone = "America/New_York"
    assert times("2026-12-01 00:00", "2027-01-05 00:00", dates, zone=zone) == ["12-20 00:00-05:00 > 01-03 00:00-05:00"]


def test_dates_without_an_end_may_be_written_as_the_last_year() -> None:
    found = intervals(
        spec({"dates": {"from": "2026-12-20", "to": "9999-12-31"}}), {}, at("2026-12-21 00:00"), at("2026-12-22 00:00")
    )
    assert found[0][0] == at("2026-12-20 00:00")
    assert found[0][1] > at("2900-01-01 00:00")


def test_times_of_several_schedules_that_overlap_or_touch_are_one() -> None:
    night = {"weekly": {"days": ["Fri"], "from": "18:00", "to": "24:00"}}
    monday = {"cron": {"schedule": "0 0 * * 1", "durationSeconds": 3600}}
    assert times("2026-11-23 12:00", "2026-12-02 00:00", WEEKEND, night, monday) == [
        "11-27 18:00+00:00 > 11-30 01:00+00:00"
    ]


@pytest.mark.parametrize(
    ("day", "from_", "to", "expected"),
    [
        # the hour from 2:00 to 3:00 does not exist on 29 March
        ("2026-03-29", "02:30", "04:00", ["03-29 03:00+02:00 > 03-29 04:00+02:00"]),
        ("2026-03-29", "01:30", "02:30", ["03-29 01:30+01:00 > 03-29 03:00+02:00"]),
        ("2026-03-29", "02:00", "03:00", []),
        # it comes twice on 25 October: each time counts when it comes first
        ("2026-10-25", "02:30", "02:45", ["10-25 02:30+02:00 > 10-25 02:45+02:00"]),
        ("2026-10-25", "02:30", "03:30", ["10-25 02:30+02:00 > 10-25 03:30+01:00"]),
        ("2026-10-25", "01:00", "02:00", ["10-25 01:00+02:00 > 10-25 02:00+02:00"]),
    ],
)
def test_weekly_in_the_hour_of_berlin_that_is_missing_or_comes_twice(
    day: str, from_: str, to: str, expected: list[str]
) -> None:
    weekly = {"weekly": {"days": ["Sun"], "from": from_, "to": to}}
    assert times(f"{day} 00:00", f"{day} 23:00", weekly, zone="Europe/Berlin") == expected


@pytest.mark.parametrize(
    ("day", "schedule", "expected"),
    [
        ("2026-03-29", "30 2 * * *", ["03-29 03:00+02:00 > 03-29 03:10+02:00"]),
        ("2026-10-25", "30 2 * * *", ["10-25 02:30+02:00 > 10-25 02:40+02:00"]),
        (
            "2026-10-25",
            "30 */2 * * *",
            [
                "10-25 00:30+02:00 > 10-25 00:40+02:00",
                "10-25 02:30+02:00 > 10-25 02:40+02:00",
                "10-25 02:30+01:00 > 10-25 02:40+01:00",
                "10-25 04:30+01:00 > 10-25 04:40+01:00",
            ],
        ),
    ],
)
def test_cron_in_the_hour_of_berlin_that_is_missing_or_comes_twice(
    day: str, schedule: str, expected: list[str]
) -> None:
    cron = {"cron": {"schedule": schedule, "durationSeconds": 600}}
    assert times(f"{day} 00:00", f"{day} 05:00", cron, zone="Europe/Berlin") == expected


def test_day_that_apia_left_out() -> None:
    """30 December 2011, a Friday."""
    zone = "Pacific/Apia"
    friday = {"weekly": {"days": ["Fri"]}}
    assert times("2011-12-27 00:00", "2012-01-03 00:00", friday, zone=zone) == []
    thursday_to_saturday = {"dates": {"from": "2011-12-29", "to": "2011-12-31"}}
    found = intervals(spec(thursday_to_saturday, zone=zone), {}, at("2011-12-27 00:00"), at("2012-01-03 00:00"))
    assert [stop - start for start, stop in found] == [2 * DAY]


def test_lord_howe_moves_its_clocks_by_half_an_hour() -> None:
    zone = "Australia/Lord_Howe"
    weekly = {"weekly": {"days": ["Sun"], "from": "02:15", "to": "02:40"}}
    assert times("2026-10-04 00:00", "2026-10-05 00:00", weekly, zone=zone) == ["10-04 02:30+11:00 > 10-04 02:40+11:00"]
    again = {"weekly": {"days": ["Sun"], "from": "01:45", "to": "02:15"}}
    assert times("2026-04-05 00:00", "2026-04-06 00:00", again, zone=zone) == ["04-05 01:45+11:00 > 04-05 02:15+10:30"]


@pytest.mark.parametrize(("old", "new"), [("Europe/Kiev", "Europe/Kyiv"), ("Asia/Calcutta", "Asia/Kolkata")])
def test_zone_that_was_renamed_is_known_by_both_names(old: str, new: str) -> None:
    span = at("2026-11-25 00:00"), at("2026-12-25 00:00")
    assert intervals(spec(WEEKEND, zone=old), {}, *span) == intervals(spec(WEEKEND, zone=new), {}, *span) != []


@pytest.mark.parametrize(
    ("schedule", "zone", "message"),
    [
        (WEEKEND, "Mars/Base", "spec.timeZone: Mars/Base is not a name of the IANA time zone database"),
        (WEEKEND, "../etc/passwd", "spec.timeZone: ../etc/passwd is not a name"),
        (WEEKEND, "America", "spec.timeZone: America is not a name"),
        ({"cron": {"schedule": "0 0 18 * * 5", "durationSeconds": 60}}, "UTC", "does not have five fields"),
        ({"cron": {"schedule": "61 18 * * 5", "durationSeconds": 60}}, "UTC", "is not a cron schedule: Bad minute"),
        ({"cron": {"schedule": "0 0 30 2 *", "durationSeconds": 60}}, "UTC", "is not a cron schedule"),
        ({"cron": {"schedule": "0 0 1#2 * *", "durationSeconds": 60}}, "UTC", "schedules[0]: cron: '0 0 1#2 * *'"),
        ({"dates": {"from": "2026-02-31", "to": "2026-03-01"}}, "UTC", "dates: 2026-02-31 is not a day"),
        ({"dates": {"from": "0000-12-01", "to": "2026-03-01"}}, "UTC", "dates: 0000-12-01 is not a day"),
        ({"dates": {"from": "0001-01-01", "to": "2026-03-01"}}, "UTC", "dates: 0001-01-01 is before 1970"),
        ({}, "UTC", "spec.schedules[0]: it has none of weekly, cron, dates and calendar"),
    ],
)
def test_schedule_that_cannot_be_read_is_named(schedule: dict[str, Any], zone: str, message: str) -> None:
    with pytest.raises(ScheduleError) as error:
        intervals(spec(schedule, zone=zone), {}, at("2026-11-25 00:00"), at("2026-12-25 00:00"))
    assert message in str(error.value)


def test_cron_of_every_sixth_hour_leaves_out_none_where_clocks_shift_by_half_an_hour() -> None:
    cron = {"cron": {"schedule": "0 */6 * * *", "durationSeconds": 3600}}
    assert times("2026-10-04 00:00", "2026-10-04 23:00", cron, zone="Australia/Lord_Howe") == [
        f"10-04 {hour:02}:00{offset} > 10-04 {hour + 1:02}:00{offset}"
        for hour, offset in ((0, "+10:30"), (6, "+11:00"), (12, "+11:00"), (18, "+11:00"))
    ]


def test_cron_schedule_that_never_comes_has_no_times() -> None:
    never = {"cron": {"schedule": "0 0 31 11 1", "durationSeconds": 60}}
    assert times("2026-11-25 00:00", "2026-11-26 00:00", never) in ([], ["11-30 00:00+00:00 > 11-30 00:01+00:00"])


# random schedules against an oracle that walks minute by minute

CHANGES = {
    "Europe/Berlin": ("2026-03-29 00:00", "2026-10-25 00:00", "2026-06-01 00:00"),
    "Australia/Lord_Howe": ("2026-04-05 00:00", "2026-10-04 00:00"),
    "Pacific/Apia": ("2011-12-29 00:00",),
    "America/New_York": ("2026-03-08 00:00", "2026-11-01 00:00"),
    "Asia/Shanghai": ("2026-11-28 00:00",),
}
"""Days around which clocks change, by zone."""

MINUTES = st.integers(0, 24 * 60 - 1)
moments = st.sampled_from([(zone, day) for zone, days in CHANGES.items() for day in days])


@functools.cache
def around(zone: str, day: str) -> "tuple[int, int, Walk]":
    """The three days around a day, and the walk through them."""
    begin = at(day, zone) - DAY
    return begin, begin + 3 * DAY, Walk(zone, begin, begin + 3 * DAY)


class Walk:
    """Every minute from some days before the span to some days after it, with what the clock shows."""

    def __init__(self, zone: str, begin: int, end: int) -> None:
        self.minutes = range(begin - 11 * DAY, end + 3 * DAY, 60)
        own = zoneinfo.ZoneInfo(zone)
        self.clock = [datetime.datetime.fromtimestamp(each, own).replace(tzinfo=None, fold=0) for each in self.minutes]
        self.latest = list(itertools.accumulate(self.clock, max))

    def first(self, wall: datetime.datetime) -> int | None:
        """The first minute at which the clock shows this time or a later one."""
        found = bisect.bisect_left(self.latest, wall)
        return self.minutes[found] if 0 < found < len(self.minutes) else None

    def days(self) -> list[datetime.date]:
        first = self.clock[0].date()
        return [first + datetime.timedelta(days=each) for each in range((self.clock[-1].date() - first).days + 1)]

    def span(self, wall: datetime.datetime, until: datetime.datetime) -> list[Span]:
        start, stop = self.first(wall), self.first(until)
        return [(start, stop)] if start is not None and stop is not None else []


def members(spans: Iterable[Span], begin: int, end: int) -> list[int]:
    """The minutes of the span that are in one of the times."""
    inside = {each for start, stop in spans for each in range(max(start, begin), min(stop, end), 60)}
    return sorted(inside)


@given(moments, st.lists(st.sampled_from(list(Day)), min_size=1, max_size=7, unique=True), MINUTES, MINUTES)
@example(("Europe/Berlin", "2026-03-29 00:00"), [Day.SUN], 150, 180)
def test_weekly_is_what_a_clock_on_the_wall_says(moment: tuple[str, str], days: list[Day], from_: int, to: int) -> None:
    zone, (begin, end, walk) = moment[0], around(*moment)
    expected: list[Span] = []
    for each in walk.days():
        if list(Day)[each.weekday()] in days:
            midnight = datetime.datetime.combine(each, datetime.time())
            until = to if to > from_ else to + 24 * 60
            expected += walk.span(
                midnight + datetime.timedelta(minutes=from_), midnight + datetime.timedelta(minutes=until)
            )
    weekly = {"days": days, "from": _clock(from_), "to": _clock(to)}
    found = intervals(spec({"weekly": weekly}, zone=zone), {}, begin, end)
    assert members(found, begin, end) == members(expected, begin, end)
    assert found == merged(found)


def _clock(minutes: int) -> str:
    return f"{minutes // 60:02}:{minutes % 60:02}"


@given(moments, st.integers(-3, 3), st.integers(0, 4))
def test_dates_are_the_days_of_a_clock_on_the_wall(moment: tuple[str, str], first: int, days: int) -> None:
    zone, (begin, end, walk) = moment[0], around(*moment)
    from_ = datetime.date.fromisoformat(moment[1][:10]) + datetime.timedelta(days=first)
    to = from_ + datetime.timedelta(days=days)
    inside = [
        minute
        for minute, clock in zip(walk.minutes, walk.clock, strict=True)
        if from_ <= clock.date() <= to and begin <= minute < end
    ]
    dates = {"from": from_.isoformat(), "to": to.isoformat()}
    assert members(intervals(spec({"dates": dates}, zone=zone), {}, begin, end), begin, end) == inside


small_sets = st.lists(st.integers(0, 59), min_size=1, max_size=3, unique=True)


@given(
    moments,
    small_sets,
    st.lists(st.integers(0, 23), min_size=1, max_size=4, unique=True),
    st.lists(st.integers(0, 6), min_size=1, max_size=7, unique=True),
    st.integers(1, 600),
)
def test_cron_at_fixed_times_is_what_a_clock_on_the_wall_says(
    moment: tuple[str, str], minutes: list[int], hours: list[int], weekdays: list[int], duration: int
) -> None:
    zone, (begin, end, walk) = moment[0], around(*moment)
    expected: list[Span] = []
    for each in walk.days():
        for hour, minute in ((hour, minute) for hour in hours for minute in minutes):
            start = walk.first(datetime.datetime.combine(each, datetime.time(hour, minute)))
            if (each.weekday() + 1) % 7 in weekdays and start is not None and start < end:
                expected.append((start, start + duration * 60))
    schedule = f"{_list(minutes)} {_list(hours)} * * {_list(weekdays)}"
    cron = {"schedule": schedule, "durationSeconds": duration * 60}
    found = intervals(spec({"cron": cron}, zone=zone), {}, begin, end)
    assert members(found, begin, end) == members(expected, begin, end)


@given(moments.filter(lambda each: each[0] != "Australia/Lord_Howe"), small_sets, st.integers(1, 90))
def test_cron_of_every_hour_follows_the_hours_that_pass(
    moment: tuple[str, str], minutes: list[int], duration: int
) -> None:
    zone, (begin, end, walk) = moment[0], around(*moment)
    expected = [
        (minute, minute + duration * 60)
        for minute, clock in zip(walk.minutes, walk.clock, strict=True)
        if clock.minute in minutes and minute < end
    ]
    cron = {"schedule": f"{_list(minutes)} * * * *", "durationSeconds": duration * 60}
    found = intervals(spec({"cron": cron}, zone=zone), {}, begin, end)
    assert members(found, begin, end) == members(expected, begin, end)


def _list(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), max_size=20))
def test_merged_times_are_apart_and_have_the_same_seconds(spans: list[Span]) -> None:
    found = merged(spans)
    assert all(before[1] < after[0] for before, after in itertools.pairwise(found))
    assert {each for start, stop in found for each in range(start, stop)} == {
        each for start, stop in spans for each in range(start, stop)
    }
