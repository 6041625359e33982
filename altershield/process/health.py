"""The plain HTTP port: /metrics for Prometheus, /healthz and /readyz for the kubelet."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable

import aiohttp
from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from altershield.errors import UsageError

_PROBE_SECONDS = 0.1


@contextlib.asynccontextmanager
async def serving(port: int, registry: CollectorRegistry, ready: Callable[[], str]) -> AsyncIterator[None]:
    """Serve on all addresses inside the `with` block. `ready` returns why the process is not ready; empty: it is ready.

    UsageError: the port cannot be used.
    """

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(body=generate_latest(registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def healthz(_: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def readyz(_: web.Request) -> web.Response:
        missing = ready()
        return web.Response(text=missing or "ok", status=503 if missing else 200)

    app = web.Application()
    app.router.add_get("/metrics", metrics)
    app.router.add_get("/healthz", healthz)
    app.router.add_get("/readyz", readyz)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, port=port).start()
        except OSError as error:
            raise UsageError(
                f"cannot listen on port {port}: {error}; choose another one with --metrics-port"
            ) from error
        yield
    finally:
        await runner.cleanup()


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
