"""Waiting for a condition in tests whose time is simulated."""

import asyncio
from collections.abc import Callable


async def eventually(condition: Callable[[], object], within: float = 60) -> None:
    """Return once `condition` holds; TimeoutError where it does not `within` so many seconds."""
    async with asyncio.timeout(within):
        while not condition():  # noqa: ASYNC110  (the time is simulated)
            await asyncio.sleep(0.01)
