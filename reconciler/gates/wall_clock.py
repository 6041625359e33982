"""From times of a clock on the wall to instants. Pure functions."""

import datetime
import zoneinfo

UTC = datetime.UTC

_LONGEST_GAP = 25 * 3600  # Apia left out a day


class UnknownZoneError(ValueError):
    """No time zone of the IANA database has this name."""


def zone_of(name: str) -> zoneinfo.ZoneInfo:
    """The time zone with this IANA name. UnknownZoneError if there is none."""
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise UnknownZoneError(name) from error


def instant(wall: datetime.datetime, zone: datetime.tzinfo) -> int:
    """The Unix second at which clocks in `zone` first show `wall` (naive, whole seconds) or a later time.

    A time that is skipped when clocks go forward is the end of the gap. A time that comes twice when clocks go back is
    the first one.
    """
    found = int(wall.replace(tzinfo=zone, fold=0).timestamp())
    if wall_time(found, zone) == wall:
        return found
    # in a gap; not every kind of tzinfo says by `fold` which offset was before it
    before, after = found - _LONGEST_GAP, found + _LONGEST_GAP
    while after - before > 1:
        middle = (before + after) // 2
        if wall_time(middle, zone) < wall:
            before = middle
        else:
            after = middle
    return after


def instants(wall: datetime.datetime, zone: datetime.tzinfo) -> list[int]:
    """The Unix seconds at which clocks in `zone` show `wall` (naive, whole seconds): none, one or two."""
    found = {int(wall.replace(tzinfo=zone, fold=fold).timestamp()) for fold in (0, 1)}
    return sorted(each for each in found if wall_time(each, zone) == wall)


def wall_time(at: int, zone: datetime.tzinfo) -> datetime.datetime:
    """What clocks in `zone` show at a Unix second, as a naive time."""
    return datetime.datetime.fromtimestamp(at, zone).replace(tzinfo=None, fold=0)
