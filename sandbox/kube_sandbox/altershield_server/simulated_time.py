"""Simulated time for a server: `AlterShieldServer(clock=time.clock, sleep=time.sleep)`."""

import asyncio
import heapq
import itertools

_TURNS = 50


class SimulatedTime:
    """Time that passes only by `advance`."""

    def __init__(self) -> None:
        self._now = 1_700_000_000.0  # Unix seconds
        self._order = itertools.count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []

    def clock(self) -> float:
        return self._now

    @property
    def sleepers(self) -> int:
        """The number of calls of `sleep` that have not ended."""
        return sum(not woken.done() for _, _, woken in self._sleepers)

    async def sleep(self, seconds: float) -> None:
        """Wait until `advance` has passed the moment. 0 s end after one turn of the event loop."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        woken = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._now + seconds, next(self._order), woken))
        await woken

    async def advance(self, seconds: float) -> None:
        """Let this time pass. Sleepers wake in their order; each continues before the next one wakes."""
        end = self._now + seconds
        await self._turns()
        while self._sleepers and self._sleepers[0][0] <= end:
            self._now, _, woken = heapq.heappop(self._sleepers)
            if not woken.done():
                woken.set_result(None)
                await self._turns()
        self._now = end

    async def _turns(self) -> None:
        for _ in range(_TURNS):
            await asyncio.sleep(0)
