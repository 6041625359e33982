"""The times of iCalendar files, against another library's and by hand, and files that are refused."""

import contextlib
import datetime
import zoneinfo

import icalendar
import pytest
import recurring_ical_events
from hypothesis import given
from hypothesis import strategies as st

from altershield.api.gates.windows import MAX_CALENDAR_BYTES, MAX_CALENDAR_EVENTS
from reconciler.gates.calendars import spans
from reconciler.gates.problems import CalendarError, ScheduleError
from reconciler.gates.schedules import intervals, merged
from reconciler.gates.terms import DAY, Span

from .specs import FILE, FROM_FILE, at, calendar, shown, spec

SHANGHAI, BERLIN, UTC = (zoneinfo.ZoneInfo(name) for name in ("Asia/Shanghai", "Europe/Berlin", "UTC"))

OWN_ZONE = """
BEGIN:VTIMEZONE TZID:Office
BEGIN:STANDARD DTSTART:16011028T030000 RRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=10 TZOFFSETFROM:+0200 TZOFFSETTO:+0100
END:STANDARD
BEGIN:DAYLIGHT DTSTART:16010325T020000 RRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=3 TZOFFSETFROM:+0100 TZOFFSETTO:+0200
END:DAYLIGHT END:VTIMEZONE
"""
"""The time zone of Berlin, as Outlook writes it."""


def found(text: str, begin: str, end: str, zone: zoneinfo.ZoneInfo = UTC) -> list[str]:
    """The times of a calendar between two local times, in this zone."""
    first, last = at(begin, zone.key), at(end, zone.key)
    return shown(merged(spans(text, zone, first, last)), zone.key)


def in_december(*events: str, head: str = "", zone: zoneinfo.ZoneInfo = UTC) -> list[str]:
    return found(calendar(*events, head=head), "2026-12-01 00:00", "2027-01-01 00:00", zone)


def test_all_day_event_is_a_day_of_the_window() -> None:
    assert in_december("DTSTART;VALUE=DATE:20261225", zone=SHANGHAI) == ["12-25 00:00+08:00 > 12-26 00:00+08:00"]
    assert in_december("DTSTART;VALUE=DATE:20261224 DTEND;VALUE=DATE:20261227") == [
        "12-24 00:00+00:00 > 12-27 00:00+00:00"
    ]


def test_time_without_a_zone_is_one_of_the_window_or_of_the_calendar() -> None:
    event = "DTSTART:20261224T180000 DURATION:PT2H"
    assert in_december(event, zone=SHANGHAI) == ["12-24 18:00+08:00 > 12-24 20:00+08:00"]
    assert in_december(event, head="X-WR-TIMEZONE:Asia/Shanghai") == ["12-24 10:00+00:00 > 12-24 12:00+00:00"]


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ("DTSTART:20261224T180000Z", "12-24 18:00+00:00 > 12-24 19:00+00:00"),
        ("DTSTART;TZID=Europe/Berlin:20261224T180000", "12-24 17:00+00:00 > 12-24 18:00+00:00"),
        ('DTSTART;TZID="Office":20261224T180000', "12-24 17:00+00:00 > 12-24 18:00+00:00"),
    ],
)
def test_time_is_one_of_the_zone_that_it_names(start: str, expected: str) -> None:
    assert in_december(f"{start} DURATION:PT1H", head=OWN_ZONE, zone=UTC) == [expected]


def test_zone_of_the_file_has_daylight_saving() -> None:
    text = calendar("DTSTART;TZID=Office:20260301T120000 DURATION:PT1H RRULE:FREQ=WEEKLY", head=OWN_ZONE)
    assert found(text, "2026-03-20 00:00", "2026-04-01 00:00") == [
        "03-22 11:00+00:00 > 03-22 12:00+00:00",
        "03-29 10:00+00:00 > 03-29 11:00+00:00",
    ]


@pytest.mark.parametrize("zone", ["Office", "Europe/Berlin"])
def test_event_in_the_missing_hour_begins_after_it(zone: str) -> None:
    text = calendar(
        f"DTSTART;TZID={zone}:20260301T023000 DTEND;TZID={zone}:20260301T040000 RRULE:FREQ=DAILY", head=OWN_ZONE
    )
    assert found(text, "2026-03-29 00:00", "2026-03-30 00:00", BERLIN) == ["03-29 03:00+02:00 > 03-29 04:00+02:00"]


