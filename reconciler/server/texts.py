"""Texts within the limits of AlterShield's open API. The limits are bytes of UTF-8."""

import hashlib

from altershield.texts import beginning

ORDER_ID = 128
TITLE = 256
URL = 512
CREATOR = 56  # the open API allows 128 bytes, but the column in the server's database has 56
EXECUTOR = 128
MESSAGE = 16384
COMMENT = 4096
MIN_COMMENT = 4  # characters


def shortened(text: str, limit: int, digits: int = 32) -> str:
    """The text, or its beginning and `digits` digits of its SHA-256, in at most `limit` bytes: two long texts that
    differ only at their end stay different. A shortened text is not shortened again."""
    data = text.encode(errors="replace")
    if len(data) <= limit:
        return data.decode()
    digest = hashlib.sha256(data).hexdigest()[:digits]
    return f"{beginning(data, limit - digits - 1)}-{digest}"


def order_id(text: str) -> str:
    """The id of an order as the server knows it. Callbacks contain this id."""
    return shortened(text, ORDER_ID)
