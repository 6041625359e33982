"""Log lines about refused requests. Anybody who reaches the port can cause refusals, so their number is bounded."""

import logging
import time
from collections import Counter
from collections.abc import Callable

logger = logging.getLogger(__name__)

_SECONDS = 60.0


class Refusals:
    """Logs at most one refusal for each reason in a minute. `timer` returns seconds."""

    def __init__(self, timer: Callable[[], float] = time.monotonic) -> None:
        self._timer = timer
        self._logged: dict[str, float] = {}
        self._unlogged: Counter[str] = Counter()

    def note(self, reason: str, error: Exception) -> None:
        """Log a refused request. `reason` is one of a few words. The cause of `error` is logged too; the caller does
        not get it."""
        now = self._timer()
        if now < self._logged.get(reason, float("-inf")) + _SECONDS:
            self._unlogged[reason] += 1
            return
        self._logged[reason] = now
        cause = f"{error}: {error.__cause__}" if error.__cause__ is not None else str(error)
        unlogged = self._unlogged.pop(reason, 0)
        logger.warning("request refused", extra={"reason": reason, "cause": cause[:1024], "unlogged": unlogged})