@pytest.mark.parametrize("zone", ["Office", "Europe/Berlin"])
def test_event_in_the_hour_that_comes_twice_is_there_once(zone: str) -> None:
    text = calendar(f"DTSTART;TZID={zone}:20261001T023000 DURATION:PT10M RRULE:FREQ=DAILY", head=OWN_ZONE)
    assert found(text, "2026-10-25 00:00", "2026-10-26 00:00", BERLIN) == ["10-25 02:30+02:00 > 10-25 02:40+02:00"]


def test_rule_without_an_end_goes_on() -> None:
    assert in_december("DTSTART:20200101T120000Z DURATION:PT1H RRULE:FREQ=MONTHLY;BYDAY=-1FR") == [
        "12-25 12:00+00:00 > 12-25 13:00+00:00"
    ]


@pytest.mark.parametrize(
    ("until", "days"),
    [
        ("20261203T160000Z", ["03", "04"]),  # 4 December, 0:00 in Shanghai
        ("20261203T155959Z", ["03"]),
        ("20261204T000000", ["03", "04"]),
    ],
)
def test_until_may_be_in_another_zone(until: str, days: list[str]) -> None:
    event = f"DTSTART;TZID=Asia/Shanghai:20261203T000000 DURATION:PT1H RRULE:FREQ=DAILY;UNTIL={until}"
    assert [each[3:5] for each in in_december(event, zone=SHANGHAI)] == days


@pytest.mark.parametrize("until", ["20261205", "20261205T235959Z"])
def test_until_of_a_date_includes_that_day(until: str) -> None:
    event = f"DTSTART;VALUE=DATE:20261204 RRULE:FREQ=DAILY;UNTIL={until}"
    assert in_december(event) == ["12-04 00:00+00:00 > 12-06 00:00+00:00"]


def test_event_that_recurs_may_end_in_another_zone() -> None:
    event = (
        "DTSTART;TZID=Asia/Shanghai:20261224T180000 DTEND;TZID=Europe/Berlin:20261224T120000 RRULE:FREQ=DAILY;COUNT=2"
    )
    assert in_december(event) == ["12-24 10:00+00:00 > 12-24 11:00+00:00", "12-25 10:00+00:00 > 12-25 11:00+00:00"]


def test_excluded_moved_and_cancelled_occurrences() -> None:
    text = """BEGIN:VCALENDAR
BEGIN:VEVENT
UID:a
DTSTART;TZID=Europe/Berlin:20261201T120000
DURATION:PT1H
RRULE:FREQ=DAILY;COUNT=6
EXDATE:20261202T110000Z
EXDATE;VALUE=DATE:20261203
END:VEVENT
BEGIN:VEVENT
UID:a
RECURRENCE-ID:20261204T110000Z
DTSTART:20261210T110000Z
DURATION:PT2H
END:VEVENT
BEGIN:VEVENT
UID:a
RECURRENCE-ID;TZID=Europe/Berlin:20261205T120000
DTSTART;TZID=Europe/Berlin:20261205T120000
DURATION:PT1H
STATUS:CANCELLED
END:VEVENT
END:VCALENDAR
"""
    assert found(text, "2026-12-01 00:00", "2027-01-01 00:00") == [
        "12-01 11:00+00:00 > 12-01 12:00+00:00",
        "12-06 11:00+00:00 > 12-06 12:00+00:00",
        "12-10 11:00+00:00 > 12-10 13:00+00:00",
    ]


def test_further_dates_and_periods() -> None:
    event = (
        "DTSTART:20261201T120000Z DURATION:PT1H RDATE:20261203T120000Z,20261204T120000Z "
        "RDATE;VALUE=PERIOD:20261205T120000Z/PT2H,20261206T120000Z/20261206T121500Z"
    )
    assert in_december(event) == [
        "12-01 12:00+00:00 > 12-01 13:00+00:00",
        "12-03 12:00+00:00 > 12-03 13:00+00:00",
        "12-04 12:00+00:00 > 12-04 13:00+00:00",
        "12-05 12:00+00:00 > 12-05 14:00+00:00",
        "12-06 12:00+00:00 > 12-06 12:15+00:00",
    ]


def test_event_without_a_length_and_a_cancelled_one_have_no_time() -> None:
    assert in_december("DTSTART:20261201T120000Z", "DTSTART;VALUE=DATE:20261203 STATUS:CANCELLED") == []


