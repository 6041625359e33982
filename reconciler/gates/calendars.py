"""Works the events of an iCalendar file (RFC 5545) out into times.

Understood are DTSTART with DTEND or DURATION, RRULE, RDATE, EXDATE, RECURRENCE-ID for single occurrences, STATUS,
all-day events, and time zones of the IANA database or of the file. What is not understood is refused: a time that is
wrong would admit or deny releases.
"""

import datetime
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass

from dateutil.rrule import rrule, rrulestr
from dateutil.tz import tzical

from reconciler.gates.calendar_lines import TIMES, Component, Property, read, rule_parts
from reconciler.gates.problems import CalendarError, OutOfTimeError
from reconciler.gates.terms import Span
from reconciler.gates.wall_clock import UTC, UnknownZoneError, instant, wall_time, zone_of

_TIME = re.compile(r"(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d)(\d\d)(Z?))?", re.ASCII)
_DURATION = re.compile(
    r"([+-]?)P(?:(\d{1,5})W|(?:(\d{1,5})D)?(?:T(?:(\d{1,7})H)?(?:(\d{1,7})M)?(?:(\d{1,9})S)?)?)", re.ASCII
)
_YEARS = range(1900, 3000)
_SHOWN = 64


@dataclass(frozen=True, slots=True)
class Time:
    """A date, which is a midnight, or a time."""

    wall: datetime.datetime
    zone: datetime.tzinfo
    is_date: bool

    @property
    def at(self) -> int:
        """The Unix second."""
        return instant(self.wall, self.zone)

    def after(self, duration: datetime.timedelta) -> "Time":
        return Time(self.wall + duration, self.zone, self.is_date)


def spans(text: str, zone: datetime.tzinfo, begin: int, end: int) -> list[Span]:
    """The times of the events that overlap the time from `begin` to `end` (Unix seconds), in any order. Dates and times
    without a zone are those of the calendar's X-WR-TIMEZONE, else of `zone`. CalendarError names the event that cannot
    be worked out."""
    calendar = read(text)
    zones = _Zones(calendar, zone)
    events = [each for each in calendar.parts if each.name == "VEVENT"]
    masters, moved = _by_uid(events, zones)
    found: list[Span] = []
    for event in events:
        overridden = moved.get(_uid(event), set()) if event is masters.get(_uid(event)) else set()
        try:
            found += (each for each in _of(event, zones, overridden, begin, end) if each[1] > begin and each[0] < end)
        except OutOfTimeError as error:
            raise event.wrong(
                "it takes too long to work out; remove events that are past, or let its DTSTART be later"
            ) from error
        except (ValueError, OverflowError, TypeError, AttributeError, LookupError, RecursionError) as error:
            raise event.wrong(f"it cannot be worked out: {str(error)[:_SHOWN] or type(error).__name__}") from error
    return found


class _Zones:
    """The time zones of a file, and that of times without one."""

    def __init__(self, calendar: Component, zone: datetime.tzinfo) -> None:
        self._own = {
            name.value: each for each in calendar.parts if each.name == "VTIMEZONE" and (name := each.one("TZID"))
        }
        self._known: dict[str, datetime.tzinfo] = {}
        self.floating = zone
        if (named := calendar.one("X-WR-TIMEZONE")) is not None:
            try:
                self.floating = zone_of(named.value)
            except UnknownZoneError as error:
                raise CalendarError(
                    f"X-WR-TIMEZONE: {named.value[:_SHOWN]} is not a name of the IANA time zone database; write one"
                ) from error

    def named(self, event: Component, name: str) -> datetime.tzinfo:
        """The zone of the IANA database, else that of the file."""
        if name not in self._known:
            try:
                self._known[name] = zone_of(name)
            except UnknownZoneError as error:
                if (own := self._own.get(name)) is None:
                    raise event.wrong(
                        f"its time zone {name[:_SHOWN]} is neither a name of the IANA time zone database nor a "
                        "VTIMEZONE of the file; write one of them"
                    ) from error
                self._known[name] = _zone_of_file(own)
        return self._known[name]


