"""The library that evaluates CEL, without its command line, whose libraries take a quarter of a second to import."""

import contextlib
import datetime
import re
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

__all__ = ["add_library", "cel", "function_error"]

_FUNCTION_ERROR = re.compile(r"Python function call failed: ValueError: (.*)\. Check function arguments", re.DOTALL)


def add_library(context: cel.Context) -> None:
    """Add the functions of CEL that the library lacks, as the API server has them."""
    add_stdlib_to_context(context)
    context.add_function("getHours", _hours)


def function_error(error: Exception) -> str:
    """The text of an error of the library, or of the function below that raised it."""
    found = _FUNCTION_ERROR.search(str(error))
    return found[1] if found is not None else str(error)


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
    if ".." in zone or zone.startswith(("/", "\\")):
        raise ValueError("time: invalid location name")
    try:
        return zoneinfo.ZoneInfo(zone)
    except (zoneinfo.ZoneInfoNotFoundError, OSError) as error:
        raise ValueError(f"unknown time zone {zone}") from error
