"""Text for people, from sources that may hold anything."""

import unicodedata

from altershield.api.meta import plain_time

_MAX_WARNING = 256  # bytes; the API server cuts warnings there once there are many of them
_MAX_UNIX = 10**11  # the year 5138


def clean(text: str, limit: int) -> str:
    """`text` on one line, at most `limit` bytes in UTF-8. The API server drops a warning that has a control
    character in it."""
    line = "".join(" " if unicodedata.category(c) == "Cc" else c for c in text[: limit + 1]).strip()
    data = line.encode()
    if len(data) <= limit:
        return line
    return data[: limit - len("…".encode())].decode(errors="ignore") + "…"


def warning(text: str) -> str:
    return clean(text, _MAX_WARNING)


def owned(key: str, kept: str | None) -> str:
    """The warning for whoever wrote a label of a workload that is AlterShield's; `kept` is what it is now."""
    outcome = "it was taken off" if kept is None else f"it stays {kept!r}"
    return warning(f"label {key} is AlterShield's own: {outcome}")


def at(word: str, seconds: int) -> str:
    """` since 2023-05-11 07:46:15 UTC`; empty for no time."""
    return f" {word} {plain_time(seconds)} UTC" if 0 < seconds < _MAX_UNIX else ""
