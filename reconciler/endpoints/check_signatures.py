"""Verifies that a callback about a check comes from a holder of the check's key: it is signed, recent, and new."""

import hmac
import re
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from multidict import CIMultiDictProxy

from reconciler.checks.identity import CheckRun
from reconciler.checks.signing import SIGNATURE_HEADER, TIMESTAMP_HEADER, signature
from reconciler.endpoints.endpoint_errors import EndpointError
from reconciler.endpoints.outcome import CallbackOutcome
from reconciler.endpoints.replays import Replays
from reconciler.endpoints.signatures import SKEW
from reconciler.outbound.outbound_errors import CredentialsError

Key = Callable[[CheckRun], Awaitable[bytes]]
"""Returns the key of a run; empty if there is none. CredentialsError: the Secret with the key cannot be used."""

_SIGNATURE = re.compile(r"sha256=[0-9a-f]{64}")
_TIMESTAMP = re.compile(r"[0-9]{1,12}")


class CheckClaim(NamedTuple):
    """The headers of a callback. The signature is not verified."""

    timestamp: int
    """Unix seconds."""
    signature: str


class CheckSignatures:
    """Verifies callbacks. `clock` returns Unix seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._replays = Replays(2 * SKEW)  # a timestamp may be as far in the future

    def claim(self, headers: CIMultiDictProxy[str]) -> CheckClaim:
        """The claim of a callback, before its body is read. EndpointError (401) if it cannot be valid, or if its
        timestamp is too far from the clock."""
        timestamps, signatures = headers.getall(TIMESTAMP_HEADER, []), headers.getall(SIGNATURE_HEADER, [])
        if len(timestamps) != 1 or len(signatures) != 1:
            raise _unsigned()
        if not _TIMESTAMP.fullmatch(timestamps[0]) or not _SIGNATURE.fullmatch(signatures[0]):
            raise _unsigned()
        away = int(timestamps[0]) - self._clock()
        if abs(away) > SKEW:
            message = f"{TIMESTAMP_HEADER} is {abs(away):.0f} s {'ahead of' if away > 0 else 'behind'} our clock"
            raise EndpointError(f"{message}; at most {SKEW:.0f} s are allowed", 401, CallbackOutcome.STALE)
        return CheckClaim(int(timestamps[0]), signatures[0])

    async def verify(self, claim: CheckClaim, run: CheckRun, body: bytes, key: Key) -> None:
        """Verify the signature of a body about this run. EndpointError: it is wrong, or there is no such run (401), or
        the callback was accepted before (409). `forget` must follow unless the callback changes something."""
        try:
            secret = await key(run)
        except CredentialsError as error:
            raise _unsigned() from error  # the reason is for the log, not for the caller
        right = signature(secret, claim.timestamp, body)
        if not secret or not hmac.compare_digest(right, claim.signature):
            raise _unsigned()
        self._replays.use(claim.signature)

    def forget(self, claim: CheckClaim) -> None:
        """Forget a callback that has changed nothing. So only callbacks that end a check are remembered: a sender with
        a key cannot fill the memory, which all senders share."""
        self._replays.forget(claim.signature)


def _unsigned() -> EndpointError:
    """The same error in all cases: a caller without the key does not learn which runs there are."""
    message = "the callback is not signed with the key of its check, or there is no such check"
    return EndpointError(message, 401, CallbackOutcome.UNSIGNED)
