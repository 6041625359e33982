"""How long to wait before a request to the API server is tried again."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from altershield.kube.errors import ApiError, KubernetesError, ServerError, TooManyRequestsError, UnreachableError

T = TypeVar("T")

_FIRST = 0.25  # seconds
_LAST = 10.0  # short enough to be back soon after an outage, with the jitter long enough to be no storm
_DOUBLINGS = 30  # past this the delay has long reached its cap; keeps the power small


def delay(failures: int, error: KubernetesError) -> float:
    """Seconds to wait after `failures` failures in a row (from 1), the last being `error`.

    Doubles up to ten seconds, with jitter so that many clients do not come back at once. Never less than
    the server asked for with Retry-After.
    """
    asked = error.retry_after or 0.0 if isinstance(error, ApiError) else 0.0
    return spread(failures, asked, first=_FIRST, last=_LAST)


def spread(failures: int, at_least: float, *, first: float, last: float) -> float:
    """Seconds to wait after `failures` failures in a row (from 1), never less than `at_least`.

    Doubles from `first` to `last`, of which a half is chance. What the server asked for is spread by a quarter of
    it, too: all who were told the same would come back together.
    """
    wait = min(first * 2.0 ** min(failures - 1, _DOUBLINGS), last)
    return max(at_least, wait / 2) + random.uniform(0, max(at_least / 4, wait / 2))  # noqa: S311  (spreads load)


async def with_retries(request: Callable[[], Awaitable[T]], attempts: int = 5) -> T:
    """The answer to a request that may be repeated; while the API server is overloaded or out of reach, it is."""
    for failures in range(1, attempts):
        try:
            return await request()
        except (TooManyRequestsError, ServerError, UnreachableError) as error:
            await asyncio.sleep(delay(failures, error))
    return await request()
