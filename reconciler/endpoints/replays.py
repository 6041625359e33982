"""The signatures of accepted requests, so that each is accepted once."""

import time
from collections import OrderedDict
from collections.abc import Callable

from reconciler.endpoints.endpoint_errors import EndpointError
from reconciler.endpoints.outcome import CallbackOutcome

MOST = 100_000
"""Signatures that are kept. Only requests with a valid signature add one."""


class Replays:
    """Keeps each signature for `seconds` after it came. `timer` returns seconds that never go back."""

    def __init__(self, seconds: float, *, most: int = MOST, timer: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._most = most
        self._timer = timer
        self._used: OrderedDict[str, tuple[float, bool]] = OrderedDict()  # until when it is kept, and whether it counts

    def use(self, signature: str) -> None:
        """Use a signature. The caller has verified it. EndpointError (409) if it is used already; EndpointError (503)
        if too many are kept. A signature is never dropped before its time, because it could then be used again."""
        self._drop_old()
        until, used = self._used.get(signature, (self._timer() + self._seconds, False))
        if used:
            raise EndpointError("this request was received before", 409, CallbackOutcome.REPLAYED)
        if signature not in self._used and len(self._used) >= self._most:
            raise EndpointError("too many requests; send it again later", 503, CallbackOutcome.FAILED)
        self._used[signature] = (until, True)

    def give_back(self, signature: str) -> None:
        """The request failed, so its sender may send it again."""
        if signature in self._used:
            self._used[signature] = (self._used[signature][0], False)

    def forget(self, signature: str) -> None:
        """The request has changed nothing, so it may come again."""
        self._used.pop(signature, None)

    def _drop_old(self) -> None:
        now = self._timer()
        while self._used and next(iter(self._used.values()))[0] <= now:
            self._used.popitem(last=False)
