"""Kills a reconciler after one of its writes."""

import asyncio
from collections.abc import Awaitable, Callable

from aiohttp import web

from tests.fault.reconciler_cluster import is_write


def is_event(request: web.Request) -> bool:
    """Whether the request writes an Event."""
    return request.method not in ("GET", "HEAD") and "events" in request.path.split("/")


class Killer:
    """A fault that simulates a kill: the write number `fatal` takes place, but gets no response, and later writes are
    refused. `counts` says which writes have a number."""

    def __init__(self, fatal: int, counts: Callable[[web.Request], bool] = is_write) -> None:
        self.fatal = fatal
        self._counts = counts
        self.writes = 0
        self.struck = asyncio.Event()

    async def __call__(
        self, request: web.Request, go_on: Callable[[], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        if (is_write(request) or is_event(request)) and self.struck.is_set():
            raise web.HTTPServiceUnavailable
        answer = await go_on()
        if self._counts(request):
            self.writes += 1
            if self.writes == self.fatal:
                self.struck.set()
                await asyncio.Event().wait()
        return answer
