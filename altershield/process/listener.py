"""The listening sockets and their connections, bounded so that idle callers do not keep others from connecting."""

import asyncio
import contextlib
import socket
import ssl
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import hdrs, web

CONNECTIONS = 512
"""The most open connections of one port, including those in the TLS handshake. A further connection closes the one that
was idle longest."""

_BACKLOG = 1024
_HANDSHAKE_SECONDS = 5.0
_FIRST_REQUEST_SECONDS = 10.0
_SWEEP_SECONDS = 1.0
_RETRY_SECONDS = 0.05
_KEEP_ALIVE = 120.0  # seconds; longer than the 90 s of Go's client, so that the client closes first
_FINISH_SECONDS = 10.0  # for the last answers to be written
_LINGER_SECONDS = 2.0  # for the rest of a body that was refused
_LINGERING = 2  # the number of such bodies that are read at the same time
_ACCEPTS = 32  # new connections in one iteration of the event loop; further ones wait in the kernel
_RECEIVE_BUFFER = 128 * 1024  # bytes that the kernel keeps of one connection
_READ_BUFFER = 64 * 1024  # bytes; a connection with more encrypted bytes, or twice as many decrypted ones, is paused
_CLOSE_SECONDS = 5.0  # for the caller to confirm the end of a TLS connection
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class _Connection:
    """One open connection: in the handshake, or with a protocol."""

    def __init__(self, opening: "asyncio.Task[None]", now: float) -> None:
        self.opening = opening
        self.since = now
        self.transport: asyncio.BaseTransport | None = None

    def abort(self) -> None:
        if isinstance(self.transport, asyncio.WriteTransport):
            self.transport.abort()
        else:
            self.opening.cancel()


