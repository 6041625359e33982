"""Texts of others, on one line and within a number of bytes of UTF-8."""

import re

_ELLIPSIS = "…"
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


def cut(text: str, limit: int) -> str:
    """The text, or its beginning and an ellipsis, in at most `limit` bytes. No character is split."""
    data = text.encode(errors="replace")
    if len(data) <= limit:
        return data.decode()
    return beginning(data, limit - len(_ELLIPSIS.encode())) + _ELLIPSIS


def one_line(text: str, limit: int = 1024) -> str:
    """A text for logs, Events and conditions: on one line and in at most `limit` bytes."""
    return cut(_CONTROL.sub(" ", text).strip(), limit)


def beginning(data: bytes, limit: int) -> str:
    """The characters that fit into the first `limit` bytes."""
    return data[:limit].decode(errors="ignore")
