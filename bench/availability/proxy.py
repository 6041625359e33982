"""A proxy between AlterShield's processes and the API server. It can stop, start again, and let versions expire."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass

from aiohttp import web

from altershield.process.children import free_ports
from bench.availability.upstream import Upstream, passed_back

_CUT_SECONDS = 0.01  # aiohttp takes 0 for no limit


@dataclass(frozen=True)
class Followed:
    """A resource that an informer watches. `client` is the first part of the URL path that its process uses."""

    client: str
    path: str
    """The path of the resource, in all namespaces or in one."""
    selector: str


@dataclass(frozen=True)
class Asked:
    """A list or watch request."""

    at: float
    """Loop time."""
    verb: str
    what: Followed


class ApiProxy:
    """Plain HTTP on loopback in front of the API server of a kubeconfig. Callers send their own tokens."""

    def __init__(self, kubeconfig: str) -> None:
        self.asked: list[Asked] = []
        self._kubeconfig = kubeconfig
        (self._port,) = free_ports(1)
        self.forgotten: set[Followed] = set()
        """Resources that must be listed before they can be watched again."""
        self._upstream: Upstream | None = None
        self._runner: web.ServerRunner | None = None

    def url(self, client: str) -> str:
        return f"http://127.0.0.1:{self._port}/{client}"

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with Upstream.connected(self._kubeconfig) as self._upstream:
            await self.come()
            try:
                yield
            finally:
                await self.go()

    async def come(self) -> None:
        server = web.Server(self._handle, access_log=None, handler_cancellation=True)
        self._runner = web.ServerRunner(server, shutdown_timeout=_CUT_SECONDS)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self._port).start()

    async def go(self) -> None:
        """Close all connections, and refuse new ones."""
        if self._runner is not None:
            await self._runner.cleanup()

    def forget(self) -> None:
        """Refuse to resume watches (410), as after a compaction of etcd: each resource must be listed again."""
        self.forgotten = {asked.what for asked in self.asked if asked.verb == "watch"}

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        _, client, path = request.raw_path.split("/", 2)
        query = request.query
        selector = ",".join(filter(None, (query.get("labelSelector"), query.get("fieldSelector"))))
        followed = Followed(client, path.partition("?")[0], selector)
        streamed = "sendInitialEvents" in query  # a watch that starts with a streamed list
        verbs = [verb for verb, asked in (("list", streamed or "limit" in query), ("watch", "watch" in query)) if asked]
        self.asked += [Asked(asyncio.get_running_loop().time(), verb, followed) for verb in verbs]
        if "list" in verbs:
            self.forgotten.discard(followed)
        if "watch" in verbs and followed in self.forgotten:
            gone = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired", "code": 410}
            return web.json_response(gone, status=410)
        if self._upstream is None:
            raise web.HTTPServiceUnavailable
        async with self._upstream.asked(request, f"/{path}") as answer:
            return await passed_back(answer, request)
