"""Waiting for a condition by polling."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Collection

_POLL_SECONDS = 0.1


_HUNG_SECONDS = 90.0  # after which a client closes a watch without data
_REOPEN_SECONDS = 10.0  # the longest delay before the client opens the watch again


async def until_watched(missing: Callable[[], Collection[object]]) -> None:
    """Return when no resource is missing, because all watches are open again. TimeoutError: its message lists the
    missing resources."""
    try:
        await until(lambda: not missing(), "all watches to be opened again", _HUNG_SECONDS + _REOPEN_SECONDS + 5)
    except TimeoutError as error:
        raise TimeoutError(f"{error}; missing: {sorted(map(str, missing()))}") from None


async def until(met: Callable[[], bool | Awaitable[bool]], what: str, seconds: float = 60.0) -> None:
    """Return when `met` is true. After `seconds`, TimeoutError with `what` in its message."""
    try:
        async with asyncio.timeout(seconds):
            while not (await result if inspect.isawaitable(result := met()) else result):  # noqa: ASYNC110
                await asyncio.sleep(_POLL_SECONDS)
    except TimeoutError:
        raise TimeoutError(f"waited {seconds:.0f} s for {what}") from None
