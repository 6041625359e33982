"""How long a write is tried that the API server may accept later."""

from typing import NamedTuple

SECONDS = 5.0
"""The time for which a write is tried."""
ATTEMPTS = 4
"""The attempts that a write has at least: on a busy machine, or with a slow API server, one may take all of the time.
With the usual delays between two attempts, four take about as long as `SECONDS`."""
_SEPARATE_SECONDS = 60.0  # after a failure; a failure that comes later counts as the first one again
_MAX_WRITES = 1024


class _Failing(NamedTuple):
    since: float
    last: float
    times: int


class Attempts:
    """The failed attempts of writes, by a key of the write. Times are seconds of one monotonic clock."""

    def __init__(self) -> None:
        self._failing: dict[str, _Failing] = {}

    def failed(self, write: str, now: float) -> bool:
        """Count a failure. Whether the write has had its time and its attempts; then `ended` must be called."""
        if len(self._failing) >= _MAX_WRITES:
            self._failing.clear()
        before = self._failing.get(write)
        if before is None or now - before.last > _SEPARATE_SECONDS:
            before = _Failing(now, now, 0)
        failing = self._failing[write] = _Failing(before.since, now, before.times + 1)
        return now - failing.since >= SECONDS and failing.times >= ATTEMPTS

    def ended(self, write: str) -> None:
        """The write succeeded, or is not tried again."""
        self._failing.pop(write, None)
