"""The bodies of requests: bounds on their size, their time, and the number of large ones in memory.

Callbacks are usually smaller than `SMALL`. Only larger bodies wait for a place, so callers who send large bodies do not
delay small callbacks.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from aiohttp import web

from altershield.process.listener import ask_for_body
from reconciler.endpoints.endpoint_errors import EndpointError
from reconciler.endpoints.outcome import CallbackOutcome

SMALL = 64 * 1024
"""Bytes of a body that is read without a place."""
PLACES = 8
"""Bodies larger than `SMALL` that are in memory at the same time."""
MAX_REQUEST = 16 * 1024
"""Bytes of a body that is no callback."""

_BODY_SECONDS = 5.0  # for a body to arrive; an AlterShield server waits six seconds for the answer


class Intake:
    """The bodies of all requests of one port."""

    def __init__(self) -> None:
        self._places = asyncio.Semaphore(PLACES)

    @contextlib.asynccontextmanager
    async def body(self, request: web.BaseRequest, limit: int) -> AsyncIterator[bytes]:
        """The body of a request, at most `limit` bytes. EndpointError (4xx) if it is too large, too slow or broken, or
        if there is no place for it in time."""
        if (request.content_length or 0) > limit:
            raise _too_large(limit)
        await ask_for_body(request)
        async with contextlib.AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(_BODY_SECONDS):
                    data = await self._read(request, limit, stack)
            except TimeoutError:
                raise EndpointError("the body did not arrive in time", 408) from None
            except (web.RequestPayloadError, ValueError):
                raise EndpointError("the body is broken", 400) from None
            yield data

    async def _read(self, request: web.BaseRequest, limit: int, stack: contextlib.AsyncExitStack) -> bytes:
        chunks: list[bytes] = []
        size = 0
        has_place = False
        while not request.content.at_eof():
            chunks.append(await request.content.readany())
            size += len(chunks[-1])
            if size > limit:
                raise _too_large(limit)
            if size > SMALL and not has_place:
                await stack.enter_async_context(self._places)
                has_place = True
        return b"".join(chunks)


def _too_large(limit: int) -> EndpointError:
    return EndpointError(f"the body is larger than {limit // 1024} KiB", 413, CallbackOutcome.TOO_LARGE)
