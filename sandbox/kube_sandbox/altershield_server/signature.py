"""The signature of requests and callbacks: SHA-256 over timestamp, content and token, as upper-case base64url.

    sign = upper(base64url(sha256(decimal(timestamp) + content + "&token=" + token)))

It is a plain hash, not an HMAC. The padding stays. The comparison is exact.
"""

import base64
import hashlib
import hmac
import re
from collections.abc import Mapping

import orjson

from kube_sandbox.altershield_server.errors import BadRequestError, RefusedError
from kube_sandbox.altershield_server.vocabulary import Code

PLATFORM_HEADER = "X-AlterShield-Platform"
TIMESTAMP_HEADER = "X-AlterShield-Timestamp"
SIGN_HEADER = "X-AlterShield-Sign"

_NUMBER = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)
_INT64 = 2**63


def sign(timestamp: int, content: str, token: str) -> str:
    """The signature of `content`. `timestamp` is in Unix milliseconds."""
    digest = hashlib.sha256(f"{timestamp}{content}&token={token}".encode()).digest()
    return base64.urlsafe_b64encode(digest).decode().upper()


def post_content(body: bytes) -> str:
    """The signed text of a POST: the body without carriage returns and line feeds. The server also parses this text.

    Raises BadRequestError if the body is not UTF-8.
    """
    try:
        return body.decode().replace("\r", "").replace("\n", "")
    except UnicodeDecodeError as error:
        raise BadRequestError("the body is not UTF-8") from error


def get_content(query: Mapping[str, str]) -> str:
    """The signed text of a GET: the query as a JSON object with sorted keys and without spaces."""
    return orjson.dumps(dict(query), option=orjson.OPT_SORT_KEYS).decode()


def headers(platform: str, token: str, content: str, timestamp: int) -> dict[str, str]:
    """The three headers of a signed request."""
    return {
        PLATFORM_HEADER: platform,
        TIMESTAMP_HEADER: str(timestamp),
        SIGN_HEADER: sign(timestamp, content, token),
    }


def check(headers: Mapping[str, str], content: str, *, platform: str, token: str) -> None:
    """Raise RefusedError (102) if a header is missing, the timestamp is no number, or the signature is wrong.

    Without a token, the signature is not compared: the published server behaves so by default. There is no limit on the
    age of the timestamp, and no protection against replay.
    """
    name, timestamp, signature = (
        headers.get(header, "").strip() for header in (PLATFORM_HEADER, TIMESTAMP_HEADER, SIGN_HEADER)
    )
    if not (name and timestamp and signature):
        raise _denied("a header is missing")
    if not _NUMBER.fullmatch(timestamp) or not -_INT64 <= int(timestamp) < _INT64:
        raise _denied("the timestamp is not a number")
    if not token:
        return
    expected = sign(int(timestamp), content, token)
    if name != platform or not hmac.compare_digest(signature.encode(), expected.encode()):
        raise _denied("the signature is wrong")


def _denied(reason: str) -> RefusedError:
    return RefusedError(Code.PERMISSION_DENIED, f"permission denied: {reason}")
