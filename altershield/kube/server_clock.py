"""The time by the API server's clock: ages of objects that it made are counted with it, whatever our own clock says.

Every answer carries the server's time in whole seconds (the header Date). Our own clock is followed as long as the two
may agree; else it is corrected by as little as makes them agree.
"""

import email.utils
import time
from collections.abc import Callable

_TOLERANCE = 1.0  # seconds; several API servers differ a little, and the time must not jump from one to the other


class ServerClock:
    """Call it for the time in Unix seconds. `own` is our own clock."""

    def __init__(self, own: Callable[[], float] = time.time) -> None:
        self._own = own
        self.offset = 0.0
        """Seconds by which the server's clock is ahead of ours."""

    def __call__(self) -> float:
        return self._own() + self.offset

    def heard(self, date: str, elapsed: float) -> None:
        """An answer came with this header, to a request that was sent `elapsed` seconds ago."""
        parsed = email.utils.parsedate_tz(date)
        if parsed is None:
            return
        server, now = float(email.utils.mktime_tz(parsed)), self._own()
        least, most = server - now, server + 1.0 - (now - elapsed)
        if self.offset < least - _TOLERANCE:
            self.offset = least
        elif self.offset > most + _TOLERANCE:
            self.offset = most
