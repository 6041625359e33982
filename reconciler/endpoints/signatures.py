"""Verifies that a request comes from the AlterShield server: it is signed with the token, recent, and new."""

import re
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from multidict import CIMultiDictProxy

from kube_base.errors import UsageError
from reconciler.endpoints.endpoint_errors import EndpointError
from reconciler.endpoints.outcome import CallbackOutcome
from reconciler.endpoints.replays import Replays
from reconciler.server import signature

SKEW = 300.0
"""Seconds between the timestamp of a request and our clock."""

Token = Callable[[], Awaitable[str]]
"""Returns the token of our platform, now. UsageError if there is none."""

_SIGNATURE = re.compile(r"[A-Z0-9_=-]{44}")


class Claim(NamedTuple):
    """The header of a request, not verified."""

    timestamp: int
    """Milliseconds."""
    signature: str
    token: str
    """The token that the signature is compared with."""


class Signatures:
    """Verifies requests to one port. `clock` returns Unix seconds."""

    def __init__(self, platform: str, token: Token | None, clock: Callable[[], float]) -> None:
        self._platform = platform
        self._token = token
        self._clock = clock
        self._replays = Replays(2 * SKEW)  # a timestamp may be as far in the future

    async def claim(self, headers: CIMultiDictProxy[str]) -> Claim:
        """The claim of a request, before its body is read. EndpointError (401) if it cannot be valid; EndpointError
        (503) if no token is configured."""
        token = await self._current_token()
        platform, timestamp, sign = (
            _only(headers, name)
            for name in (signature.PLATFORM_HEADER, signature.TIMESTAMP_HEADER, signature.SIGN_HEADER)
        )
        number = signature.timestamp_of(timestamp)
        if platform != self._platform or number is None or not _SIGNATURE.fullmatch(sign):
            raise _unsigned()
        return Claim(number, sign, token)

    def verify(self, claim: Claim, body: bytes) -> bytes:
        """The signed content of the body. Decode this content instead of the body, as AlterShield servers do.
        EndpointError if the signature is wrong (401), if the timestamp is too far from the clock (401), or if the
        request was received before (409). `give_back` must follow if the request then fails."""
        content = signature.body_content(body)
        if not content.strip() or not signature.verify(claim.signature, claim.timestamp, content, claim.token):
            raise _unsigned()
        away = claim.timestamp / 1000 - self._clock()
        if abs(away) > SKEW:
            message = (
                f"the timestamp is {abs(away):.0f} s {'ahead of' if away > 0 else 'behind'} the reconciler's clock"
            )
            raise EndpointError(f"{message}; at most {SKEW:.0f} s are allowed", 401, CallbackOutcome.STALE)
        self._replays.use(claim.signature)
        return content

    def give_back(self, claim: Claim) -> None:
        """The verified request failed, so the server may send it again."""
        self._replays.give_back(claim.signature)

    async def _current_token(self) -> str:
        missing = EndpointError(
            "the reconciler has no token to verify signatures with, so it accepts no signed requests; see "
            "--server-token-file",
            503,
            CallbackOutcome.UNSIGNED,
        )
        try:
            token = (await self._token()).strip() if self._token is not None else ""
        except UsageError as error:
            raise missing from error
        if not token:
            raise missing
        return token


def _only(headers: CIMultiDictProxy[str], name: str) -> str:
    """The value of a header that occurs once; empty otherwise."""
    values = headers.getall(name, [])
    return values[0] if len(values) == 1 else ""


def _unsigned() -> EndpointError:
    """The same error in all cases: a caller without the token learns nothing about its request."""
    message = "the request is not signed with the token of this platform"
    return EndpointError(message, 401, CallbackOutcome.UNSIGNED)
