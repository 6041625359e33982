"""Durations in specs: `90s`, `10m`, `1h30m`. Hours, minutes and seconds in this order, each at most once."""

import re

PATTERN = "^([0-9]{1,4}h)?([0-9]{1,5}m)?([0-9]{1,6}s)?$"
"""The regular expression of the schema. It also matches the empty text, which a minimum length excludes."""

_DURATION = re.compile("(?:([0-9]{1,4})h)?(?:([0-9]{1,5})m)?(?:([0-9]{1,6})s)?")
_HOUR, _MINUTE = 3600, 60


def seconds(text: str) -> int:
    """The seconds of a duration. ValueError: the text is no duration, or the duration is 0."""
    found = _DURATION.fullmatch(text)
    hours, minutes, rest = (int(part or 0) for part in found.groups()) if found is not None else (0, 0, 0)
    total = hours * _HOUR + minutes * _MINUTE + rest
    if not total:
        raise ValueError(f"{text[:32]!r} is not a duration; write it as 90s, 10m or 1h30m")
    return total
