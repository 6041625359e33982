"""The signature of AlterShield's open API. The server signs its callbacks with the same algorithm.

The signature is the SHA-256 of timestamp, content and token, in URL-safe base64 with padding, in upper case. It is a
plain hash, and upper case loses part of it: both are how the server's code computes it, and the comparison is exact.
"""

import base64
import hashlib
import hmac
import re
from collections.abc import Mapping

import orjson

PLATFORM_HEADER = "X-AlterShield-Platform"
TIMESTAMP_HEADER = "X-AlterShield-Timestamp"
SIGN_HEADER = "X-AlterShield-Sign"

_TIMESTAMP = re.compile(r"[+-]?[0-9]{1,19}")
_MAX_LONG = 2**63


def sign(timestamp: int, content: bytes, token: str) -> str:
    """The signature, 44 characters. `timestamp` is in milliseconds; `content` comes from `body_content` or
    `query_content`."""
    digest = hashlib.sha256(b"%d%b&token=%b" % (timestamp, content, token.encode(errors="replace"))).digest()
    return base64.urlsafe_b64encode(digest).decode().upper()


def verify(signature: str, timestamp: int, content: bytes, token: str) -> bool:
    """Whether `signature` is the one of `content`. The time that this takes does not depend on the signature. An empty
    token verifies nothing."""
    expected = sign(timestamp, content, token).encode()
    return hmac.compare_digest(signature.encode(errors="replace"), expected) and token.strip() != ""


def body_content(body: bytes) -> bytes:
    """The content that is signed for a body: the body without CR and LF, because the server's code reads the body line
    by line and joins the lines."""
    return body.translate(None, b"\r\n")


def query_content(query: Mapping[str, str]) -> bytes:
    """The content that is signed for a GET request: the parameters of the query as compact JSON with sorted keys."""
    return orjson.dumps(dict(query), option=orjson.OPT_SORT_KEYS)


def timestamp_of(header: str) -> int | None:
    """The number in a timestamp header, or None if it is not a decimal number of 64 bits. The number, not the text of
    the header, is signed."""
    if not _TIMESTAMP.fullmatch(header):
        return None
    number = int(header)
    return number if -_MAX_LONG <= number < _MAX_LONG else None