class _Server(web.Server):
    """aiohttp's server. It reports requests and closed connections to the listener."""

    def __init__(self, listener: "Listener", handler: Handler) -> None:
        super().__init__(
            handler,
            request_factory=self._request,
            access_log=None,
            keepalive_timeout=_KEEP_ALIVE,
            lingering_time=0,  # the listener reads the rest of a refused body
            read_bufsize=_READ_BUFFER,
            auto_decompress=False,
        )
        self._listener = listener

    def connection_lost(self, handler: Any, exc: BaseException | None = None) -> None:
        super().connection_lost(handler, exc)
        self._listener.closed(handler)

    def _request(self, message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> web.BaseRequest:
        self._listener.used(protocol)
        return web.BaseRequest(message, payload, protocol, writer, task, asyncio.get_running_loop())


class Listener:
    """One port: TLS with a `context`, plain otherwise. With an empty `host` it listens on all addresses."""

    def __init__(
        self,
        handler: Handler,
        host: str,
        port: int,
        context: ssl.SSLContext | None = None,
        *,
        connections: int = CONNECTIONS,
    ) -> None:
        self._handler = handler
        self._host = host
        self._port = port
        self._context = context
        self._limit = connections
        self._server: _Server | None = None
        self._sockets: list[socket.socket] = []
        self._sweeper: asyncio.Task[None] | None = None
        self._lingering = asyncio.Semaphore(_LINGERING)
        self._opening: set[asyncio.Task[None]] = set()
        self._new: OrderedDict[Any, _Connection] = OrderedDict()  # without a request yet, by protocol or task
        self._used: OrderedDict[Any, _Connection] = OrderedDict()  # by protocol; the last one had the last request

    @property
    def port(self) -> int:
        """The port of the listening socket. If 0 was configured, the operating system chose it."""
        return int(self._sockets[0].getsockname()[1]) if self._sockets else self._port

    @property
    def open(self) -> int:
        """Open connections."""
        return len(self._new) + len(self._used)

    async def start(self) -> None:
        """Start listening. It raises OSError if the address is not available."""
        self._server = _Server(self, self._answer)
        self._sockets = await _bound(self._host, self._port)
        self._port = self.port
        loop = asyncio.get_running_loop()
        for each in self._sockets:
            loop.add_reader(each, self._accept, each)
        self._sweeper = loop.create_task(self._sweep())

    async def refuse_connections(self) -> None:
        """Stop accepting connections. Open connections are still served."""
        sockets, self._sockets = self._sockets, []
        for each in sockets:
            asyncio.get_running_loop().remove_reader(each)
            each.close()
        if self._sweeper is not None:
            self._sweeper.cancel()
            await asyncio.gather(self._sweeper, return_exceptions=True)

    async def stop(self) -> None:
        """Close all connections. Requests whose bodies have arrived are answered first."""
        await self.refuse_connections()
        for task in list(self._opening):
            task.cancel()
        if self._server is not None:
            self._server.pre_shutdown()
            await self._server.shutdown(_FINISH_SECONDS)

    def used(self, protocol: Any) -> None:
        """A connection has received a request."""
        connection = self._new.pop(protocol, None)
        if connection is not None:
            self._used[protocol] = connection
        elif protocol in self._used:
            self._used.move_to_end(protocol)

    def closed(self, protocol: Any) -> None:
        self._new.pop(protocol, None)
        self._used.pop(protocol, None)

    def _accept(self, listening: socket.socket) -> None:
        """Accept the waiting connections. One connection in each iteration of the event loop would be too few:
        attackers can make an iteration long, and API servers would give up while their connections wait in the
        kernel."""
        loop = asyncio.get_running_loop()
        for _ in range(_ACCEPTS):
            try:
                connected, _ = listening.accept()
            except BlockingIOError:
                return
            except OSError:  # too many open files, or the caller is gone
                loop.remove_reader(listening)
                loop.call_later(_RETRY_SECONDS, self._accept_again, listening)
                return
            connected.setblocking(False)
            self._make_room()
            task = loop.create_task(self._open(connected))
            self._opening.add(task)
            self._new[task] = _Connection(task, loop.time())
            task.add_done_callback(self._opening.discard)

    def _accept_again(self, listening: socket.socket) -> None:
        if listening in self._sockets:
            asyncio.get_running_loop().add_reader(listening, self._accept, listening)

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer a request. If the body was refused before its end, send the answer, and read the rest for a while. A
        connection that is closed with unread bytes is reset, and the caller may lose the answer."""
        answer = await self._handler(request)
        if request.content.is_eof():
            return answer
        answer.force_close()
        with contextlib.suppress(Exception):  # the caller is gone, or the body is broken
            await answer.prepare(request)
            await answer.write_eof()
            async with asyncio.timeout(_LINGER_SECONDS), self._lingering:
                while not request.content.at_eof():
                    await request.content.readany()
                    await asyncio.sleep(0)  # other connections first
        return answer

    def _make_room(self) -> None:
        """Close the connection that was idle longest. Connections without a request get at most half of the places, so
        that they do not push out all connections with requests."""
        while self.open >= self._limit:
            first = self._new if len(self._new) > self._limit // 2 or not self._used else self._used
            _, connection = first.popitem(last=False)
            connection.abort()

    async def _open(self, connected: socket.socket) -> None:
        """Do the TLS handshake, then start the HTTP protocol."""
        server, task, loop = self._server, asyncio.current_task(), asyncio.get_running_loop()
        assert server is not None  # noqa: S101  (it is set before the first connection is accepted)
        options: dict[str, Any] = (
            {
                "ssl": self._context,
                "ssl_handshake_timeout": _HANDSHAKE_SECONDS,
                "ssl_shutdown_timeout": _CLOSE_SECONDS,
            }
            if self._context
            else {}
        )
        protocol = server()
        try:
            transport, _ = await loop.connect_accepted_socket(lambda: protocol, connected, **options)
        except (OSError, TimeoutError):  # an SSLError is an OSError
            self._new.pop(task, None)
            connected.close()
            return
        except BaseException:
            self._new.pop(task, None)
            connected.close()
            raise
        connection = self._new.pop(task, None)
        if connection is None or transport.is_closing():  # it was closed to make room, or by the caller
            if isinstance(transport, asyncio.WriteTransport):
                transport.abort()
            return
        if hasattr(transport, "set_read_buffer_limits"):  # TLS
            transport.set_read_buffer_limits(_READ_BUFFER)
        connection.transport = transport
        self._new[protocol] = connection

    async def _sweep(self) -> None:
        """Close connections that have received no request in time."""
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            oldest = asyncio.get_running_loop().time() - _FIRST_REQUEST_SECONDS
            for key, connection in list(self._new.items()):
                if connection.since < oldest:
                    self._new.pop(key, None)
                    connection.abort()


async def ask_for_body(request: web.BaseRequest) -> None:
    """Answer `100 Continue` to a caller that waits for it before it sends the body."""
    if request.headers.get(hdrs.EXPECT, "").lower() == "100-continue" and not request.content.is_eof():
        await request.writer.write(_CONTINUE)
        request.writer.output_size = 0  # the answer has not begun


async def _bound(host: str, port: int) -> list[socket.socket]:
    """The listening sockets: one for all addresses, or one for each address of the host."""
    if not host:
        if socket.has_dualstack_ipv6():
            with contextlib.suppress(OSError):  # IPv6 is disabled in the kernel
                return [_listening(socket.AF_INET6, ("::", port), dualstack=True)]
        return [_listening(socket.AF_INET, ("0.0.0.0", port))]  # noqa: S104  (the user configured it)
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    return [_listening(family, address) for family, address in dict.fromkeys((each[0], each[4]) for each in found)]


def _listening(family: int, address: Any, *, dualstack: bool = False) -> socket.socket:
    made = socket.create_server(address, family=family, backlog=_BACKLOG, dualstack_ipv6=dualstack)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)
    made.setblocking(False)
    return made
