"""The client for URLs that tenants write.

Each request has a connection of its own. So no connection with one tenant's certificate serves another tenant, and a
request never fails because the other side closes an idle connection. The client connects to the addresses that it has
checked, so a name that resolves to another address later has no effect.
"""

import asyncio
import contextlib
import functools
import ipaddress
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import aiohttp
import yarl
from aiohttp.abc import AbstractResolver, ResolveResult

from altershield.process.request_progress import Progress, tracing
from altershield.texts import one_line
from reconciler.outbound.addresses import forbidden, forms
from reconciler.outbound.credentials import Credentials
from reconciler.outbound.outbound_errors import NoAnswerError, NotDeliveredError, OutboundError, UrlNotAllowedError
from reconciler.outbound.urls import Address, AllowedHosts, Destination, destination_of

TIMEOUT = 10.0
MAX_ANSWER = 64 * 1024

_CONNECT_SECONDS = 3.0
_AT_ONCE = 64  # requests
_AT_ONCE_PER_HOST = 8  # so that one slow host does not delay the checks of all others
_LOOKUPS = 4  # threads; a lookup that hangs keeps its thread until the resolver of the C library gives up
_NUMERIC = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV

Lookup = Callable[[str, int], Sequence[str]]
"""The addresses of a name. OSError: it has none. It is called in a thread."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A complete answer. A redirect is an answer like others: it is not followed."""

    status: int
    headers: Mapping[str, str]
    """The names are case-insensitive."""
    body: bytes


class ApiServer(NamedTuple):
    """An address of the API server, which no tenant's URL reaches. `port` None: all of its ports."""

    host: str
    port: int | None


def api_servers(*hosts: str, url: str = "") -> frozenset[ApiServer]:
    """The API server's addresses: `hosts` with all their ports, and the host of `url`. If the host of `url` is a
    loopback address, only with the port of `url`: other ports belong to other processes of this machine."""
    found = {ApiServer(_canonical(host), None) for host in hosts if host}
    if parsed := yarl.URL(url):
        host, port = _canonical(parsed.host or ""), parsed.port
        address = _address(host)
        local = host == "localhost" or (address is not None and address.is_loopback)
        found.add(ApiServer(host, port if local else None))
    return frozenset(found)


