"""Durations in the formats of kubectl."""

import re

from kube_base.errors import UsageError

_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|s|m|h))+")
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")


def seconds(text: str, option: str) -> float:
    """The seconds of `90s`, `5m` or `1h30m`. A number without a unit is in seconds. UsageError: another text."""
    if re.fullmatch(r"\d+(?:\.\d+)?", text):
        return float(text)
    if not _DURATION.fullmatch(text):
        raise UsageError(f'{option} "{text}" is not a duration; write it as 90s, 5m or 1h30m')
    return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))


def age(total: float) -> str:
    """A duration for the column AGE, in the one or two largest units: `45s`, `3m12s`, `5h10m`, `7d`."""
    count = int(total)
    if count < 0:
        return "0s"
    if count < 2 * _MINUTE:
        return f"{count}s"
    if count < 10 * _MINUTE:
        return _two(count, _MINUTE, "m", 1, "s")
    if count < 3 * _HOUR:
        return f"{count // _MINUTE}m"
    if count < 8 * _HOUR:
        return _two(count, _HOUR, "h", _MINUTE, "m")
    if count < 2 * _DAY:
        return f"{count // _HOUR}h"
    if count < 8 * _DAY:
        return _two(count, _DAY, "d", _HOUR, "h")
    if count < 2 * 365 * _DAY:
        return f"{count // _DAY}d"
    return f"{count // (365 * _DAY)}y"


def _two(count: int, large: int, large_unit: str, small: int, small_unit: str) -> str:
    rest = count % large // small
    return f"{count // large}{large_unit}{rest}{small_unit}" if rest else f"{count // large}{large_unit}"
