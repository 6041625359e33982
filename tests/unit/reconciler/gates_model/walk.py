"""The times of a ReleaseWindow, found by a walk along the clock on the wall, minute by minute."""

import bisect
import datetime
import itertools
import zoneinfo
from collections.abc import Callable, Iterator
from functools import lru_cache

from altershield.api.gates.windows import Cron, Day, ReleaseWindowSpec, Schedule

MINUTE, DAY = 60, 86_400
DAYS_BEFORE, DAYS = 12, 96
_EPOCH = datetime.date(1970, 1, 1)
_QUARTER = 15 * MINUTE

Span = tuple[int, int]


class Walk:
    """The clock on the wall of a zone, from some weeks before a day on."""

    def __init__(self, zone: str, start: int) -> None:
        self.origin = (start // DAY - DAYS_BEFORE) * DAY
        found, own = list[int](), zoneinfo.ZoneInfo(zone)
        for quarter in range(self.origin, self.origin + DAYS * DAY, _QUARTER):
            offset = datetime.datetime.fromtimestamp(quarter, own).utcoffset() or datetime.timedelta()
            wall = (quarter + int(offset.total_seconds())) // MINUTE
            found += range(wall, wall + 15)
        self.shown = found
        """What the clock shows at each minute, in minutes since 1970."""
        self.latest = list(itertools.accumulate(found, max))
        """The latest time that it has shown so far: it stands still while an hour comes a second time."""

    def first(self, wall: int) -> int:
        """The Unix second of the first minute at which the clock shows this time or a later one."""
        return self.origin + MINUTE * bisect.bisect_left(self.latest, wall)

    @property
    def days(self) -> range:
        """The days that it shows, since 1970, but for the first and the last ones."""
        return range(self.shown[0] // 1440 + 2, self.shown[-1] // 1440 - 2)


walk = lru_cache(maxsize=64)(Walk)


@lru_cache(maxsize=4096)
def spans(schedule: Schedule, zone: str, start: int) -> tuple[Span, ...]:
    """The times of a schedule, as far as the walk goes."""
    own = walk(zone, start)
    if schedule.weekly is not None:
        weekly = schedule.weekly
        begin, end = _minutes(weekly.from_), _minutes(weekly.to)
        end += 1440 if end <= begin else 0
        days = [day for day in own.days if list(Day)[(day + 3) % 7] in weekly.days]  # 1970 began with a Thursday
        return tuple((own.first(day * 1440 + begin), own.first(day * 1440 + end)) for day in days)
    if schedule.dates is not None:
        first, last = (datetime.date.fromisoformat(each) for each in (schedule.dates.from_, schedule.dates.to))
        days = [day for day in own.days if first <= _date(day) <= last]
        return tuple((own.first(day * 1440), own.first(day * 1440 + 1440)) for day in days)
    assert schedule.cron is not None
    return tuple((each, each + schedule.cron.duration_seconds) for each in _fires(schedule.cron, own))


def _minutes(text: str) -> int:
    return int(text[:2]) * 60 + int(text[3:])


def _date(day: int) -> datetime.date:
    return _EPOCH + datetime.timedelta(days=day)


def _fires(cron: Cron, own: Walk) -> Iterator[int]:
    """A schedule whose minute or hour begins with `*` follows the hours that pass. Another one has its time once."""
    minute, hour, day, month, weekday = cron.schedule.split()
    follows = minute.startswith("*") or hour.startswith("*")
    fits_day: dict[int, bool] = {}

    def fits(wall: int) -> bool:
        number = wall // 1440
        if number not in fits_day:
            date = _date(number)
            own_day = _fits(day)(date.day) and _fits(month)(date.month)
            fits_day[number] = own_day and _fits(weekday)((date.weekday() + 1) % 7)
        return fits_day[number]

    minutes = [each for each in range(1440) if _fits(hour)(each // 60) and _fits(minute)(each % 60)]
    if follows:
        wanted = set(minutes)
        yield from (
            own.origin + MINUTE * number
            for number, wall in enumerate(own.shown)
            if wall % 1440 in wanted and fits(wall)
        )
        return
    for number in own.days:
        if fits(number * 1440):
            yield from (own.first(number * 1440 + each) for each in minutes)


def _fits(field: str) -> Callable[[int], bool]:
    """`*`, `*/N`, `A`, `A-B` and lists of numbers."""
    if field == "*":
        return lambda value: True
    if field.startswith("*/"):
        return lambda value: value % int(field[2:]) == 0
    if "-" in field:
        low, high = map(int, field.split("-"))
        return lambda value: low <= value <= high
    return lambda value: value in map(int, field.split(","))


def is_inside(spec: ReleaseWindowSpec, start: int, at: float) -> bool:
    """Whether a time of any schedule has begun and has not ended."""
    return any(
        begin <= at < end for schedule in spec.schedules for begin, end in spans(schedule, spec.time_zone, start)
    )


def ends(spec: ReleaseWindowSpec, start: int, at: float, most: float) -> float:
    """When the times that contain `at` and follow one another end; at most about `most` seconds later."""
    end, limit = at, at + most
    while end <= limit and is_inside(spec, start, end):
        end = max(
            stop
            for schedule in spec.schedules
            for begin, stop in spans(schedule, spec.time_zone, start)
            if begin <= end < stop
        )
    return end
