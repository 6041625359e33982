"""Waiting for conditions, by polling: mostly, other processes decide."""

import asyncio
import contextlib
import inspect
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Any

_POLL_SECONDS = 0.1
_LAST_SECONDS = 300.0  # for the last verdicts after the end of a wave


async def until(met: Callable[[], bool | Awaitable[bool]], what: str, seconds: float = 60.0) -> None:
    """Return when `met` is true. After `seconds`, TimeoutError with `what` in its message."""
    try:
        async with asyncio.timeout(seconds):
            while not (await result if inspect.isawaitable(result := met()) else result):  # noqa: ASYNC110
                await asyncio.sleep(_POLL_SECONDS)
    except TimeoutError:
        raise TimeoutError(f"waited {seconds:.0f} s for {what}") from None


async def until_judged(judged: Callable[[], bool]) -> None:
    """Wait for the last verdicts, for five minutes at most: a verdict that is missing then is in the figures."""
    with contextlib.suppress(TimeoutError):
        await until(judged, "the last verdicts", _LAST_SECONDS)


async def paced(rate: float, numbers: Iterable[int]) -> AsyncIterator[int]:
    """These numbers, `rate` in a second. A slow consumer does not change when the next ones are due."""
    began = time.monotonic()
    for turn, number in enumerate(numbers):
        await asyncio.sleep(max(0.0, began + turn / rate - time.monotonic()))
        yield number


async def unless_failed(work: Any, tasks: Iterable[asyncio.Task[None]]) -> None:
    """Wait for the work. If one of the tasks fails, cancel the work and raise the error."""
    doing = asyncio.ensure_future(work)
    await asyncio.wait([doing, *tasks], return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        if task.done():
            doing.cancel()
            task.result()
    await doing
