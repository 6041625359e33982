"""Wait until a condition holds: `eventually` in real time, `until` on an event loop, whose time may be simulated."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

_SECONDS = 60.0


def eventually(met: Callable[[], T], waiting_for: str, seconds: float = _SECONDS) -> T:
    """The first true result of `met`; AssertionError after `seconds`. The pauses between two calls become longer: most
    calls send requests, which take CPU time from the processes that the test waits for."""
    deadline = time.monotonic() + seconds
    pause = 0.05
    while True:
        result = met()
        if result:
            return result
        assert time.monotonic() < deadline, _failure(waiting_for, seconds, result)
        time.sleep(pause)
        pause = min(1.3 * pause, 0.4)


async def until(
    met: Callable[[], T | Awaitable[T]], waiting_for: str = "the condition", seconds: float = _SECONDS
) -> T:
    """The first true result of `met`; AssertionError after `seconds`."""
    result: T | None = None
    try:
        async with asyncio.timeout(seconds):
            while True:
                found = met()
                result = await found if inspect.isawaitable(found) else found
                if result:
                    return result
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise AssertionError(_failure(waiting_for, seconds, result)) from None


def _failure(waiting_for: str, seconds: float, result: object) -> str:
    return f"waited {seconds:.0f} s for {waiting_for}; last seen: {result!r}"
