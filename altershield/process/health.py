"""The health port, plain HTTP: /metrics for Prometheus, /healthz and /readyz for the kubelet."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable

import aiohttp
from aiohttp import hdrs, web
from prometheus_client import CollectorRegistry, generate_latest

from altershield.process.listener import Listener
from kube_base.errors import UsageError

_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_CONNECTIONS = 64  # open at a time; one more closes the one that was idle longest
_PROBE_SECONDS = 0.1


class Health:
    """Answers probes and scrapes. `not_ready` returns why the process is not ready; an empty text means that it is.
    `before_scrape` runs before the metrics are collected."""

    def __init__(
        self,
        registry: CollectorRegistry,
        not_ready: Callable[[], str],
        before_scrape: Callable[[], None] = lambda: None,
    ) -> None:
        self._registry = registry
        self._not_ready = not_ready
        self._before_scrape = before_scrape

    async def answer(self, request: web.BaseRequest) -> web.Response:
        """/metrics, /healthz or /readyz."""
        if request.path == "/metrics" and request.method in ("GET", "HEAD"):
            self._before_scrape()
            return web.Response(body=generate_latest(self._registry), headers={hdrs.CONTENT_TYPE: _CONTENT_TYPE})
        return self.probe(request)

    def probe(self, request: web.BaseRequest) -> web.Response:
        """/healthz or /readyz."""
        if request.path not in ("/healthz", "/readyz"):
            return web.Response(status=404, text="this path does not exist\n")
        if request.method not in ("GET", "HEAD"):
            return web.Response(status=405, text="this path accepts only GET\n", headers={"Allow": "GET, HEAD"})
        problem = self._not_ready() if request.path == "/readyz" else ""
        return web.Response(status=503 if problem else 200, text=f"{problem or 'ok'}\n")


@contextlib.asynccontextmanager
async def serving(health: Health, port: int, host: str = "") -> AsyncIterator[int]:
    """Serve while the block runs; yields the port. With an empty `host` it listens on all addresses. UsageError if the
    port is not available."""
    listener = Listener(health.answer, host, port, connections=_CONNECTIONS)
    try:
        await listener.start()
    except OSError as error:
        raise UsageError(f"cannot listen on port {port}: {error}; choose another one with --metrics-port") from error
    try:
        yield listener.port
    finally:
        await listener.stop()


async def is_ready(session: aiohttp.ClientSession, port: int) -> bool:
    """Whether /readyz of a process on loopback answers with status 200. A process that does not answer is not ready."""
    with contextlib.suppress(aiohttp.ClientError, TimeoutError):
        async with session.get(f"http://127.0.0.1:{port}/readyz") as answer:
            return answer.status == 200
    return False


async def until_ready(ports: Iterable[int]) -> None:
    """Wait until all these processes on loopback are ready. There is no timeout."""
    async with aiohttp.ClientSession() as session:
        for port in ports:
            while not await is_ready(session, port):  # noqa: ASYNC110  (no event tells the state of another process)
                await asyncio.sleep(_PROBE_SECONDS)
