"""Texts for users. They quote sources that may contain any characters."""

import unicodedata

from altershield.api.pages import DENIED
from kube_base.times import rfc3339

PAGE_WARNING = f"AlterShield: this page explains the denial: {DENIED}"
"""A warning for denials whose message names no page. Controllers put that message into Events, so it is short."""

_MAX_WARNING = 256  # bytes; the API server cuts warnings there once there are many of them
_MAX_UNIX = 10**11  # the year 5138
_REPLACED = frozenset({"Cc", "Zl", "Zp", "Cs"})  # control characters, line and paragraph separators, half surrogates
_BIDIRECTIONAL = dict.fromkeys(map(ord, "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"))


def clean(text: str, limit: int) -> str:
    """`text` on one line, at most `limit` bytes in UTF-8.

    Control characters become spaces, because the API server drops a warning that contains one. Bidirectional control
    characters are removed, because they change the order in which a terminal shows the text.
    """
    plain = text.isascii() and text.isprintable()
    if plain and len(text) <= limit:
        return text.strip()
    text = text[: limit + 1]
    if not plain:
        text = text.translate(_BIDIRECTIONAL)
        text = "".join(" " if unicodedata.category(c) in _REPLACED else c for c in text)
    data = text.strip().encode()
    if len(data) <= limit:
        return data.decode()
    return data[: limit - len("…".encode())].decode(errors="ignore") + "…"


def warning(text: str) -> str:
    """`text` as a warning of an admission response."""
    return clean(text, _MAX_WARNING)


def advice(text: str, command: str) -> str:
    """A warning that ends with a command to paste. If the command does not fit, the warning names the page instead."""
    whole = f"{text}: {command}"
    return whole if warning(whole) == whole else warning(f"{text} (see {DENIED})")


def restored_warning(key: str, kept: str | None) -> str:
    """The warning for a user who changed a label that only AlterShield writes. `kept` is the stored value."""
    outcome = "it was removed" if kept is None else f"its value is still {kept!r}"
    return warning(f"AlterShield: only AlterShield writes the label {key}: {outcome}")


def time_text(word: str, seconds: int) -> str:
    """A word and a time in Unix seconds, as ` since 2023-05-11T07:46:15Z`. Empty if there is no time."""
    return f" {word} {rfc3339(seconds)}" if 0 < seconds < _MAX_UNIX else ""
