"""A work queue of keys: it removes duplicates, delays keys, and backs off while the work on a key fails.

The semantics are those of the work queues in client-go and controller-runtime. A worker does this in a loop:

    key = await queue.get()
    try:
        await reconcile(key)
    except Exception:
        queue.add_rate_limited(key)
    else:
        queue.forget(key)
    finally:
        queue.done(key)
"""

import asyncio
from collections.abc import Hashable
from typing import Generic, TypeVar

from altershield.kube.backoff import jittered

K = TypeVar("K", bound=Hashable)

_FIRST_DELAY = 0.005  # seconds, as controller-runtime's default rate limiter
_LAST_DELAY = 60.0
_FIRST_THROTTLED = 1.0  # seconds; the first delay while the API server is overloaded
_DOUBLINGS = 30  # the delay reaches its maximum earlier; this bounds the power of two


class WorkQueue(Generic[K]):
    """A queue in which each key waits at most once, however often it is added. No key is handed out while a worker
    works on it.

    A queue belongs to one event loop and uses its clock. The number of different keys bounds its size.
    """

    def __init__(self) -> None:
        self._ready: asyncio.Queue[K] = asyncio.Queue()
        self._waiting_since: dict[K, float] = {}  # in the order of arrival
        self._working: set[K] = set()
        # with the due time, because the timers of uvloop do not have it
        self._timers: dict[K, tuple[float, asyncio.Handle]] = {}
        self._failures: dict[K, int] = {}
        self._throttled: dict[K, int] = {}
        self.taken = 0
        """The number of keys that workers have taken so far."""
        self.waited = 0.0
        """The sum of the seconds for which these keys have waited."""

    @property
    def depth(self) -> int:
        """The number of keys that are ready for a worker. Delayed keys do not count."""
        return len(self._waiting_since)

    @property
    def oldest(self) -> float:
        """Seconds that the oldest ready key has waited; 0 if no key waits."""
        since = next(iter(self._waiting_since.values()), None)
        return 0.0 if since is None else asyncio.get_running_loop().time() - since

    def add(self, key: K) -> None:
        """Add `key`. If a worker works on the key now, a worker gets it once more afterwards."""
        if key in self._waiting_since:
            return
        self._waiting_since[key] = asyncio.get_running_loop().time()
        if key not in self._working:
            self._ready.put_nowait(key)

    def add_after(self, key: K, seconds: float) -> None:
        """Add `key` in `seconds`. If a key has several delays, the earliest counts."""
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

    def add_throttled(self, key: K, retry_after: float | None) -> None:
        """Add `key` after at least `retry_after` seconds, because the API server is overloaded or fails.

        The delay doubles with every call, from a second to a minute, until `forget`. Calls of `add_rate_limited` do not
        count: a few conflicts, which are retried within milliseconds, are no sign of an overload. Half of the delay is
        random, so that keys that failed at the same moment are not retried at the same moment. The delay replaces an
        earlier, shorter delay of the key.
        """
        failures = self._throttled.get(key, 0) + 1
        self._throttled[key] = failures
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer[1].cancel()
        self.add_after(key, jittered(failures, retry_after or 0.0, first=_FIRST_THROTTLED, last=_LAST_DELAY))

    def forget(self, key: K) -> None:
        """Reset the backoff of `key` after success: its next failure starts with the shortest delay."""
        self._failures.pop(key, None)
        self._throttled.pop(key, None)

    async def get(self) -> K:
        """Wait for the next key. Call `done` when the work on it ends, with or without success."""
        key = await self._ready.get()
        self.taken += 1
        self.waited += asyncio.get_running_loop().time() - self._waiting_since.pop(key)
        self._working.add(key)
        return key

    def done(self, key: K) -> None:
        self._working.discard(key)
        if key in self._waiting_since:
            self._ready.put_nowait(key)

    def _due(self, key: K) -> None:
        del self._timers[key]
        self.add(key)
