"""Durations in short form: `5m10s`, `3d4h` (apimachinery's `HumanDuration`)."""

import calendar
import time
from typing import Any

_DAY = 24  # hours
_YEAR = 365  # days


def age(text: Any) -> str:
    """The time since a Kubernetes timestamp; `<unknown>` without a timestamp. Raises ValueError for other text."""
    if not isinstance(text, str) or not text:
        return "<unknown>"
    return duration(time.time() - calendar.timegm(time.strptime(text[:19], "%Y-%m-%dT%H:%M:%S")))


def duration(seconds: float) -> str:
    """A duration with two or three significant digits."""
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    if whole < 0:
        return "0s"
    if whole < 120:
        return f"{whole}s"
    minutes, hours = whole // 60, whole // 3600
    if minutes < 10:
        return _two_units(minutes, "m", whole % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two_units(hours, "h", minutes % 60, "m")
    if hours < 2 * _DAY:
        return f"{hours}h"
    days = hours // _DAY
    if days < 8:
        return _two_units(days, "d", hours % _DAY, "h")
    if days < 2 * _YEAR:
        return f"{days}d"
    if days < 8 * _YEAR:
        return _two_units(days // _YEAR, "y", days % _YEAR, "d")
    return f"{days // _YEAR}y"


def _two_units(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"
