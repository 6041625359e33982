"""Texts within the limits of AlterShield's open API. The limits are bytes of UTF-8."""

import hashlib
import re

ORDER_ID = 128
TITLE = 256
URL = 512
CREATOR = 56  # the open API allows 128 bytes, but the column in the server's database has 56
EXECUTOR = 128
MESSAGE = 16384
COMMENT = 4096
MIN_COMMENT = 4  # characters

_ELLIPSIS = "…"
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


def cut(text: str, limit: int) -> str:
    """The text, or its beginning and an ellipsis, in at most `limit` bytes. No character is split."""
    data = text.encode(errors="replace")
    if len(data) <= limit:
        return data.decode()
    return _beginning(data, limit - len(_ELLIPSIS.encode())) + _ELLIPSIS


def shortened(text: str, limit: int, digits: int = 32) -> str:
    """The text, or its beginning and `digits` digits of its SHA-256, in at most `limit` bytes: two long texts that
    differ only at their end stay different. A shortened text is not shortened again."""
    data = text.encode(errors="replace")
    if len(data) <= limit:
        return data.decode()
    digest = hashlib.sha256(data).hexdigest()[:digits]
    return f"{_beginning(data, limit - digits - 1)}-{digest}"


def order_id(text: str) -> str:
    """The id of an order as the server knows it. Callbacks contain this id."""
    return shortened(text, ORDER_ID)


def one_line(text: str, limit: int = 1024) -> str:
    """A text of the server for logs, Events and conditions: on one line and in at most `limit` bytes."""
    return cut(_CONTROL.sub(" ", text).strip(), limit)


def _beginning(data: bytes, limit: int) -> str:
    return data[:limit].decode(errors="ignore")
