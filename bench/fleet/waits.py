"""Waits of the measurements."""

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from typing import Any

LAST_SECONDS = 300.0
"""For the last verdicts after the end of a wave."""


async def unless_failed(work: Any, tasks: Iterable[asyncio.Task[None]]) -> None:
    """Wait for the work. If one of the tasks fails, cancel the work and raise the error."""
    doing = asyncio.ensure_future(work)
    await asyncio.wait([doing, *tasks], return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        if task.done():
            doing.cancel()
            task.result()
    await doing


async def until(met: Callable[[], bool]) -> None:
    """Wait until the condition holds, for `LAST_SECONDS` at most."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(LAST_SECONDS):
            while not met():  # noqa: ASYNC110  (other processes decide)
                await asyncio.sleep(0.2)
