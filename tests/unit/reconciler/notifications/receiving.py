"""A receiver of notifications, and the events that tests tell it of."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import msgspec
from aiohttp import web

from reconciler.notifications.occurrences import Occurrence
from reconciler.receivers.file import Receiver
from reconciler.receivers.vocabulary import Event

NOW = 1_700_000_000


class Inbox:
    """An HTTP server that keeps the requests. `statuses` are its next answers; then it answers 200."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, dict[str, str], Any]] = []
        self.statuses: list[int] = []
        self.headers: dict[str, str] = {}
        self.port = 0
        self.hang = False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def texts(self) -> list[str]:
        return [body["text"] for _, _, body in self.requests]

    async def _answer(self, request: web.Request) -> web.Response:
        body = msgspec.json.decode(await request.read())
        self.requests.append((request.path, dict(request.headers), body))
        if self.hang:
            await asyncio.sleep(3600)
        return web.Response(status=self.statuses.pop(0) if self.statuses else 200, headers=self.headers)

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator["Inbox"]:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._answer)
        runner = web.AppRunner(app, shutdown_timeout=0, handler_cancellation=True, access_log=None)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", self.port).start()
            self.port = runner.addresses[0][1]
            yield self
        finally:
            await runner.cleanup()


def receiver(type_: str = "slack", name: str = "team", url: str = "https://example.com/x", **more: Any) -> Receiver:
    key = {"routing_key": "0" * 32} if type_ == "pagerduty" else {}
    return Receiver(name, type_, url, **{**key, **more})


def happened(event: Event = Event.SUSPENDED, since: int = NOW, **more: Any) -> Occurrence:
    values = {
        "namespace": "shop",
        "kind": "Deployment",
        "workload": "web",
        "version": "1" * 32,
        "release": f"web--x--{'1' * 32}",
        "uid": "u-1",
        "reason": "FailedByCheck",
        "message": "failed: web-1 (errors: 0.2 is above max 0.05)",
    }
    return Occurrence(event, since, **{**values, **more})
