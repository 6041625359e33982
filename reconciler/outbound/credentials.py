"""The credentials of one request. They never appear in logs: their representation is empty."""

import ssl
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, repr=False)
class Credentials:
    """The credentials in a Secret of a tenant."""

    authorization: str = ""
    """The header Authorization; empty: none."""
    hmac: bytes = b""
    """The key that signs requests and callbacks; empty: none."""
    context: ssl.SSLContext | None = field(default=None, compare=False)
    """For https: the CA and the client certificate. None: the system's CAs."""