def test_event_that_began_before_has_its_real_begin() -> None:
    assert in_december("DTSTART:20200101T000000Z DTEND:20300101T000000Z")[0].startswith("01-01 00:00")
    weekly = "DTSTART:20261105T000000Z DURATION:P27D RRULE:FREQ=MONTHLY"
    assert in_december(weekly)[0] == "11-05 00:00+00:00 > 12-02 00:00+00:00"


def test_what_does_not_decide_is_skipped() -> None:
    text = (
        "\ufeffBEGIN:VCALENDAR\nBEGIN:VTODO\nDUE:tomorrow\nRRULE:FREQ=SECONDLY\nEND:VTODO\n"
        'begin:vevent\nuid:a\nATTENDEE;CN="Doe; Jane: x":mailto:jane@example.com\ndtstart;\n value=date:2026\n 1225\n'
        "DESCRIPTION:one\\, two\nBEGIN:VALARM\nTRIGGER:-PT5M\nEND:VALARM\nend:vevent\nEND:VCALENDAR"
    )
    assert found(text, "2026-12-01 00:00", "2027-01-01 00:00") == ["12-25 00:00+00:00 > 12-26 00:00+00:00"]


def test_calendar_of_a_window_joins_its_other_schedules() -> None:
    texts = {FILE: calendar("DTSTART;VALUE=DATE:20261225")}
    weekend = {"weekly": {"days": ["Sat", "Sun"]}}
    window = spec(weekend, FROM_FILE, zone="Asia/Shanghai")
    assert shown(intervals(window, texts, at("2026-12-21 00:00"), at("2026-12-28 00:00")), "Asia/Shanghai") == [
        "12-25 00:00+08:00 > 12-28 00:00+08:00"
    ]


