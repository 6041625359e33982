"""Time slices for long work on the event loop: other tasks wait for one slice, not for the whole work.

All long work on one event loop shares one slice per iteration of the loop. So ten caches that fill at the same time
block the loop no longer than one. Tasks that find the slice used up wait in a queue.
"""

import asyncio
import collections
import time
import weakref

_SLICE = 0.01  # seconds

_by_loop: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, TimeSlices]" = weakref.WeakKeyDictionary()


class TimeSlices:
    """The time slices of one event loop. `time_slices()` returns those of the running loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        # weak: the loop is the key of `_by_loop`, and a strong reference would keep it alive
        self._loop = weakref.ref(loop)
        self._end: float | None = None  # of the present slice; None if no slice has begun in this iteration
        self._waiting: collections.deque[asyncio.Future[None]] = collections.deque()

    async def yield_if_over(self) -> None:
        """Yield to other tasks if the present slice is used up. Call it after each small step."""
        now = time.perf_counter()
        if self._end is None:
            self._end = now + _SLICE
            self._call_soon()
        elif now >= self._end:
            waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(waiting)
            await waiting

    def _next_iteration(self) -> None:
        self._end = None
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_result(None)
                break
        if self._waiting:
            self._end = time.perf_counter() + _SLICE
            self._call_soon()

    def _call_soon(self) -> None:
        loop = self._loop()
        if loop is not None:
            loop.call_soon(self._next_iteration)


def time_slices() -> TimeSlices:
    """The time slices of the running event loop."""
    loop = asyncio.get_running_loop()
    found = _by_loop.get(loop)
    if found is None:
        found = _by_loop[loop] = TimeSlices(loop)
    return found
