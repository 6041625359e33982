"""The sockets: opened once, and closed so that no request fails."""

import ssl
from collections.abc import Awaitable, Callable

from aiohttp import web

_KEEP_ALIVE = 120.0  # seconds; longer than the 90 s of Go's client, so that the client closes first
_FINISH_SECONDS = 10.0  # for the last answers to be written
_LINGER_SECONDS = 2.0  # for the rest of a body that was refused, so that the answer is read

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class Listener:
    """One port, plain or (with `context`) TLS. `host` empty: all addresses."""

    def __init__(self, handler: Handler, host: str, port: int, context: ssl.SSLContext | None = None) -> None:
        server = web.Server(
            handler,
            access_log=None,
            keepalive_timeout=_KEEP_ALIVE,
            lingering_time=_LINGER_SECONDS,
            auto_decompress=False,
        )
        self._runner = web.ServerRunner(server, shutdown_timeout=_FINISH_SECONDS)
        self._host = host or None
        self._port = port
        self._context = context
        self._site: web.TCPSite | None = None

    @property
    def port(self) -> int:
        """The port that is listened on; with 0 asked for, the one that was given."""
        return int(self._runner.addresses[0][1]) if self._runner.addresses else self._port

    async def start(self) -> None:
        """Listen. OSError where the address cannot be had."""
        await self._runner.setup()
        site = web.TCPSite(self._runner, self._host, self._port, ssl_context=self._context)
        await site.start()
        self._site = site

    async def refuse_connections(self) -> None:
        """Take no new connections; those that are open are served on."""
        if self._site is not None:
            await self._site.stop()
            self._site = None

    async def stop(self) -> None:
        """Close what is open. Requests whose bodies have arrived are answered first."""
        await self._runner.cleanup()
