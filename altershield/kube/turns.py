"""Long work on the event loop, in turns: everybody else waits for one turn, not for the whole work.

All that works in turns on one loop shares one allowance per round of the loop, so ten caches that fill at once
hold it no longer than one does. Who has used the allowance up waits in a line.
"""

import asyncio
import collections
import time
import weakref

_TURN = 0.01  # seconds

_shared: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Turns]" = weakref.WeakKeyDictionary()


class Turns:
    """The turns of one event loop; `turns()` gives those of the running one."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        # weak: the loop is the key under which this is found, and must not live for its sake
        self._loop = weakref.ref(loop)
        self._ends: float | None = None  # when this round's turn is over; None where nobody had one
        self._line: collections.deque[asyncio.Future[None]] = collections.deque()

    async def give_way(self) -> None:
        """Let others have the loop if this round's turn is over. Call it after each small step."""
        now = time.perf_counter()
        if self._ends is None:
            self._ends = now + _TURN
            self._call_soon()
        elif now >= self._ends:
            waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._line.append(waiting)
            await waiting

    def _next_round(self) -> None:
        self._ends = None
        while self._line:
            waiting = self._line.popleft()
            if not waiting.done():
                waiting.set_result(None)
                break
        if self._line:
            self._ends = time.perf_counter() + _TURN
            self._call_soon()

    def _call_soon(self) -> None:
        loop = self._loop()
        if loop is not None:
            loop.call_soon(self._next_round)


def turns() -> Turns:
    """The turns of the running event loop."""
    loop = asyncio.get_running_loop()
    found = _shared.get(loop)
    if found is None:
        found = _shared[loop] = Turns(loop)
    return found
