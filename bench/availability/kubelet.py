"""What a node does for a gatekeeper, as the chart tells it to: it probes, and sees when a container has ended."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass

import aiohttp

from altershield.process import health

NOTICED_SECONDS = 1.0
"""From the end of a container, or the deletion of its pod, until nobody routes to it any more."""


@dataclass(frozen=True)
class Probe:
    """As in a container's spec, in seconds."""

    period: float
    timeout: float
    failures: int
    """In a row, until it has failed."""

    @property
    def longest(self) -> float:
        """Until it has failed where nothing is answered any more, from right after a success."""
        return self.failures * self.period + self.timeout


READINESS = Probe(period=3, timeout=3, failures=2)
LIVENESS = Probe(period=10, timeout=5, failures=6)
GRACE_SECONDS = 10.0
"""The liveness probe's terminationGracePeriodSeconds: what does not hear SIGTERM is killed after it."""


async def probed(probe: Probe, ask: Callable[[], Awaitable[bool]]) -> AsyncGenerator[bool, None]:
    """After each probe, what is held to be true: so many failures in a row make it false, one success makes it true."""
    loop = asyncio.get_running_loop()
    failed, good = 0, False
    while True:
        began, answer = loop.time(), False
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(probe.timeout):
                answer = await ask()
        failed = 0 if answer else failed + 1
        good = answer or (good and failed < probe.failures)
        yield good
        await asyncio.sleep(began + probe.period - loop.time())


async def is_ready(port: int) -> bool:
    """Whether a process on loopback says so, over a new connection as a kubelet asks."""
    async with aiohttp.ClientSession() as session:
        return await health.is_ready(session, port)
