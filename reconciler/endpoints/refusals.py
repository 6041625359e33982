"""Log lines about refused callbacks. Anybody who reaches the port can cause refusals, so their number is bounded."""

import logging
from collections import Counter
from collections.abc import Callable

from reconciler.endpoints.errors import EndpointError
from reconciler.endpoints.outcome import CallbackOutcome

logger = logging.getLogger(__name__)

_SECONDS = 60.0


class Refusals:
    """Logs at most one refusal of each outcome in a minute. `timer` returns seconds."""

    def __init__(self, timer: Callable[[], float]) -> None:
        self._timer = timer
        self._logged: dict[CallbackOutcome, float] = {}
        self._unlogged: Counter[CallbackOutcome] = Counter()

    def note(self, error: EndpointError) -> None:
        outcome, now = error.outcome, self._timer()
        if now < self._logged.get(outcome, float("-inf")) + _SECONDS:
            self._unlogged[outcome] += 1
            return
        self._logged[outcome] = now
        unlogged = self._unlogged.pop(outcome, 0)
        logger.warning("callback refused", extra={"outcome": outcome, "cause": str(error), "unlogged": unlogged})
