"""The signature of requests about a check: of ours to a receiver, and of a receiver's callbacks."""

import hashlib
import hmac

TIMESTAMP_HEADER = "X-AlterShield-Timestamp"
SIGNATURE_HEADER = "X-AlterShield-Signature"


def signature(key: bytes, timestamp: int, body: bytes) -> str:
    """`sha256=` and the HMAC-SHA256 of `TIMESTAMP.BODY` in hexadecimal digits. `timestamp` is in Unix seconds. A
    receiver compares it, and refuses old timestamps, so that nobody can send a request again later."""
    return "sha256=" + hmac.digest(key, b"%d." % timestamp + body, hashlib.sha256).hex()
