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

A queue has two lanes, so that a live change does not wait behind thousands of objects that have not changed. Keys of
these objects go to the lane `backlog`: see `as_backlog` and `to_backlog`. All other keys go to the lane `live`. Each
lane is handed out in the order of arrival. While both lanes have keys, one key of the backlog follows `LIVE_IN_A_ROW`
live keys. So a key waits for the keys before it in its lane, and for a bounded number of keys of the other lane.
"""

import asyncio
import contextlib
import itertools
from collections import OrderedDict
from collections.abc import Hashable, Iterator
from contextvars import ContextVar
from typing import Generic, TypeVar

from kube_base.access.backoff import jittered

K = TypeVar("K", bound=Hashable)

LIVE_IN_A_ROW = 4
"""Live keys between two keys of the backlog. A stream of live changes leaves one turn in five to the backlog."""

_FIRST_DELAY = 0.005  # seconds, as controller-runtime's default rate limiter
_LAST_DELAY = 60.0
_FIRST_THROTTLED = 1.0  # seconds; the first delay while the API server is overloaded
_DOUBLINGS = 30  # the delay reaches its maximum earlier; this bounds the power of two

_UNCHANGED: ContextVar[bool] = ContextVar("_UNCHANGED", default=False)


@contextlib.contextmanager
def as_backlog() -> Iterator[None]:
    """Keys that are added inside of this block go to the backlog, because their objects have not changed."""
    token = _UNCHANGED.set(True)
    try:
        yield
    finally:
        _UNCHANGED.reset(token)


class WorkQueue(Generic[K]):
    """A queue in which each key waits at most once, however often it is added. No key is handed out while a worker
    works on it.

    A queue belongs to one event loop and uses its clock. The number of different keys bounds its size.
    """

    def __init__(self) -> None:
        self._ready: asyncio.Queue[None] = asyncio.Queue()  # one token for each key in the lanes
        self._live: OrderedDict[K, int] = OrderedDict()  # with the number of the last change
        self._changes = itertools.count()
        self._backlog: OrderedDict[K, None] = OrderedDict()
        self._live_in_a_row = 0
        self._waiting_since: dict[K, float] = {}  # in the order of arrival
        self._working: dict[K, bool] = {}  # whether the key was taken as a live one
        self._again: dict[K, bool] = {}  # keys that were added while a worker works on them, and whether as live ones
        # with the due time, because the timers of uvloop do not have it, and whether the key is added as a live one
        self._timers: dict[K, tuple[float, asyncio.Handle, bool]] = {}
        self._failures: dict[K, int] = {}
        self._throttled: dict[K, int] = {}
        self.taken = 0
        """The number of keys that workers have taken so far."""
        self.waited = 0.0
        """The sum of the seconds for which these keys have waited."""

    @property
    def depth(self) -> int:
        """The number of keys that wait for a worker, or for the end of their own reconcile. Delayed keys do not
        count."""
        return len(self._waiting_since)

    @property
    def oldest(self) -> float:
        """Seconds that the oldest waiting key has waited; 0 if no key waits."""
        since = next(iter(self._waiting_since.values()), None)
        return 0.0 if since is None else asyncio.get_running_loop().time() - since

    def add(self, key: K) -> None:
        """Add `key`. If a worker works on the key now, a worker gets it once more afterwards.

        A key that waits in the backlog and is added as a live one waits in both lanes.
        """
        self._add(key, live=not _UNCHANGED.get())

    def to_backlog(self) -> None:
        """Move all keys that wait now to the backlog. Call it before the workers begin: the keys have waited for a
        leader.

        The key that was last added as a live one comes first: probably no leader has seen this change. A process that
        has followed for weeks has most keys as live ones, so their order of arrival says nothing.
        """
        changed = sorted(self._live, key=self._live.__getitem__, reverse=True)
        others = (key for key in self._waiting_since if key not in self._working)
        self._live.clear()
        self._backlog = OrderedDict.fromkeys(itertools.chain(changed, others))
        self._again = dict.fromkeys(self._again, False)

    def add_after(self, key: K, seconds: float) -> None:
        """Add `key` in `seconds`. If a key has several delays, the earliest counts."""
        self._add_after(key, seconds, live=not _UNCHANGED.get())

    def add_rate_limited(self, key: K) -> None:
        """Add `key` after a delay that doubles with every call, from 5 ms to a minute, until `forget`. The key goes to
        the lane from which it was taken."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        delay = min(_FIRST_DELAY * 2 ** min(failures, _DOUBLINGS), _LAST_DELAY)
        self._add_after(key, delay, live=self._working.get(key, True))

    def add_throttled(self, key: K, retry_after: float | None) -> None:
        """Add `key` after at least `retry_after` seconds, because the API server is overloaded or fails.

        The delay doubles with every call, from a second to a minute, until `forget`. Calls of `add_rate_limited` do not
        count: a few conflicts, which are retried within milliseconds, are no sign of an overload. Half of the delay is
        random, so that keys that failed at the same moment are not retried at the same moment. The delay replaces an
        earlier, shorter delay of the key. The key goes to the lane from which it was taken.
        """
        failures = self._throttled.get(key, 0) + 1
        self._throttled[key] = failures
        live = self._working.get(key, True)
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer[1].cancel()
            live = live or timer[2]
        delay = jittered(failures, retry_after or 0.0, first=_FIRST_THROTTLED, last=_LAST_DELAY)
        self._add_after(key, delay, live=live)

    def add_slowly(self, key: K) -> None:
        """Add `key` to the backlog after a minute, because only a change of an object can end the failure. Up to a
        quarter more is added at random, so that many such keys are not retried at the same moment."""
        self._add_after(key, jittered(1, _LAST_DELAY, first=_FIRST_DELAY, last=_LAST_DELAY), live=False)

    def forget(self, key: K) -> None:
        """Reset the backoff of `key` after success: its next failure starts with the shortest delay."""
        self._failures.pop(key, None)
        self._throttled.pop(key, None)

    async def get(self) -> K:
        """Wait for the next key. Call `done` when the work on it ends, with or without success."""
        await self._ready.get()
        key, live = self._next()
        self.taken += 1
        self.waited += asyncio.get_running_loop().time() - self._waiting_since.pop(key)
        self._working[key] = live
        return key

    def done(self, key: K) -> None:
        self._working.pop(key, None)
        live = self._again.pop(key, None)
        if live is not None:
            self._make_ready(key, live=live)

    def _add(self, key: K, *, live: bool) -> None:
        if key in self._live:
            if live:
                self._live[key] = next(self._changes)
            return
        known = key in self._waiting_since
        if not known:
            self._waiting_since[key] = asyncio.get_running_loop().time()
        if key in self._working:
            self._again[key] = live or self._again.get(key, False)
        elif not known:
            self._make_ready(key, live=live)
        elif live:
            self._live[key] = next(self._changes)

    def _make_ready(self, key: K, *, live: bool) -> None:
        if live:
            self._live[key] = next(self._changes)
        else:
            self._backlog[key] = None
        self._ready.put_nowait(None)

    def _next(self) -> tuple[K, bool]:
        """Remove and return the next ready key, and whether it is a live one."""
        if self._backlog and (not self._live or self._live_in_a_row >= LIVE_IN_A_ROW):
            self._live_in_a_row = 0
            key, _ = self._backlog.popitem(last=False)
            live = key in self._live
            self._live.pop(key, None)
            return key, live
        self._live_in_a_row += 1
        key, _ = self._live.popitem(last=False)
        self._backlog.pop(key, None)
        return key, True

    def _add_after(self, key: K, seconds: float, *, live: bool) -> None:
        if seconds <= 0:
            self._add(key, live=live)
            return
        loop = asyncio.get_running_loop()
        due = loop.time() + seconds
        timer = self._timers.get(key)
        if timer is not None:
            live = live or timer[2]
            if timer[0] <= due:
                self._timers[key] = timer[0], timer[1], live
                return
            timer[1].cancel()
        self._timers[key] = due, loop.call_at(due, self._due, key), live

    def _due(self, key: K) -> None:
        _, _, live = self._timers.pop(key)
        self._add(key, live=live)
