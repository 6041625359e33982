"""A queue of keys to work on, as client-go's work queues: each key waits once, is worked on by one worker at a time,
and comes back after growing delays while the work on it fails."""

import asyncio
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

_FIRST_DELAY = 0.005  # seconds, as controller-runtime's default rate limiter
_LAST_DELAY = 60.0
_DOUBLINGS = 14  # the delay has then reached its maximum


class WorkQueue(Generic[K]):
    def __init__(self) -> None:
        self._ready: asyncio.Queue[K] = asyncio.Queue()
        self._waiting: set[K] = set()
        self._working: set[K] = set()
        self._timers: dict[K, tuple[float, asyncio.Handle]] = {}  # when it is due: uvloop's handles do not tell
        self._failures: dict[K, int] = {}

    def add(self, key: K) -> None:
        """Work on `key` soon; if it is being worked on now, once more afterwards."""
        if key not in self._waiting:
            self._waiting.add(key)
            if key not in self._working:
                self._ready.put_nowait(key)

    def add_after(self, key: K, seconds: float) -> None:
        """Add `key` in `seconds`. Of several delays of one key the shortest counts."""
        if seconds <= 0:
            self.add(key)
            return
        loop = asyncio.get_running_loop()
        due = loop.time() + seconds
        timer = self._timers.get(key)
        if timer is not None:
            if timer[0] <= due:
                return
            timer[1].cancel()
        self._timers[key] = due, loop.call_at(due, self._due, key)

    def add_rate_limited(self, key: K) -> None:
        """Add `key` after a delay that doubles with every call, from 5 ms to a minute, until `forget`."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        self.add_after(key, min(_FIRST_DELAY * 2 ** min(failures, _DOUBLINGS), _LAST_DELAY))

    def forget(self, key: K) -> None:
        """The work on `key` succeeded: its next failure starts with the shortest delay."""
        self._failures.pop(key, None)

    async def get(self) -> K:
        """The next key, once there is one. Call `done` when the work on it has ended."""
        key = await self._ready.get()
        self._waiting.discard(key)
        self._working.add(key)
        return key

    def done(self, key: K) -> None:
        self._working.discard(key)
        if key in self._waiting:
            self._ready.put_nowait(key)

    def _due(self, key: K) -> None:
        del self._timers[key]
        self.add(key)
