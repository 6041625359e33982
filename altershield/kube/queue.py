"""A queue of keys to work on: deduplicating, delaying, and backing off where work on a key keeps failing.

The semantics are those of the work queues in client-go and controller-runtime. A worker's turn:

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

from altershield.kube.backoff import spread

K = TypeVar("K", bound=Hashable)

_FIRST_DELAY = 0.005  # seconds, as controller-runtime's default rate limiter
_LAST_DELAY = 60.0
_FIRST_THROTTLED = 1.0  # seconds until an API server that is overloaded is asked again
_DOUBLINGS = 30  # past this the delay has long reached its cap; keeps the power small


class WorkQueue(Generic[K]):
    """Keys wait once each, however often they are added; no key is handed out while it is being worked on.

    Belongs to one event loop, whose clock it uses. The size is bounded by the number of different keys.
    """

    def __init__(self) -> None:
        self._ready: asyncio.Queue[K] = asyncio.Queue()
        self._waiting_since: dict[K, float] = {}  # in the order of arrival
        self._working: set[K] = set()
        self._timers: dict[K, tuple[float, asyncio.Handle]] = {}  # when it is due: an uvloop tells of no short timer
        self._failures: dict[K, int] = {}
        self.taken = 0
        """Keys handed out so far."""
        self.waited = 0.0
        """Seconds that the keys handed out so far waited, all together."""

    @property
    def depth(self) -> int:
        """How many keys wait to be worked on now; delayed ones do not count."""
        return len(self._waiting_since)

    @property
    def oldest(self) -> float:
        """Seconds the longest waiting key has waited; 0 where none waits."""
        since = next(iter(self._waiting_since.values()), None)
        return 0.0 if since is None else asyncio.get_running_loop().time() - since

    def add(self, key: K) -> None:
        """Work on `key` soon; if it is being worked on now, once more afterwards."""
        if key in self._waiting_since:
            return
        self._waiting_since[key] = asyncio.get_running_loop().time()
        if key not in self._working:
            self._ready.put_nowait(key)

    def add_after(self, key: K, seconds: float) -> None:
        """Add `key` in `seconds`. Of several delays for one key the earliest wins."""
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
        """Add `key` later, since the API server is overloaded or in trouble: after `retry_after` seconds at least.

        The delay doubles with every call, from a second to a minute, until `forget`. A good part of it is chance,
        so that all the keys that were refused at once do not come back at once. A shorter delay of that key, from
        another call, does not count any more.
        """
        failures = self._failures.get(key, 0) + 1
        self._failures[key] = failures
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer[1].cancel()
        self.add_after(key, spread(failures, retry_after or 0.0, first=_FIRST_THROTTLED, last=_LAST_DELAY))

    def forget(self, key: K) -> None:
        """Work on `key` succeeded: its next failure starts with the shortest delay again."""
        self._failures.pop(key, None)

    async def get(self) -> K:
        """The next key, once there is one. Call `done` when the work on it has ended, however it ended."""
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
