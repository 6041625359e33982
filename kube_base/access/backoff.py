"""Delays between retries of requests to the API server."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from kube_base.access.errors import (
    ApiError,
    ConflictError,
    KubernetesError,
    NotFoundError,
    ServerError,
    TooManyRequestsError,
    UnreachableError,
)

T = TypeVar("T")

_FIRST = 0.25  # seconds
_LAST = 10.0  # short enough to recover soon after an outage; with the jitter, long enough to avoid a storm of requests
_DOUBLINGS = 30  # the delay reaches its maximum earlier; this bounds the power of two


def delay(failures: int, error: KubernetesError) -> float:
    """Seconds to wait after `failures` failures in a row (from 1), the last being `error`.

    The delay doubles up to ten seconds. Jitter keeps many clients from retrying at the same moment. The delay is never
    less than the server's Retry-After.
    """
    retry_after = error.retry_after or 0.0 if isinstance(error, ApiError) else 0.0
    return jittered(failures, retry_after, first=_FIRST, last=_LAST)


def jittered(failures: int, at_least: float, *, first: float, last: float) -> float:
    """Seconds to wait after `failures` failures in a row (from 1), never less than `at_least`.

    The delay doubles from `first` to `last`; half of it is random. `at_least` is extended by up to a quarter at random:
    otherwise all clients with the same Retry-After would retry together.
    """
    wait = min(first * 2.0 ** min(failures - 1, _DOUBLINGS), last)
    return max(at_least, wait / 2) + random.uniform(0, max(at_least / 4, wait / 2))  # noqa: S311  (spreads load)


async def retry_while_unavailable(request: Callable[[], Awaitable[T]], attempts: int = 5) -> T:
    """Send a request that is safe to repeat, again while the API server is overloaded or unreachable, up to `attempts`
    times. Return its result, or raise the last error."""
    for failures in range(1, attempts):
        try:
            return await request()
        except (TooManyRequestsError, ServerError, UnreachableError) as error:
            await asyncio.sleep(delay(failures, error))
    return await request()


async def retry_conflicts(request: Callable[[], Awaitable[T]], attempts: int = 5) -> T:
    """Call `request`, which reads an object and then writes it, again if the object changed in between or a cache is
    behind, up to `attempts` times. Return its result, or raise the last error."""
    for failures in range(1, attempts):
        try:
            return await request()
        except (ConflictError, NotFoundError) as error:
            await asyncio.sleep(delay(failures, error))
    return await request()
