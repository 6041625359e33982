"""A proxy between AlterShield's processes and the API server. It can stop, start again, let versions expire, and
replace the API servers."""

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from dataclasses import dataclass

from aiohttp import web

from bench.availability.upstream import Upstream, passed_back
from bench.harness.waiting import until
from kube_base.processes import free_ports

_CUT_SECONDS = 0.01  # aiohttp takes 0 for no limit
_WATCHED_SECONDS = 105.0  # after 90, a client closes a watch without data; it opens it again within 10
_DRAIN_SECONDS = 10.0  # for the requests that an API server answers when it is replaced


@dataclass(frozen=True)
class WatchedResource:
    """A resource that an informer watches. `client` is the first part of the URL path, which names the process."""

    client: str
    path: str
    """The path of the resource, in all namespaces or in one."""
    selector: str
    metadata_only: bool = False


@dataclass(frozen=True)
class ReadRequest:
    """A list or watch request."""

    at: float
    """Loop time."""
    verb: str
    resource: WatchedResource


@dataclass(frozen=True)
class _Server:
    """One listener. Each stands for an API server, and all have the same address and state."""

    runner: web.ServerRunner
    watches: set[asyncio.Timeout]


class ApiProxy:
    """Plain HTTP on loopback in front of the API server of a kubeconfig. Callers send their own tokens.

    `servers`: how many API servers seem to be behind the address. The kernel distributes the connections."""

    def __init__(self, kubeconfig: str, servers: int = 1) -> None:
        self.reads: list[ReadRequest] = []
        self._kubeconfig = kubeconfig
        (self._port,) = free_ports(1)
        self.forgotten: set[WatchedResource] = set()
        """Resources that must be listed before they can be watched again."""
        self.stored: Callable[[str, str], Awaitable[None]] = _do_nothing
        """Called with the client and the path of each PUT that the API server has stored, before its answer is passed
        back."""
        self._upstream: Upstream | None = None
        self._count = servers
        self._servers: list[_Server] = []

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
        """Listen again."""
        for _ in range(self._count):
            await self._start(_CUT_SECONDS if self._count == 1 else _DRAIN_SECONDS)

    async def _start(self, shutdown_timeout: float) -> None:
        watches: set[asyncio.Timeout] = set()
        handler = functools.partial(self._handle, watches)
        server = web.Server(handler, access_log=None, handler_cancellation=True)
        runner = web.ServerRunner(server, shutdown_timeout=shutdown_timeout)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", self._port, reuse_port=True).start()
        self._servers.append(_Server(runner, watches))

    async def go(self) -> None:
        """Close all connections, and refuse new ones."""
        while self._servers:
            await self._servers.pop().runner.cleanup()

    async def replace(self) -> None:
        """Replace each API server, one after the other, as an upgrade of the control plane does.

        The new one listens first. The old one ends its watches, answers its other requests, and closes its
        connections."""
        for server in list(self._servers):
            await self._start(_DRAIN_SECONDS)
            self._servers.remove(server)
            ending = asyncio.create_task(server.runner.cleanup())
            while not ending.done():  # a request that was just received may still become a watch
                for watch in list(server.watches):
                    watch.reschedule(asyncio.get_running_loop().time())
                await asyncio.wait([ending], timeout=_CUT_SECONDS)
            await ending

    def forget(self) -> None:
        """Refuse to resume watches (410), as after a compaction of etcd: each resource must be listed again."""
        self.forgotten = {read.resource for read in self.reads if read.verb == "watch"}

    async def _handle(self, watches: set[asyncio.Timeout], request: web.BaseRequest) -> web.StreamResponse:
        _, client, path = request.raw_path.split("/", 2)
        query = request.query
        selector = ",".join(filter(None, (query.get("labelSelector"), query.get("fieldSelector"))))
        metadata_only = "PartialObjectMetadata" in request.headers.get("Accept", "")
        followed = WatchedResource(client, path.partition("?")[0], selector, metadata_only)
        streamed = "sendInitialEvents" in query  # a watch that starts with a streamed list
        verbs = [*(["list"] if streamed or "limit" in query else []), *(["watch"] if "watch" in query else [])]
        self.reads += [ReadRequest(asyncio.get_running_loop().time(), verb, followed) for verb in verbs]
        if "list" in verbs:
            self.forgotten.discard(followed)
        if "watch" in verbs and followed in self.forgotten:
            gone = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired", "code": 410}
            return web.json_response(gone, status=410)
        if self._upstream is None:
            raise web.HTTPServiceUnavailable
        async with self._upstream.asked(request, f"/{path}") as answer:
            if request.method == "PUT" and answer.status == 200:
                await self.stored(client, followed.path)
            return await passed_back(answer, request, watches if "watch" in verbs else None)


async def _do_nothing(_client: str, _path: str) -> None:
    pass


async def until_watched(missing: Callable[[], Collection[object]]) -> None:
    """Return when no resource is missing, because all watches are open again. TimeoutError: its message lists the
    missing resources."""
    try:
        await until(lambda: not missing(), "all watches to be opened again", _WATCHED_SECONDS)
    except TimeoutError as error:
        raise TimeoutError(f"{error}; missing: {sorted(map(str, missing()))}") from None
