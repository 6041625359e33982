"""The library that evaluates CEL, without its command line, whose libraries take a quarter of a second to import."""

import contextlib
import datetime
import sys
import zoneinfo
from collections.abc import Iterator
from types import ModuleType

_COMMAND = "cel.cli"


@contextlib.contextmanager
def _without_command() -> Iterator[None]:
    """An empty module stands for the command line, which the library imports, while the library is imported."""
    if "cel" in sys.modules:
        yield
        return
    sys.modules[_COMMAND] = ModuleType(_COMMAND)
    try:
        yield
    finally:
        del sys.modules[_COMMAND]


with _without_command():
    import cel
    from cel.stdlib import add_stdlib_to_context

__all__ = ["add_library", "cel"]


def add_library(context: cel.Context) -> None:
    """Add the functions of CEL that the library lacks, as the API server has them."""
    add_stdlib_to_context(context)
    context.add_function("getHours", _hours)


def _hours(time: datetime.datetime, zone: str = "UTC") -> int:
    """The hour of a timestamp in a time zone, as cel-go and Go's time.LoadLocation know time zones. ValueError: unknown
    time zone."""
    return time.astimezone(_location(zone)).hour


def _location(zone: str) -> datetime.tzinfo | None:
    if zone in ("", "UTC"):
        return datetime.UTC
    if zone == "Local":
        return None  # of this machine
    if ":" in zone:
        hours, _, minutes = zone.partition(":")
        sign = -1 if zone.startswith("-") else 1
        return datetime.timezone(datetime.timedelta(hours=int(hours), minutes=sign * int(minutes)))
    try:
        return zoneinfo.ZoneInfo(zone)
    except (zoneinfo.ZoneInfoNotFoundError, OSError) as error:
        raise ValueError(f"unknown time zone {zone}") from error
