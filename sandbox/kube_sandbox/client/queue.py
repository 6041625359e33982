"""A work queue like that of client-go. A key is in the queue at most once, and only one worker handles it at a time.
After a failure the key returns with a growing delay."""

import asyncio
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

_FIRST_DELAY = 0.005  # seconds; the default of controller-runtime
_LAST_DELAY = 60.0
_DOUBLINGS = 14  # after these, the delay exceeds its maximum


class WorkQueue(Generic[K]):
    def __init__(self) -> None:
        self._ready: asyncio.Queue[K] = asyncio.Queue()
        self._waiting: set[K] = set()
        self._working: set[K] = set()
        self._timers: dict[
            K, tuple[float, asyncio.Handle]
        ] = {}  # with the due time, which uvloop's handles do not have
        self._failures: dict[K, int] = {}

    def add(self, key: K) -> None:
        """Queue `key`. If a worker handles it now, it is queued again when that worker is done."""
        if key not in self._waiting:
            self._waiting.add(key)
            if key not in self._working:
                self._ready.put_nowait(key)

    def add_after(self, key: K, seconds: float) -> None:
        """Add `key` in `seconds`. Of several delays of one key, the shortest applies."""
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
        """Add `key` after a delay, which doubles with each call from 5 ms to one minute; `forget` resets it."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        self.add_after(key, min(_FIRST_DELAY * 2 ** min(failures, _DOUBLINGS), _LAST_DELAY))

    def forget(self, key: K) -> None:
        """Reset the delay of `key` after a success."""
        self._failures.pop(key, None)

    async def get(self) -> K:
        """Wait for the next key. The caller calls `done` when it has handled the key."""
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
