"""Reads the lines of an iCalendar file (RFC 5545), and checks its bounds before anything is worked out.

Only what decides about times is read: the events and the time zones. Other components and properties, as tasks, alarms,
attendees and descriptions, are skipped.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from altershield.api.gates.windows import MAX_CALENDAR_BYTES, MAX_CALENDAR_EVENTS
from reconciler.gates.problems import CalendarError

_READ = {
    "VCALENDAR": {"CALSCALE", "X-WR-TIMEZONE"},
    "VEVENT": {
        *("UID", "DTSTART", "DTEND", "DURATION", "RRULE", "RDATE", "EXRULE", "EXDATE", "RECURRENCE-ID", "STATUS"),
    },
    "VTIMEZONE": {"TZID"},
    "STANDARD": {"DTSTART", "TZOFFSETFROM", "TZOFFSETTO", "TZNAME", "RRULE", "RDATE"},
    "DAYLIGHT": {"DTSTART", "TZOFFSETFROM", "TZOFFSETTO", "TZNAME", "RRULE", "RDATE"},
}
"""The properties that are read, by component."""

_PARENT = {"VCALENDAR": "", "VEVENT": "VCALENDAR", "VTIMEZONE": "VCALENDAR"} | dict.fromkeys(
    ("STANDARD", "DAYLIGHT"), "VTIMEZONE"
)
_SEVERAL = {"RRULE", "RDATE", "EXDATE", "TZNAME"}
_LINE = re.compile(r"""([A-Za-z0-9-]+)((?:;[A-Za-z0-9-]+=(?:"[^"]*"|[^";:,]*)(?:,(?:"[^"]*"|[^";:,]*))*)*):(.*)""")
_PARAMETER = re.compile(r""";([A-Za-z0-9-]+)=("[^"]*"|[^";:,]*)""")
_FREQUENCIES = {"DAILY", "WEEKLY", "MONTHLY", "YEARLY"}
TIMES = ("BYHOUR", "BYMINUTE", "BYSECOND")
"""The parts of a rule that name times of the day."""
_SHOWN = 64


@dataclass(frozen=True, slots=True)
class Property:
    """A line: `NAME;PARAMETER=…:VALUE`."""

    name: str
    parameters: dict[str, str]
    value: str


@dataclass(slots=True)
class Component:
    """What stands between `BEGIN:NAME` and `END:NAME`."""

    name: str
    label: str = ""
    """How a message names it: `event 3 (UID holiday-3)`."""
    properties: dict[str, list[Property]] = field(default_factory=dict)
    parts: "list[Component]" = field(default_factory=list)

    def one(self, name: str) -> Property | None:
        """The property of this name; None if there is none."""
        return next(iter(self.properties.get(name, ())), None)

    def all(self, name: str) -> list[Property]:
        return self.properties.get(name, [])

    def wrong(self, text: str) -> CalendarError:
        return CalendarError(f"{self.label}: {text}")


def read(text: str) -> Component:
    """The VCALENDAR. CalendarError: the file is not a calendar, or exceeds a bound."""
    if len(text.encode()) > MAX_CALENDAR_BYTES:
        raise CalendarError(
            f"the file is larger than {MAX_CALENDAR_BYTES // 1024} KiB; remove what is past, or use several calendars"
        )
    calendar: Component | None = None
    for component in _components(text):
        if component.name == "VCALENDAR":
            if calendar is not None:
                raise CalendarError("the file has more than one VCALENDAR; use one key for each")
            calendar = component
    if calendar is None:
        raise CalendarError("the file has no VCALENDAR; it has to begin with BEGIN:VCALENDAR")
    scale = calendar.one("CALSCALE")
    if scale is not None and scale.value.upper() != "GREGORIAN":
        raise CalendarError(f"CALSCALE is {scale.value[:_SHOWN]}; only GREGORIAN is supported")
    _check_bounds(calendar)
    return calendar


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines with their numbers, without the line breaks that fold long lines."""
    number, line = 0, ""
    for at, raw in enumerate(text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n"), 1):
        if raw[:1] in (" ", "\t") and line:
            line += raw[1:]
            continue
        if line.strip():
            yield number, line
        number, line = at, raw
    if line.strip():
        yield number, line


def _components(text: str) -> Iterator[Component]:
    """The components that are read, each when it is complete, with those in it."""
    open_: list[Component] = []
    events = 0
    for number, line in _lines(text):
        match = _LINE.fullmatch(line.rstrip("\r"))
        name, value = (match[1].upper(), match[3].strip()) if match is not None else ("", "")
        if name == "BEGIN":
            component = Component(value.upper())
            if component.name == "VEVENT":
                events += 1
                component.label = f"event {events}"
            open_.append(component)
        elif name == "END":
            if not open_ or open_[-1].name != value.upper():
                raise CalendarError(f"line {number}: END:{value[:_SHOWN]} ends nothing that has begun; correct it")
            component = open_.pop()
            parent = open_[-1] if open_ else None
            if _PARENT.get(component.name) == (parent.name if parent is not None else ""):
                if parent is not None:
                    parent.parts.append(component)
                yield component
        elif open_ and match is not None and name in _READ.get(open_[-1].name, ()):
            _add(open_[-1], Property(name, _parameters(match[2]), value))
        elif match is None and open_ and open_[-1].name in _READ:
            raise CalendarError(f"line {number}: {line[:_SHOWN]!r} is not a line of an iCalendar file; correct it")
    if open_:
        raise CalendarError(f"BEGIN:{open_[-1].name[:_SHOWN]} has no END; the file is not complete")


def _parameters(text: str) -> dict[str, str]:
    return {name.upper(): value.strip('"') for name, value in _PARAMETER.findall(text)}


def _add(component: Component, found: Property) -> None:
    known = component.properties.setdefault(found.name, [])
    if known and found.name not in _SEVERAL:
        raise CalendarError(f"{component.label or component.name}: it has two {found.name}; remove one of them")
    known.append(found)
    if found.name == "UID" and component.name == "VEVENT":
        component.label += f" (UID {found.value[:_SHOWN]})"
    elif found.name == "TZID":
        component.label = f"VTIMEZONE {found.value[:_SHOWN]}"


def _check_bounds(calendar: Component) -> None:
    events = [each for each in calendar.parts if each.name == "VEVENT"]
    zones = [part for each in calendar.parts if each.name == "VTIMEZONE" for part in each.parts]
    dates = sum(each.value.count(",") + 1 for part in (*events, *zones) for each in part.all("RDATE"))
    if len(events) > MAX_CALENDAR_EVENTS:
        raise CalendarError(
            f"the file has {len(events)} events, and may have {MAX_CALENDAR_EVENTS}; remove what is past, or use "
            "several calendars"
        )
    if len(events) + len(zones) + dates > MAX_CALENDAR_EVENTS:
        raise CalendarError(
            f"the file has {len(events)} events, {len(zones)} changes of time zones and {dates} dates in RDATE, and "
            f"may have {MAX_CALENDAR_EVENTS} of them together; remove what is past, or use several calendars"
        )
    for event in events:
        if event.one("EXRULE") is not None:
            raise event.wrong("EXRULE is not supported; write the exceptions as EXDATE")
        for rule in event.all("RRULE"):
            _check_rule(event, rule.value)
    for zone in (each for each in calendar.parts if each.name == "VTIMEZONE"):
        for part in zone.parts:
            for rule in part.all("RRULE"):
                if _check_rule(zone, rule.value)["FREQ"] != "YEARLY":
                    raise zone.wrong("its RRULE has to be FREQ=YEARLY; correct it")


def rule_parts(value: str) -> dict[str, str]:
    """The parts of an RRULE, in capital letters."""
    return {name: part for name, _, part in (each.partition("=") for each in value.upper().strip(";").split(";"))}


def _check_rule(component: Component, value: str) -> dict[str, str]:
    """The parts of the RRULE, which recurs daily at most."""
    parts = rule_parts(value)
    if (frequency := parts.get("FREQ", "")) not in _FREQUENCIES:
        raise component.wrong(
            f"RRULE has FREQ={frequency[:_SHOWN]}; an event may recur daily at most: write DAILY, WEEKLY, MONTHLY or "
            "YEARLY, or use a cron schedule"
        )
    for name in TIMES:
        if "," in parts.get(name, ""):
            raise component.wrong(
                f"RRULE has several values of {name}, so it recurs more often than daily; write one event for each"
            )
    for name in ("INTERVAL", "COUNT"):
        number = parts.get(name, "1")
        if not (number.isascii() and number.isdigit() and len(number) <= 9 and int(number) > 0):
            raise component.wrong(f"RRULE has {name}={number[:_SHOWN]}; write a number from 1 on")
    if "UNTIL" in parts and "COUNT" in parts:
        raise component.wrong("RRULE has UNTIL and COUNT; remove one of them")
    return parts
