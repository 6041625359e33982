"""The time of the API server's clock. Ages of objects count by this clock, because the server sets their timestamps.

Every response has the server's time in whole seconds (the header Date). The local clock is used while it agrees with
the header. Otherwise, the smallest offset with which it agrees is added to the local clock.
"""

import email.utils
import time
from collections.abc import Callable

_BEGAN = time.time() - time.monotonic()
_TOLERANCE = 1.0  # seconds; the clocks of several API servers differ a little, and the time must not jump between them

_FASTEST = 1.1  # seconds of a slewed clock in a second


def steady_time() -> float:
    """This machine's time in Unix seconds, without steps: a machine whose clock is set forward does not take pods for
    older."""
    return _BEGAN + time.monotonic()


class ServerClock:
    """Call it for the time in Unix seconds. `local` is the local clock."""

    def __init__(self, local: Callable[[], float] = steady_time) -> None:
        self._local = local
        self.offset = 0.0
        """Seconds by which the server's clock is ahead of the local clock."""

    def __call__(self) -> float:
        return self._local() + self.offset

    def update(self, date: str, elapsed: float) -> None:
        """Take the header Date of a response to a request that was sent `elapsed` seconds ago."""
        parsed = email.utils.parsedate_tz(date)
        if parsed is None:
            return
        server, now = float(email.utils.mktime_tz(parsed)), self._local()
        least, most = server - now, server + 1.0 - (now - elapsed)
        if self.offset < least - _TOLERANCE:
            self.offset = least
        elif self.offset > most + _TOLERANCE:
            self.offset = most


class SlewedClock:
    """Call it for the time of `clock`, without steps forward: between two calls, it advances at most a tenth more than
    the `local` clock. Otherwise, a correction of the API server's clock would make all pods older, and overdue at once.

    It follows a step back at once, because a pod that is younger than it seems must not be overdue.
    """

    def __init__(self, clock: Callable[[], float], local: Callable[[], float]) -> None:
        self._clock = clock
        self._local = local
        self._last: tuple[float, float] | None = None
        """The time of the last call, and the local time then."""

    def __call__(self) -> float:
        now, local = self._clock(), self._local()
        if self._last is not None:
            time_then, local_then = self._last
            now = min(now, time_then + _FASTEST * (local - local_then))
        self._last = now, local
        return now
