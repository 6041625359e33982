"""Waiting for a condition by polling."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable

_POLL_SECONDS = 0.1


async def until(met: Callable[[], bool | Awaitable[bool]], what: str, seconds: float = 60.0) -> None:
    """Return when `met` is true. TimeoutError with `what` in its message after `seconds`."""
    try:
        async with asyncio.timeout(seconds):
            while not (await result if inspect.isawaitable(result := met()) else result):  # noqa: ASYNC110
                await asyncio.sleep(_POLL_SECONDS)
    except TimeoutError:
        raise TimeoutError(f"waited {seconds:.0f} s for {what}") from None