DAILY = "DTSTART:20261201T120000Z DURATION:PT1H RRULE:FREQ=DAILY"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (calendar(DAILY.replace("DAILY", "SECONDLY")), "event 1 (UID 0): RRULE has FREQ=SECONDLY; an event may recur"),
        (calendar(DAILY.replace("DAILY", "HOURLY")), "RRULE has FREQ=HOURLY"),
        (calendar(DAILY.replace("FREQ=DAILY", "COUNT=2")), "RRULE has FREQ=;"),
        (calendar(f"{DAILY};BYHOUR=1,2,3"), "RRULE has several values of BYHOUR"),
        (calendar(f"{DAILY};BYMINUTE=1,2"), "several values of BYMINUTE"),
        (calendar(f"{DAILY};BYSECOND=1,2"), "several values of BYSECOND"),
        (calendar(f"{DAILY};INTERVAL=0"), "RRULE has INTERVAL=0; write a number from 1 on"),
        (calendar(f"{DAILY};COUNT=-1"), "RRULE has COUNT=-1"),
        (calendar(f"{DAILY};COUNT=2;UNTIL=20261231T000000Z"), "RRULE has UNTIL and COUNT"),
        (calendar(f"{DAILY};UNTIL=20261231"), "UNTIL of its RRULE is a date, but its DTSTART is a time"),
        (calendar(f"{DAILY};UNTIL=tomorrow"), "'TOMORROW' is neither a date nor a time"),
        (calendar(f"{DAILY};BYPHASE=FULLMOON"), "event 1 (UID 0): it cannot be worked out"),
        (calendar(f"{DAILY} EXRULE:FREQ=DAILY"), "EXRULE is not supported"),
        (
            calendar("DTSTART;VALUE=DATE:20261201 RRULE:FREQ=DAILY;BYHOUR=9"),
            "RRULE has a time, but its DTSTART is a date",
        ),
        (calendar("DURATION:PT1H"), "it has no DTSTART"),
        (calendar("DTSTART:20261301T000000Z"), "'20261301T000000Z' is neither a date nor a time"),
        (calendar("DTSTART:00010101T000000Z DURATION:PT1H"), "the year 1 is not from 1900 to 2999"),
        (calendar("DTSTART:20261201T120000Z DTEND:20261201T110000Z"), "it ends before it begins"),
        (calendar("DTSTART:20261201T120000Z DURATION:-PT1H"), "it ends before it begins"),
        (calendar("DTSTART:20261201T120000Z DURATION:1h"), "'1h' is not a duration"),
        (calendar("DTSTART:20261201T120000Z DTEND;VALUE=DATE:20261202"), "are not both dates, or both times"),
        (calendar("DTSTART:20261201T120000Z DTEND:20261202T000000Z DURATION:PT1H"), "it has DTEND and DURATION"),
        (calendar("DTSTART:20261201T120000Z DTSTART:20261201T120000Z"), "event 1 (UID 0): it has two DTSTART"),
        (calendar("DTSTART;TZID=Mars/Base:20261201T120000"), "its time zone Mars/Base is neither a name of the IANA"),
        (calendar("DTSTART:20261201T120000Z", head="X-WR-TIMEZONE:Mars"), "X-WR-TIMEZONE: Mars is not a name"),
        (calendar(f"{DAILY} EXDATE;VALUE=DATE:20261332"), "'20261332' is neither a date nor a time"),
        (calendar("DTSTART;VALUE=DATE:20261201 EXDATE:20261201T000000Z RRULE:FREQ=DAILY"), "its EXDATE is a time"),
        (calendar("DTSTART:20261201T120000Z DURATION:PT1H RDATE:20261202"), "its RDATE and its DTSTART are not both"),
        (
            calendar("DTSTART:20261201T120000Z DURATION:PT1H RDATE;VALUE=PERIOD:20261203T120000Z/20261203T110000Z"),
            "a PERIOD of its RDATE ends before it begins",
        ),
        (
            calendar("DTSTART:20261201T120000Z RECURRENCE-ID;RANGE=THISANDFUTURE:20261201T120000Z"),
            "RECURRENCE-ID has RANGE, which is not supported",
        ),
        (calendar(f"{DAILY} RECURRENCE-ID:20261201T120000Z"), "an event with RECURRENCE-ID does not recur"),
        (calendar(DAILY, DAILY).replace("UID:1", "UID:0"), "event 2 (UID 0): another event has the same UID"),
        (calendar(DAILY, head="CALSCALE:JULIAN"), "CALSCALE is JULIAN; only GREGORIAN is supported"),
        (calendar(DAILY) * 2, "the file has more than one VCALENDAR"),
        ("", "the file has no VCALENDAR"),
        ("<html>", "the file has no VCALENDAR"),
        ("BEGIN:VCALENDAR\nBEGIN:VEVENT\n", "BEGIN:VEVENT has no END; the file is not complete"),
        ("BEGIN:VCALENDAR\nEND:VEVENT\n", "line 2: END:VEVENT ends nothing that has begun"),
        (
            "BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART 2026\nEND:VEVENT\nEND:VCALENDAR",
            "line 3: 'DTSTART 2026' is not a line",
        ),
        (
            calendar(DAILY, head=OWN_ZONE.replace("YEARLY", "DAILY")),
            "VTIMEZONE Office: its RRULE has to be FREQ=YEARLY",
        ),
        (calendar(DAILY, head=OWN_ZONE.replace("YEARLY", "SECONDLY")), "VTIMEZONE Office: RRULE has FREQ=SECONDLY"),
        (
            calendar("DTSTART;TZID=Office:20261201T120000", head=OWN_ZONE.replace("TZOFFSETTO:+0100", "")),
            "VTIMEZONE Office: it is not a time zone",
        ),
        (calendar(*[DAILY] * (MAX_CALENDAR_EVENTS + 1)), "the file has 1001 events, and may have 1000"),
        (
            calendar(f"{DAILY} RDATE:" + ",".join(["20261202T120000Z"] * MAX_CALENDAR_EVENTS)),
            "the file has 1 events, 0 changes of time zones and 1000 dates in RDATE, and may have 1000",
        ),
        (calendar(f"{DAILY} SUMMARY:{'x' * 300 * 1024}"), "the file is larger than 256 KiB"),
        (calendar(f"{DAILY} SUMMARY:{'ü' * (MAX_CALENDAR_BYTES // 2)}"), "the file is larger than 256 KiB"),
    ],
)
def test_file_that_is_not_understood_is_refused_with_what_to_correct(text: str, message: str) -> None:
    with pytest.raises(CalendarError) as error:
        spans(text, UTC, at("2026-12-01 00:00"), at("2027-01-01 00:00"))
    assert message in str(error.value)


def test_message_names_the_schedule_too() -> None:
    with pytest.raises(ScheduleError) as error:
        intervals(spec({"weekly": {"days": ["Sat"]}}, FROM_FILE), {FILE: "x"}, 0, DAY)
    assert str(error.value).startswith("spec.schedules[1]: the file has no VCALENDAR")
    assert error.value.problem.reason == "CalendarInvalid"


# random calendars against recurring-ical-events

