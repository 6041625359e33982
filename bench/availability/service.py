"""One address in front of several gatekeepers, like a Service: it forwards connections and does not retry.

New connections go to the ready endpoints in turn, and stay there until one side closes them. Calls without a response
from an endpoint that was killed or hung are recorded as losses. Only these may make a release fail.
"""

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator
from dataclasses import dataclass

from bench.availability.losses import Cause, Loss

NEVER = math.inf

_CHUNK = 2**16
_ALERT = 64  # bytes: a TLS close_notify alert is shorter, a request or a handshake message is longer
_ALERT_RECORD = bytes.fromhex("1703030013")  # how a TLS 1.3 alert begins, which is 24 bytes long
_TLS = 2  # messages of an endpoint before its first response: its part of the handshake, and the session tickets
_GONE = (OSError, RuntimeError)  # uvloop raises RuntimeError for a closed connection


@dataclass
class Endpoint:
    """A gatekeeper's ports on loopback, and its state. Times are loop times."""

    port: int
    health_port: int
    ready: bool = False
    asked_at: float = 0.0
    """When the last request was sent to it."""
    killed_at: float = NEVER
    """When it was killed. NEVER as soon as it is ready again."""
    hung_at: float = NEVER
    """When it began to hang. NEVER as soon as it has been killed and is ready again."""


class _Connection:
    """Follows which side of a connection spoke last.

    If the first response comes in the same message as the session tickets, it counts as tickets. Then the client seems
    to wait, from that time until its next request. A loss at that time cannot explain the failure of a later release.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.made = _now()
        self._asked: float | None = None  # since when the client waits for a response
        self._messages = 0  # messages of the endpoint
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
        """Call when the endpoint or the client has closed the connection. Only the first call counts."""
        if self._ended is None:
            self._ended = _now()
            self._cause = _cause(self.endpoint, self.made)

    def loss(self) -> Loss | None:
        """The loss on a connection that has ended. A client may have used an idle connection for a call just then."""
        if self._cause is None or self._ended is None:
            return None
        return Loss(self._ended, Cause.UNNOTICED) if self._asked is None else Loss(self._asked, self._cause)


class Service:
    """Listens on `port` while `running` is active, and forwards to the `endpoints` that are ready."""

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
    """Forward to the client until the endpoint closes or ends. Then close the client's side at once."""
    with contextlib.suppress(*_GONE):
        while data := await reader.read(_CHUNK):
            connection.endpoint_spoke()
            writer.write(data)
            await writer.drain()
    connection.end()
    with contextlib.suppress(*_GONE):
        writer.write_eof()


async def _ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connection: _Connection) -> None:
    """Forward to the endpoint until the client closes. Data for an endpoint that has ended is counted and dropped.

    A client that closes sends an alert. It may then wait for the endpoint, which does not answer if it hangs."""
    with contextlib.suppress(*_GONE):
        while data := await reader.read(_CHUNK):
            if len(data) > _ALERT:
                connection.client_spoke()
            with contextlib.suppress(*_GONE):
                writer.write(data)
                await writer.drain()
            if len(data) == len(_ALERT_RECORD) + 0x13 and data.startswith(_ALERT_RECORD):
                return


def _cause(endpoint: Endpoint, made: float) -> Cause | None:
    """Why a call on a connection that is ending gets no response. None: its endpoint works."""
    if _now() >= endpoint.hung_at:
        return Cause.HUNG
    if _now() < endpoint.killed_at:
        return None
    return Cause.UNDER_WAY if made <= endpoint.killed_at else Cause.UNNOTICED


def _now() -> float:
    return asyncio.get_running_loop().time()
