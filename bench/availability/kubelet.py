"""A node's probes of a gatekeeper, with the values of the chart."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass

import aiohttp

from altershield.process import health

NOTICED_SECONDS = 1.0
"""Seconds from the end of a container, or the deletion of its pod, until new connections no longer go to it."""


@dataclass(frozen=True)
class Probe:
    """A probe in a container's spec. Times are in seconds."""

    period: float
    timeout: float
    failures: int
    """How many consecutive failures make the probe fail."""

    @property
    def longest(self) -> float:
        """The longest time until the probe fails, if the process hangs right after a success."""
        return self.failures * self.period + self.timeout


READINESS = Probe(period=3, timeout=3, failures=2)
LIVENESS = Probe(period=10, timeout=5, failures=6)
GRACE_SECONDS = 10.0
"""The liveness probe's terminationGracePeriodSeconds: the time between SIGTERM and SIGKILL."""


async def probed(probe: Probe, ask: Callable[[], Awaitable[bool]]) -> AsyncGenerator[bool, None]:
    """Yields the result after each probe: False after enough consecutive failures, True after one success."""
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
    """Whether a process on loopback is ready. Each call uses a new connection, as a kubelet does."""
    async with aiohttp.ClientSession() as session:
        return await health.is_ready(session, port)