BEGIN, END = at("2026-09-01 00:00"), at("2026-12-01 00:00")  # clocks change in between
TIMES = st.datetimes(datetime.datetime(2025, 1, 1), datetime.datetime(2026, 12, 31)).map(
    lambda each: each.replace(hour=each.hour % 12 + 8, second=0, microsecond=0)  # never while clocks change
)


@st.composite
def events(draw: st.DrawFn) -> str:
    """An event of any kind, with exceptions."""
    kind = draw(st.sampled_from(["date", "utc", "zone", "own", "floating"]))
    start = draw(TIMES)

    def write(name: str, time: datetime.datetime) -> str:
        if kind == "date":
            return f"{name};VALUE=DATE:{time:%Y%m%d}"
        zone = {"zone": ";TZID=America/New_York", "own": ";TZID=Office"}.get(kind, "")
        return f"{name}{zone}:{time:%Y%m%dT%H%M%S}" + ("Z" if kind == "utc" else "")

    lines = [write("DTSTART", start)]
    hours = draw(st.integers(1, 200))
    if kind == "date":
        lines.append(write("DTEND", start + datetime.timedelta(days=1 + hours // 24)))
    else:
        lines.append(f"DURATION:PT{hours}H")
    if draw(st.booleans()):
        rule = f"FREQ={draw(st.sampled_from(['DAILY', 'WEEKLY', 'MONTHLY', 'YEARLY']))}"
        rule += f";INTERVAL={draw(st.integers(1, 4))}"
        rule += draw(st.sampled_from(["", ";BYDAY=MO,WE", ";BYDAY=-1FR;BYMONTH=9,10,11", ";BYMONTHDAY=1,15,-1"]))
        if "FREQ=WEEKLY" in rule:
            rule = rule.split(";BYMONTH")[0].replace("-1FR", "FR")
        elif "FREQ=DAILY" in rule:
            rule = rule.replace("-1FR", "FR")
        limit = draw(st.sampled_from(["", "COUNT", "UNTIL"]))
        if limit == "COUNT":
            rule += f";COUNT={draw(st.integers(1, 40))}"
        elif limit == "UNTIL":
            until = start + datetime.timedelta(days=draw(st.integers(1, 600)))
            form = {"date": "%Y%m%d", "floating": "%Y%m%dT%H%M%S"}.get(kind, "%Y%m%dT%H%M%SZ")
            rule += f";UNTIL={until:{form}}"
        lines.append(f"RRULE:{rule}")
    for each in draw(st.lists(st.integers(1, 90), max_size=2)):
        lines.append(write("RDATE", start + datetime.timedelta(days=each)))
    for each in draw(st.lists(st.integers(1, 60), max_size=3)):
        lines.append(write("EXDATE", start + datetime.timedelta(days=each)))
    return " ".join(lines)


def expansion(text: str, zone: zoneinfo.ZoneInfo) -> list[Span]:
    """What recurring-ical-events makes of it."""

    def second(time: datetime.date) -> int:
        if not isinstance(time, datetime.datetime):
            time = datetime.datetime.combine(time, datetime.time())
        return int((time if time.tzinfo is not None else time.replace(tzinfo=zone)).timestamp())

    around = (datetime.datetime.fromtimestamp(each, datetime.UTC) for each in (BEGIN - 3 * DAY, END + 3 * DAY))
    all_ = recurring_ical_events.of(icalendar.Calendar.from_ical(text)).between(*around)
    times = ((second(each["DTSTART"].dt), second(each["DTEND"].dt)) for each in all_)
    return merged((start, stop) for start, stop in times if start < END and stop > BEGIN)


@given(st.lists(events(), min_size=1, max_size=4), st.sampled_from([UTC, SHANGHAI, BERLIN]))
def test_times_are_those_of_another_library(made: list[str], zone: zoneinfo.ZoneInfo) -> None:
    text = calendar(*made, head=OWN_ZONE)
    assert merged(spans(text, zone, BEGIN, END)) == expansion(text, zone)


@given(st.binary(max_size=400).map(lambda each: each.decode("latin-1")), st.integers(0, 400), events())
def test_broken_file_is_refused_or_understood(noise: str, position: int, event: str) -> None:
    text = calendar(event, head=OWN_ZONE)
    broken = text[:position] + noise[:20] + text[position + len(noise) % 7 :]
    with contextlib.suppress(CalendarError):
        spans(broken, UTC, BEGIN, END)
