"""The API server as AlterShield's processes reach it: it can go away, come back, and forget what it told before."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass

import aiohttp
from aiohttp import web

from altershield.kube import credentials
from altershield.processes import free_ports

_CUT_SECONDS = 0.01  # to aiohttp, 0 is for ever
_HOP_BY_HOP = {"host", "content-length", "transfer-encoding", "connection", "content-encoding"}


@dataclass(frozen=True)
class Followed:
    """What one informer follows. `client` is the first part of the address that its process was given."""

    client: str
    path: str
    """Of the resource, in all namespaces or in one."""
    selector: str


@dataclass(frozen=True)
class Asked:
    """A list or a watch that was begun."""

    at: float
    """The loop's time."""
    verb: str
    what: Followed


class ApiProxy:
    """Plain HTTP on loopback before the API server of a kubeconfig; who asks brings a token."""

    def __init__(self, kubeconfig: str) -> None:
        self.asked: list[Asked] = []
        self._kubeconfig = kubeconfig
        (self._port,) = free_ports(1)
        self._api = ""
        self.forgotten: set[Followed] = set()
        """What has to be listed anew."""
        self._session: aiohttp.ClientSession | None = None
        self._runner: web.ServerRunner | None = None

    def url(self, client: str) -> str:
        return f"http://127.0.0.1:{self._port}/{client}"

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        configuration = await credentials.load(self._kubeconfig, None)
        self._api = str(configuration.host).rstrip("/")
        # without the administrator's client certificate: the token counts
        context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=context, limit=0),
            timeout=aiohttp.ClientTimeout(total=None),
            auto_decompress=False,
        ) as self._session:
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
        """Every connection breaks, and new ones are refused."""
        if self._runner is not None:
            await self._runner.cleanup()

    def forget(self) -> None:
        """Watches cannot go on where they were (410), as after etcd's compaction: each has to list anew."""
        self.forgotten = {asked.what for asked in self.asked if asked.verb == "watch"}

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        _, client, path = request.raw_path.split("/", 2)
        followed = Followed(client, path.partition("?")[0], request.query.get("labelSelector", ""))
        verb = "watch" if "watch" in request.query else "list" if "limit" in request.query else ""
        if verb:
            self.asked.append(Asked(asyncio.get_running_loop().time(), verb, followed))
        if verb == "list":
            self.forgotten.discard(followed)
        if verb == "watch" and followed in self.forgotten:
            gone = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired", "code": 410}
            return web.json_response(gone, status=410)
        return await self._pass_on(request, f"{self._api}/{path}")

    async def _pass_on(self, request: web.BaseRequest, url: str) -> web.StreamResponse:
        if self._session is None:
            raise web.HTTPServiceUnavailable
        headers = {key: value for key, value in request.headers.items() if key.lower() not in _HOP_BY_HOP}
        body = await request.read() or None
        async with self._session.request(request.method, url, headers=headers, data=body) as answer:
            kept = {key: value for key, value in answer.headers.items() if key.lower() not in _HOP_BY_HOP}
            response = web.StreamResponse(status=answer.status, headers=kept)
            await response.prepare(request)
            async for chunk in answer.content.iter_any():
                await response.write(chunk)
            await response.write_eof()
            return response
