"""Waits until the cluster is in the state that the check expects."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from kube_base.errors import ReportedError

T = TypeVar("T")

_WAIT = 120.0  # seconds for each step; the node may have to pull the image
_POLL = 0.2


class CheckFailedError(ReportedError):
    """AlterShield does not work as expected."""


async def until(met: Callable[[], Awaitable[T]], waiting_for: str, seconds: float = _WAIT) -> T:
    """Call `met` until its result is true. Returns the result. CheckFailedError: the time is over."""
    try:
        async with asyncio.timeout(seconds):
            while True:
                if seen := await met():
                    return seen
                await asyncio.sleep(_POLL)
    except TimeoutError:
        raise CheckFailedError(f"waited {seconds:.0f} s for {waiting_for}") from None
