"""One address in front of several gatekeepers, as a Service is one: it forwards connections and retries nothing.

A new connection goes to the ready endpoint whose turn it is, and stays with it until one of the two closes it. Calls
that go unanswered at an endpoint that was killed or hung are noted: only these may make a release fail.
"""

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator
from dataclasses import dataclass

from bench.availability.losses import Cause, Loss

NEVER = math.inf

_CHUNK = 2**16
_ALERT = 64  # bytes; TLS' good-bye is shorter, a request or handshake is not
_TLS = 2  # messages of an endpoint before its first answer: its hello, and tickets, sent while the request waits
_GONE = (OSError, RuntimeError)  # the latter is uvloop's word for a connection that is closed


@dataclass
class Endpoint:
    """A gatekeeper's ports on loopback, and what became of it."""

    port: int
    health_port: int
    ready: bool = False
    asked_at: float = 0.0
    """The last time, by the loop's."""
    killed_at: float = NEVER
    """And until it is ready again."""
    hung_at: float = NEVER
    """Likewise: in the end it is killed."""


class _Connection:
    """An answer that came together with the tickets is taken for these: until its next request the client seems to
    wait, since a moment that is past, at which no call can have been lost that makes a release fail later."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.made = _now()
        self._asked: float | None = None  # since when the client waits for an answer
        self._messages = 0  # of the endpoint
        self._ended: float | None = None
        self._cause: Cause | None = None

    def client_spoke(self) -> None:
        if self._asked is None or self._messages <= _TLS:
            self._asked = self.endpoint.asked_at = _now()

    def endpoint_spoke(self) -> None:
        self._messages += 1
        if self._messages > _TLS:
            self._asked = None

    def end(self) -> None:
        """The endpoint or the client has left; who leaves first counts."""
        if self._ended is None:
            self._ended = _now()
            self._cause = _cause(self.endpoint, self.made)

    def loss(self) -> Loss | None:
        """Of a connection that has ended. One that was idle may have been taken for a call just then."""
        if self._cause is None or self._ended is None:
            return None
        return Loss(self._ended, Cause.UNNOTICED) if self._asked is None else Loss(self._asked, self._cause)


class Service:
    """Listens on `port` while `running`, and routes to those of `endpoints` that are ready."""

    def __init__(self) -> None:
        self.endpoints: list[Endpoint] = []
        self.port = 0
        self.losses: list[Loss] = []
        self._turn = 0

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        server = await asyncio.start_server(self._forward, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield
        finally:
            server.close()

    def _next(self) -> Endpoint | None:
        ready = [endpoint for endpoint in self.endpoints if endpoint.ready]
        self._turn += 1
        return ready[self._turn % len(ready)] if ready else None

    async def _forward(self, from_client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        endpoint = self._next()
        if endpoint is None:
            to_client.transport.abort()
            return
        connection = _Connection(endpoint)
        try:
            from_pod, to_pod = await asyncio.open_connection("127.0.0.1", endpoint.port)
        except OSError:
            self._note(connection)
            to_client.transport.abort()
            return
        answering = asyncio.create_task(_answer(from_pod, to_client, connection))
        try:
            await _ask(from_client, to_pod, connection)
        finally:
            self._note(connection)
            to_pod.close()
            await answering
            to_client.close()

    def _note(self, connection: _Connection) -> None:
        connection.end()
        if loss := connection.loss():
            self.losses.append(loss)


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connection: _Connection) -> None:
    """Forward until the endpoint closes or is gone, and tell the client at once."""
    with contextlib.suppress(*_GONE):
        while data := await reader.read(_CHUNK):
            connection.endpoint_spoke()
            writer.write(data)
            await writer.drain()
    connection.end()
    with contextlib.suppress(*_GONE):
        writer.write_eof()


async def _ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connection: _Connection) -> None:
    """Forward until the client closes; what it still says to an endpoint that has left is only noticed."""
    with contextlib.suppress(*_GONE):
        while data := await reader.read(_CHUNK):
            if len(data) > _ALERT:
                connection.client_spoke()
            with contextlib.suppress(*_GONE):
                writer.write(data)
                await writer.drain()


def _cause(endpoint: Endpoint, made: float) -> Cause | None:
    """Why a call goes unanswered on a connection that is just ending; None: its endpoint was well."""
    if _now() >= endpoint.hung_at:
        return Cause.HUNG
    if _now() < endpoint.killed_at:
        return None
    return Cause.UNDER_WAY if made <= endpoint.killed_at else Cause.UNNOTICED


def _now() -> float:
    return asyncio.get_running_loop().time()
