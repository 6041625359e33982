"""Works the schedules of a ReleaseWindow out into times. Pure functions.

Only the worker imports this module and what it needs, because these libraries would slow down the start of a process.
"""

import datetime
from collections.abc import Iterable, Iterator, Mapping

from cronsim import CronSim, CronSimError

from altershield.api.gates.windows import Cron, Dates, Day, ReleaseWindowSpec, Schedule, Weekly
from reconciler.gates import calendars
from reconciler.gates.problems import ScheduleError
from reconciler.gates.terms import DAY, Span, calendar_key
from reconciler.gates.wall_clock import UnknownZoneError, instant, instants, wall_time, zone_of

_LOOK_BACK = 8 * DAY
"""Times that follow one another without a gap are one time. It begins at most so much before the time span."""

_LAST_DAY = datetime.date(9990, 1, 1)


def intervals(spec: ReleaseWindowSpec, texts: Mapping[str, str], begin: int, end: int) -> list[Span]:
    """The times of all schedules that overlap the time from `begin` to `end` (Unix seconds), in their order. None
    touches the next one. The first one has its real begin, up to eight days before `begin`; the last one its real end
    as far as it follows from times that begin before `end`.

    `texts` has the text of each calendar, by `calendar_key`. ScheduleError names the schedule that cannot be worked
    out.
    """
    try:
        zone = zone_of(spec.time_zone)
    except UnknownZoneError as error:
        raise ScheduleError(
            f"spec.timeZone: {spec.time_zone} is not a name of the IANA time zone database; write one, for example "
            "Europe/Berlin"
        ) from error
    found: list[Span] = []
    for number, schedule in enumerate(spec.schedules):
        try:
            found += (each for each in _of(schedule, texts, zone, begin - _LOOK_BACK, end) if each[0] < end)
        except ScheduleError as error:
            raise error.at(f"spec.schedules[{number}]") from error
    return [each for each in merged(found) if each[1] > begin]


def merged(spans: Iterable[Span]) -> list[Span]:
    """The same times, in their order, with those that overlap or touch joined. Empty ones are left out."""
    found: list[Span] = []
    for start, stop in sorted(spans):
        if stop <= start:
            continue
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], stop)
        else:
            found.append((start, stop))
    return found


def _of(schedule: Schedule, texts: Mapping[str, str], zone: datetime.tzinfo, begin: int, end: int) -> Iterable[Span]:
    """The times of one schedule that overlap the time from `begin` to `end`; others may be there too."""
    if schedule.weekly is not None:
        return _weekly(schedule.weekly, zone, begin, end)
    if schedule.cron is not None:
        return _cron(schedule.cron, zone, begin, end)
    if schedule.dates is not None:
        return [_dates(schedule.dates, zone)]
    if schedule.calendar is not None:
        return calendars.spans(texts[calendar_key(schedule.calendar)], zone, begin, end)
    raise ScheduleError("it has none of weekly, cron, dates and calendar; set one of them")


def _weekly(weekly: Weekly, zone: datetime.tzinfo, begin: int, end: int) -> Iterator[Span]:
    days = {list(Day).index(day) for day in weekly.days}
    start, stop = (_minutes(text) for text in (weekly.from_, weekly.to))
    if stop <= start:
        stop += 24 * 60
    day, last = (wall_time(each, zone).date() for each in (begin - 2 * DAY, end))
    while day <= last:
        if day.weekday() in days:
            midnight = datetime.datetime.combine(day, datetime.time())
            yield (
                instant(midnight + datetime.timedelta(minutes=start), zone),
                instant(midnight + datetime.timedelta(minutes=stop), zone),
            )
        day += datetime.timedelta(days=1)


def _minutes(text: str) -> int:
    """The minutes from midnight to a time of the day, as `18:30`."""
    hours, _, minutes = text.partition(":")
    return int(hours) * 60 + int(minutes)


def _cron(cron: Cron, zone: datetime.tzinfo, begin: int, end: int) -> Iterator[Span]:
    """As Debian's cron: a schedule whose minute or hour begins with `*` follows the hours that pass, so it has no time
    that is skipped, and a time that comes twice both times. Any other schedule has each of its times once.

    CronSim gets the time on the wall without a zone: with one, it leaves out times after a shift of half an hour.
    """
    fields = cron.schedule.split()
    if len(fields) != 5:
        raise ScheduleError(f"cron: {cron.schedule!r} does not have five fields; write them as `0 18 * * 5`")
    try:
        times = CronSim(cron.schedule, wall_time(begin - cron.duration_seconds - DAY, zone))
    except (CronSimError, ValueError, AssertionError) as error:
        raise ScheduleError(f"cron: {cron.schedule!r} is not a cron schedule: {error}; correct it") from error
    follows = any(each.startswith("*") for each in fields[:2])
    for wall in times:
        first = instant(wall, zone)
        if first >= end:
            return
        for start in instants(wall, zone) if follows else (first,):
            yield start, start + cron.duration_seconds


def _dates(dates: Dates, zone: datetime.tzinfo) -> Span:
    first, last = (_date(text) for text in (dates.from_, dates.to))
    day_after = min(last, _LAST_DAY) + datetime.timedelta(days=1)
    start, stop = (
        instant(datetime.datetime.combine(each, datetime.time()), zone) for each in (min(first, _LAST_DAY), day_after)
    )
    return start, stop


def _date(text: str) -> datetime.date:
    try:
        found = datetime.date.fromisoformat(text)
    except ValueError as error:
        raise ScheduleError(f"dates: {text} is not a day of the calendar; correct it") from error
    if found.year < 1970:
        raise ScheduleError(f"dates: {text} is before 1970; correct it")
    return found
