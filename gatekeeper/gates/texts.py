"""Text for people, from sources that may hold anything."""

import unicodedata

_MAX_WARNING = 256  # bytes; the API server cuts warnings there once there are many of them


def clean(text: str, limit: int) -> str:
    """`text` on one line, at most `limit` bytes in UTF-8. The API server drops a warning that has a control
    character in it."""
    line = "".join(" " if unicodedata.category(c) == "Cc" else c for c in text[:limit]).strip()
    data = line.encode()
    if len(data) <= limit:
        return line
    return data[: limit - len("…".encode())].decode(errors="ignore") + "…"


def warning(text: str) -> str:
    return clean(text, _MAX_WARNING)