def _zone_of_file(zone: Component) -> datetime.tzinfo:
    lines = ["BEGIN:VTIMEZONE", "TZID:own"]
    for part in zone.parts:
        lines.append(f"BEGIN:{part.name}")
        lines += (f"{each.name}:{each.value}" for found in part.properties.values() for each in found)
        lines.append(f"END:{part.name}")
    try:
        found = tzical(io.StringIO("\n".join((*lines, "END:VTIMEZONE")))).get("own")
    except (ValueError, OverflowError, TypeError, AttributeError, LookupError) as error:
        raise zone.wrong(f"it is not a time zone: {str(error)[:_SHOWN]}; correct it") from error
    if found is None:
        raise zone.wrong("it is not a time zone; correct it")
    return found


def _uid(event: Component) -> str:
    """The UID; without one, the event is on its own."""
    found = event.one("UID")
    return found.value if found is not None else f"\n{event.label}"


def _by_uid(events: list[Component], zones: _Zones) -> tuple[dict[str, Component], dict[str, set[int]]]:
    """The event of each UID from which the occurrences follow, and when those occurrences begin that another event
    replaces."""
    masters: dict[str, Component] = {}
    moved: dict[str, set[int]] = {}
    for event in events:
        if (which := event.one("RECURRENCE-ID")) is None:
            if _uid(event) in masters:
                raise event.wrong("another event has the same UID; give each event its own, or remove one of them")
            masters[_uid(event)] = event
            continue
        if "RANGE" in which.parameters:
            raise event.wrong("RECURRENCE-ID has RANGE, which is not supported; write one event for each occurrence")
        if event.one("RRULE") is not None or event.one("RDATE") is not None:
            raise event.wrong("an event with RECURRENCE-ID does not recur; remove its RRULE and RDATE")
        at = _time(event, which, which.value, zones).at
        known = moved.setdefault(_uid(event), set())
        if at in known:
            raise event.wrong("two events have the same UID and RECURRENCE-ID; remove one of them")
        known.add(at)
    return masters, moved


def _of(event: Component, zones: _Zones, overridden: set[int], begin: int, end: int) -> Iterator[Span]:
    """The occurrences that begin before `end`, except those that begin at the times `overridden`."""
    first = event.one("DTSTART")
    if first is None:
        raise event.wrong("it has no DTSTART; write one")
    start = _time(event, first, first.value, zones)
    stop = _end(event, start, zones)
    if stop.at < start.at:
        raise event.wrong("it ends before it begins; correct its DTEND or DURATION")
    status = event.one("STATUS")
    if stop.at == start.at or (status is not None and status.value.upper() == "CANCELLED"):
        return
    if event.one("RRULE") is None and event.one("RDATE") is None:
        yield start.at, stop.at
        return
    # as RFC 5545 has it: an event that recurs has the same length by the clock on the wall each time
    length = stop.wall - start.wall if stop.zone is start.zone else datetime.timedelta(seconds=stop.at - start.at)
    excluded_times, excluded_days = _excluded(event, start, zones)
    seen = overridden | excluded_times
    for each, duration in _occurrences(event, start, length, zones, begin, end):
        if each.at in seen or (each.zone is start.zone and each.wall.date() in excluded_days):
            continue
        seen.add(each.at)
        yield each.at, each.after(duration).at


def _occurrences(
    event: Component, start: Time, length: datetime.timedelta, zones: _Zones, begin: int, end: int
) -> Iterator[tuple[Time, datetime.timedelta]]:
    """When the occurrences begin, with their length. An occurrence may come twice."""
    yield start, length
    for each in event.all("RDATE"):
        yield from _dates(event, each, start, length, zones)
    last = wall_time(end, start.zone) + datetime.timedelta(days=1)
    earliest = wall_time(begin, start.zone) - length - datetime.timedelta(days=1)
    for each in event.all("RRULE"):
        for wall in _rule(event, each.value, start):
            if wall > last:
                break
            if wall > earliest:
                yield Time(wall, start.zone, start.is_date), length


