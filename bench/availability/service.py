"""One address in front of several gatekeepers, as a Service is one: it forwards connections and retries nothing.

A new connection goes to the ready endpoint whose turn it is, and stays with it until one of the two closes it. Whether
an endpoint is ready is asked of its /readyz once a second; one that died is sent connections, in vain, until then.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass

import aiohttp

from altershield.serving import is_ready

PROBE_SECONDS = 1.0
_CHUNK = 2**16
_ALERT = 64  # bytes; TLS' good-bye is shorter, a request or handshake is not
_GONE = (OSError, RuntimeError)  # the latter is uvloop's word for a connection that is closed


@dataclass
class Endpoint:
    """A gatekeeper's ports on loopback."""

    port: int
    health_port: int
    ready: bool = False
    connections: int = 0
    """That it was given so far."""


@dataclass
class _Connection:
    waiting: bool = False  # the client spoke last
    left: bool = False  # by the endpoint, before the client


class Service:
    """Listens on `port` while `running`, and routes to those of `endpoints` that are ready."""

    def __init__(self) -> None:
        self.endpoints: list[Endpoint] = []
        self.port = 0
        self.cut = 0
        """Connections that an endpoint left with a request (or handshake) unanswered."""
        self.refused = 0
        """Connections to an endpoint at which nobody listened."""
        self._turn = 0

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        server = await asyncio.start_server(self._forward, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        probing = asyncio.create_task(self._probe())
        try:
            yield
        finally:
            probing.cancel()
            server.close()

    async def _probe(self) -> None:
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(PROBE_SECONDS)) as session:
            while True:
                for endpoint in list(self.endpoints):
                    endpoint.ready = await is_ready(session, endpoint.health_port)
                await asyncio.sleep(PROBE_SECONDS)

    def _next(self) -> Endpoint | None:
        ready = [endpoint for endpoint in self.endpoints if endpoint.ready]
        self._turn += 1
        return ready[self._turn % len(ready)] if ready else None

    async def _forward(self, from_client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        endpoint = self._next()
        if endpoint is None:
            to_client.transport.abort()
            return
        endpoint.connections += 1
        try:
            from_pod, to_pod = await asyncio.open_connection("127.0.0.1", endpoint.port)
        except OSError:
            self.refused += 1
            to_client.transport.abort()
            return
        connection = _Connection()
        answering = asyncio.create_task(_answer(from_pod, to_client, connection))
        try:
            await _ask(from_client, to_pod, connection)
        finally:
            self.cut += connection.left and connection.waiting
            to_pod.close()
            await answering
            to_client.close()


async def _ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connection: _Connection) -> None:
    """Forward until the client closes; what it still says to an endpoint that has left is only noticed."""
    with contextlib.suppress(*_GONE):
        while data := await reader.read(_CHUNK):
            connection.waiting |= len(data) > _ALERT
            with contextlib.suppress(*_GONE):
                writer.write(data)
                await writer.drain()


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connection: _Connection) -> None:
    """Forward until the endpoint closes or is gone, and tell the client at once."""
    with contextlib.suppress(*_GONE):
        while data := await reader.read(_CHUNK):
            connection.waiting = False
            writer.write(data)
            await writer.drain()
    connection.left = True
    with contextlib.suppress(*_GONE):
        writer.write_eof()
