"""How long to wait before a request to the API server is tried again."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from altershield.kube.errors import ApiError, KubernetesError, ServerError, TooManyRequestsError, UnreachableError

T = TypeVar("T")

_FIRST = 0.25  # seconds
_LAST = 10.0  # short enough to be back soon after an outage, with the jitter long enough to be no storm
_DOUBLINGS = 10


def delay(failures: int, error: KubernetesError) -> float:
    """Seconds to wait after `failures` failures in a row (from 1), the last being `error`.

    Doubles up to ten seconds, with jitter so that many clients do not come back at once. Never less than
    the server asked for with Retry-After.
    """
    wait = min(_FIRST * 2.0 ** min(failures - 1, _DOUBLINGS), _LAST)
    asked = error.retry_after or 0.0 if isinstance(error, ApiError) else 0.0
    return max(asked, wait / 2) + random.uniform(0, wait / 2)  # noqa: S311  (spreads load, guards nothing)


async def patiently(request: Callable[[], Awaitable[T]], attempts: int = 5) -> T:
    """The answer to a request that may be repeated; while the API server is overloaded or out of reach, it is."""
    for failures in range(1, attempts):
        try:
            return await request()
        except (TooManyRequestsError, ServerError, UnreachableError) as error:
            await asyncio.sleep(delay(failures, error))
    return await request()