def _dates(
    event: Component, dates: Property, start: Time, length: datetime.timedelta, zones: _Zones
) -> Iterator[tuple[Time, datetime.timedelta]]:
    for value in dates.value.split(","):
        if dates.parameters.get("VALUE", "").upper() == "PERIOD":
            value, _, until = value.partition("/")
            time = _time(event, dates, value, zones)
            if until[:1] in ("P", "+"):
                length = _duration(event, until)
            else:
                length = datetime.timedelta(seconds=_time(event, dates, until, zones).at - time.at)
            if length < datetime.timedelta():
                raise event.wrong("a PERIOD of its RDATE ends before it begins; correct it")
        else:
            time = _time(event, dates, value, zones)
        if time.is_date != start.is_date:
            raise event.wrong("its RDATE and its DTSTART are not both dates, or both times; correct one of them")
        yield time, length


def _rule(event: Component, value: str, start: Time) -> rrule:
    """The rule, for naive times of the event's zone."""
    parts = rule_parts(value)
    if start.is_date and not parts.keys().isdisjoint(TIMES):
        raise event.wrong("RRULE has a time, but its DTSTART is a date; remove BYHOUR, BYMINUTE and BYSECOND")
    until = parts.pop("UNTIL", None)
    rule = rrulestr(";".join(f"{name}={part}" for name, part in parts.items()), dtstart=start.wall)
    if not isinstance(rule, rrule):
        raise event.wrong(f"RRULE {value[:_SHOWN]} is not a rule; correct it")
    if until is None:
        return rule
    last = _value(event, until, start.zone)
    if last.is_date and not start.is_date:
        raise event.wrong("UNTIL of its RRULE is a date, but its DTSTART is a time; write it as 20261231T235959Z")
    return rule.replace(until=last.wall if start.is_date else wall_time(last.at, start.zone))


def _excluded(event: Component, start: Time, zones: _Zones) -> tuple[set[int], set[datetime.date]]:
    """The times and the days of EXDATE."""
    times, days = set(), set()
    for each in event.all("EXDATE"):
        for value in each.value.split(","):
            time = _time(event, each, value, zones)
            if time.is_date:
                days.add(time.wall.date())
            elif start.is_date:
                raise event.wrong("its EXDATE is a time, but its DTSTART is a date; write both as dates")
            else:
                times.add(time.at)
    return times, days


def _end(event: Component, start: Time, zones: _Zones) -> Time:
    end, duration = event.one("DTEND"), event.one("DURATION")
    if end is not None and duration is not None:
        raise event.wrong("it has DTEND and DURATION; remove one of them")
    if end is not None:
        found = _time(event, end, end.value, zones)
        if found.is_date != start.is_date:
            raise event.wrong("its DTEND and its DTSTART are not both dates, or both times; correct one of them")
        return found
    if duration is not None:
        return start.after(_duration(event, duration.value))
    return start.after(datetime.timedelta(days=1 if start.is_date else 0))


def _duration(event: Component, text: str) -> datetime.timedelta:
    match = _DURATION.fullmatch(text)
    if match is None or not any(match.groups()[1:]):
        raise event.wrong(f"{text[:_SHOWN]!r} is not a duration; write it as PT8H or P1D")
    weeks, days, hours, minutes, seconds = (int(each or 0) for each in match.groups()[1:])
    found = datetime.timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds)
    return -found if match[1] == "-" else found


def _time(event: Component, found: Property, value: str, zones: _Zones) -> Time:
    """A value of the property, in the zone that it names."""
    name = found.parameters.get("TZID")
    return _value(event, value, zones.named(event, name) if name is not None else zones.floating)


def _value(event: Component, text: str, zone: datetime.tzinfo) -> Time:
    match = _TIME.fullmatch(text.strip())
    wrong = event.wrong(f"{text[:_SHOWN]!r} is neither a date nor a time; write it as 20261224 or 20261224T180000Z")
    if match is None:
        raise wrong
    year, month, day, hour, minute, second = (int(each or 0) for each in match.groups()[:6])
    try:
        wall = datetime.datetime(year, month, day, hour, minute, 59 if second == 60 else second)  # a leap second
    except ValueError as error:
        raise wrong from error
    if year not in _YEARS:
        raise event.wrong(f"the year {year} is not from {_YEARS[0]} to {_YEARS[-1]}; correct it")
    return Time(wall, UTC if match[7] else zone, match[4] is None)
