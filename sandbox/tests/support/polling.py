"""Wait until a condition holds: `eventually` in real time, `until` on an event loop, whose time may be simulated."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

HANG = 300.0
"""Seconds until a wait in real time has failed, more than ten times the longest one on a busy machine. It ends what
hangs, and measures nothing: how long something takes is a question for simulated time or CPU time."""


def eventually(met: Callable[[], T], waiting_for: str) -> T:
    """The first true result of `met`; AssertionError after `HANG`. The pauses between two calls become longer: most
    calls send requests, which take CPU time from the processes that the test waits for."""
    deadline = time.monotonic() + HANG
    pause = 0.05
    while True:
        result = met()
        if result:
            return result
        assert time.monotonic() < deadline, _failure(waiting_for, result)
        time.sleep(pause)
        pause = min(1.3 * pause, 0.4)


async def until(met: Callable[[], T | Awaitable[T]], waiting_for: str = "the condition") -> T:
    """The first true result of `met`; AssertionError after `HANG`."""
    result: T | None = None
    try:
        async with asyncio.timeout(HANG):
            while True:
                found = met()
                result = await found if inspect.isawaitable(found) else found
                if result:
                    return result
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise AssertionError(_failure(waiting_for, result)) from None


def _failure(waiting_for: str, result: object) -> str:
    return f"waited {HANG:.0f} s for {waiting_for}; last seen: {result!r}"
