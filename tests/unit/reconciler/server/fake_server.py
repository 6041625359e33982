"""A server with answers that a test chooses, and a client for it."""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

import orjson
from aiohttp import web
from multidict import CIMultiDict

from reconciler.server.messages import BatchFinish, BatchStart, Location, Order, Workload
from reconciler.server.server_client import ServerClient
from reconciler.server.server_settings import Settings

NOW = 1_700_000_000.0  # Unix seconds

WORKLOAD = Workload(namespace="shop", kind="Deployment", name="web")
ORDER = Order(id="shop/web/1", title="web in shop", creator="jane", workload=WORKLOAD)
START = BatchStart(
    order="shop/web/1", workload=WORKLOAD, number=1, total=2, last=False, pods=[Location(namespace="shop", pod="web-1")]
)
FINISH = BatchFinish(order="shop/web/1", node="n1", workload=WORKLOAD, success=True, message="", finish_time=NOW)

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Received(NamedTuple):
    method: str
    path_qs: str
    headers: CIMultiDict[str]
    body: bytes

    @property
    def fields(self) -> Any:
        return orjson.loads(self.body)


class FakeServer:
    """It answers each request with the next of `answers`; the last one is repeated."""

    def __init__(self) -> None:
        self.requests: list[Received] = []
        self.answers: list[Answer] = [success()]
        self.url = ""
        self.stop: Callable[[], Awaitable[None]]

    async def handle(self, request: web.Request) -> web.StreamResponse:
        received = Received(request.method, request.path_qs, CIMultiDict(request.headers), await request.read())
        self.requests.append(received)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return await answer(request)


def raw(body: bytes = b"", status: int = 200, **headers: str) -> Answer:
    async def answer(_request: web.Request) -> web.StreamResponse:
        return web.Response(body=body, status=status, headers=headers)

    return answer


def success(domain: object = None, code: str | None = "000") -> Answer:
    return raw(orjson.dumps({"success": True, "resultCode": code, "msg": None, "domain": domain}))


def failure(code: str | None, msg: str | None = "no") -> Answer:
    return raw(orjson.dumps({"success": False, "resultCode": code, "msg": msg, "domain": None}))


@contextlib.asynccontextmanager
async def calling(token_file: Path | None = None) -> AsyncIterator[tuple[FakeServer, ServerClient]]:
    """A server and its client, whose wall clock stands still."""
    fake = FakeServer()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", fake.handle)
    runner = web.AppRunner(app, shutdown_timeout=0, handler_cancellation=True, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        fake.url = "http://{}:{}".format(*runner.addresses[0])
        fake.stop = runner.cleanup
        settings = Settings(url=fake.url, token_file=token_file)
        async with ServerClient(settings, now=lambda: NOW) as client:
            yield fake, client
    finally:
        await runner.cleanup()