class Outbound:
    """Sends requests to URLs that tenants write. Create it while the event loop runs, and close it.

    It takes nothing from the environment: no proxy, no .netrc, no cookies, no credentials of AlterShield.
    """

    def __init__(
        self, allowed: AllowedHosts, api_server: frozenset[ApiServer] = frozenset(), lookup: Lookup | None = None
    ) -> None:
        self.allowed = allowed
        self._api_server = api_server
        self._lookup = lookup or _addresses
        self._threads = ThreadPoolExecutor(_LOOKUPS, "outbound-dns")
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._hosts: dict[str, _Slots] = {}
        self._trust = _system_authorities()
        self._tracing = tracing()

    async def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def __aenter__(self) -> "Outbound":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        credentials: Credentials | None = None,
        timeout: float = TIMEOUT,  # noqa: ASYNC109  (a caller that waits must know whether the request was sent)
        limit: int = MAX_ANSWER,
    ) -> Reply:
        """Send one request and return its answer, whatever its status. Nothing is repeated.

        `timeout` is the time for all in seconds, `limit` the size of the answer's body in bytes.

        UrlNotAllowedError and NotDeliveredError: the request had no effect. NoAnswerError: it may have had one.
        """
        try:
            destination = destination_of(url, self.allowed)
            self._check(destination, destination.address)
        except ValueError as error:
            raise UrlNotAllowedError(f"the request is not sent: {error}") from None
        progress = Progress()
        try:
            async with asyncio.timeout(timeout), self._slot(destination.host):
                return await self._exchange(method, destination, headers or {}, body, credentials, limit, progress)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise _failed(destination, error, progress, timeout) from error

    async def _exchange(
        self,
        method: str,
        destination: Destination,
        headers: Mapping[str, str],
        body: bytes,
        credentials: Credentials | None,
        limit: int,
        progress: Progress,
    ) -> Reply:
        sent = {"Accept-Encoding": "identity", "User-Agent": "altershield", **headers}
        if credentials is not None and credentials.authorization:
            sent["Authorization"] = credentials.authorization
        context = credentials.context if credentials is not None else None
        async with (
            aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    resolver=_Resolver(self, destination),
                    use_dns_cache=False,
                    force_close=True,
                    ssl=context or self._trust,
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,  # a small compressed answer can be a large one
                trust_env=False,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS),
                trace_configs=[self._tracing],
            ) as session,
            session.request(
                method,
                yarl.URL(destination.url, encoded=True),
                data=body or None,
                headers=sent,
                allow_redirects=False,
                trace_request_ctx=progress,
            ) as response,
        ):
            content = bytearray()
            while chunk := await response.content.readany():
                content += chunk
                if len(content) > limit:
                    response.close()
                    raise ValueError(f"its answer is longer than {limit} bytes")
            return Reply(response.status, response.headers, bytes(content))

    async def resolve(self, destination: Destination, host: str) -> list[Address]:
        """The addresses of the destination's host, all of them checked. `host` is the host as aiohttp reads it.

        OSError: it has none. UrlNotAllowedError.
        """
        if host.lower().removesuffix(".") != destination.host:
            raise UrlNotAllowedError("the request is not sent: its URL can be read in two ways")
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(self._threads, self._lookup, host, destination.port)
        addresses = list(dict.fromkeys(map(ipaddress.ip_address, found)))
        for address in addresses:
            try:
                self._check(destination, address)
            except ValueError as error:
                raise UrlNotAllowedError(f"the request is not sent: {error}") from None
        if not addresses:
            raise OSError("the name has no address")
        return addresses

    def _check(self, destination: Destination, address: Address | None) -> None:
        """ValueError if the host, or an address of it, is never called."""
        hosts = [destination.host, *(map(str, forms(address)) if address is not None else ())]
        for host in hosts:
            if not self._api_server.isdisjoint({ApiServer(host, None), ApiServer(host, destination.port)}):
                raise ValueError(f"the host {destination.host} is the API server, which is not called for a check")
        if address is None:
            return
        if why := forbidden(address, loopback=self.allowed.allows_loopback(destination)):
            raise ValueError(f"the host {destination.host} is {why} ({address}), which is not called for a check")

    @contextlib.asynccontextmanager
    async def _slot(self, host: str) -> AsyncIterator[None]:
        """Wait until the numbers of requests, in all and to this host, are below their limits."""
        slots = self._hosts.setdefault(host, _Slots())
        slots.users += 1
        try:
            async with slots.semaphore, self._slots:
                yield
        finally:
            slots.users -= 1
            if not slots.users:
                del self._hosts[host]


class _Slots:
    """The requests to one host."""

    def __init__(self) -> None:
        self.users = 0
        self.semaphore = asyncio.Semaphore(_AT_ONCE_PER_HOST)


class _Resolver(AbstractResolver):
    """Resolves the host of one request. The addresses that it returns are those that aiohttp connects to."""

    def __init__(self, outbound: Outbound, destination: Destination) -> None:
        self._outbound = outbound
        self._destination = destination

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        del family  # both
        return [
            ResolveResult(
                hostname=host,
                host=str(address),
                port=port,
                family=socket.AF_INET if address.version == 4 else socket.AF_INET6,
                proto=socket.IPPROTO_TCP,
                flags=_NUMERIC,
            )
            for address in await self._outbound.resolve(self._destination, host)
        ]

    async def close(self) -> None:
        pass


@functools.cache
def _system_authorities() -> ssl.SSLContext:
    """A context that trusts the system's authorities. It is made once, because reading them takes 20 ms."""
    return ssl.create_default_context()


def _failed(destination: Destination, error: Exception, progress: Progress, timeout: float) -> OutboundError:
    if isinstance(error, TimeoutError):
        reason = f"within {timeout:g} s" if progress.sent else "no connection in time"
    elif isinstance(error, aiohttp.ClientResponseError):
        reason = error.message  # the text of the error has the whole URL
    elif isinstance(error, aiohttp.ClientConnectorError):
        reason = str(error.os_error)
    else:
        reason = str(error) or type(error).__name__
    where = f"{destination.host}:{destination.port}"
    if progress.sent:
        return NoAnswerError(
            f"the request to {where} has no complete answer ({one_line(reason, 256)}); see the log of this server"
        )
    return NotDeliveredError(
        f"the request cannot be sent to {where} ({one_line(reason, 256)}); check that the server runs, and that "
        "the NetworkPolicies allow AlterShield to reach it"
    )


def _addresses(host: str, port: int) -> Sequence[str]:
    found: Iterable[Any] = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
    return [str(address[0]) for *_, address in found]


def _address(text: str) -> Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _canonical(host: str) -> str:
    host = host.lower().removeprefix("[").removesuffix("]").removesuffix(".")
    return str(_address(host) or host)
