"""HTTP requests to the API server: one connection pool, credentials, and errors of one tree."""

import asyncio
import contextlib
import datetime
import email.utils
import json
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from typing import Any, NamedTuple

import aiohttp
from multidict import CIMultiDict

from kube_base.access import credentials
from kube_base.access.authentication import Authentication, RequestCredentials
from kube_base.access.connection_errors import unreachable
from kube_base.access.errors import MAX_RETRY_AFTER, KubernetesError, code_of, from_status

CONNECT_TIMEOUT = 5.0

_READ_BUFFER = 2**18
_DATE_PERIOD = 1.0  # seconds between two calls of `on_date`
_MAX_STATUS = 2**20  # bytes of an error's body that are read
_WARNING = re.compile(r'\b299 \S+ "((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(r"\\(.)")


class Request(NamedTuple):
    """An HTTP request. Empty values of the query are not sent."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    data: bytes | None
    timeout: aiohttp.ClientTimeout


Send = Callable[[str, str, Mapping[str, str], CIMultiDict[str], bytes | None], Awaitable[tuple[int, bytes]]]
"""Sends a request with this method, path, query, these headers and this body. Returns the status and the body of the
response."""


class Transport:
    """One connection pool. `errors` counts failed requests by `errors.code_of`.

    With `send`, requests other than watches do not go through the pool: for an API server in this process.
    """

    def __init__(self, authentication: Authentication, errors: dict[str, int], send: Send | None = None) -> None:
        self.headers_of: Callable[[str], Iterable[tuple[str, str]]] = lambda method: ()
        """More headers for a request of this method."""
        self.on_date: Callable[[str, float], None] = lambda date, elapsed: None
        """Called about once a second with the header Date of a response, and the seconds that the response took."""
        self._date_reported_at = 0.0
        self.on_warning: Callable[[str], None] = lambda text: None
        """Called with each warning of a response, before an error of this response is raised."""
        self._authentication = authentication
        self._errors = errors
        self._local = send
        self._session = aiohttp.ClientSession(
            # Each request names its TLS context. So changed certificates lead to new connections, and requests in
            # flight end on the old connections.
            connector=aiohttp.TCPConnector(limit=0),
            proxy=credentials.proxy(authentication.configuration),
            read_bufsize=_READ_BUFFER,
        )

    @property
    def server(self) -> str:
        return str(self._authentication.configuration.host)

    async def close(self) -> None:
        await self._session.close()

    async def answer(self, request: Request) -> bytes:
        """The body of the response; see `open`."""
        if self._local is not None:
            return await self._local_answer(self._local, request)
        async with self.open(request) as response:
            return await response.read()

    async def _local_answer(self, send: Send, request: Request) -> bytes:
        headers = CIMultiDict(self._headers(request, await self._authentication.current()))
        status, body = await send(request.method, request.path, _not_empty(request.query), headers, request.data)
        if status < 300:
            return body
        error = from_status(status, _status(body))
        self._errors[code_of(error)] += 1
        raise error

    @contextlib.asynccontextmanager
    async def open(self, request: Request) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send the request. The caller reads the response's body. KubernetesError for an error status or no response.

        After the answer 401, the API server has not carried out the request. If the credentials can be renewed, the
        request is sent once more with the new credentials.
        """
        try:
            used = await self._authentication.current()
            response = await self._send(request, used)
            if response.status == 401:
                try:
                    renewed = await self._authentication.refused(used)
                except asyncio.CancelledError:
                    response.close()
                    raise
                if renewed:
                    response.release()
                    response = await self._send(request, await self._authentication.current())
            async with response:
                if response.status >= 300:
                    raise from_status(response.status, _status(await _beginning(response)), _retry_after(response))
                yield response
        except KubernetesError as error:
            self._errors[code_of(error)] += 1
            raise
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            self._errors["unreachable"] += 1
            raise unreachable(error, self._authentication.configuration, request.method, request.path) from error

    async def _send(self, request: Request, used: RequestCredentials) -> aiohttp.ClientResponse:
        sent = time.monotonic()
        response = await self._session.request(
            request.method,
            f"{self.server}{request.path}",
            params=_not_empty(request.query),
            data=request.data,
            headers=self._headers(request, used),
            timeout=request.timeout,
            allow_redirects=False,
            ssl=used.tls,
            server_hostname=self._authentication.configuration.tls_server_name,
        )
        now = time.monotonic()
        if now - self._date_reported_at >= _DATE_PERIOD:
            self._date_reported_at = now
            self.on_date(response.headers.get("Date", ""), now - sent)
        for text in warning_texts(response.headers.getall("Warning", ())):
            self.on_warning(text)
        return response

    def _headers(self, request: Request, used: RequestCredentials) -> list[tuple[str, str]]:
        headers = [*request.headers.items(), *self._authentication.configuration.impersonation]
        headers += self.headers_of(request.method)
        if used.authorization:
            headers.append(("Authorization", used.authorization))
        return headers


def _not_empty(query: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in query.items() if value}


async def _beginning(response: aiohttp.ClientResponse) -> bytes:
    """The part of an error's body that is read."""
    data = bytearray()
    while len(data) < _MAX_STATUS and (chunk := await response.content.readany()):
        data += chunk
    return bytes(data)


def _status(data: bytes) -> dict[str, Any]:
    """The Status in an error's body. Any other body becomes the message of a Status."""
    try:
        status = json.loads(data)
    except (ValueError, RecursionError):
        return {"message": data[:256].decode(errors="replace")}
    return status if isinstance(status, dict) else {}


def _retry_after(response: aiohttp.ClientResponse) -> float | None:
    """The seconds of the header Retry-After, which is a number or a date."""
    value = response.headers.get("Retry-After", "")
    if value.isascii() and value.isdigit():
        return min(float(value), MAX_RETRY_AFTER)
    try:
        until = email.utils.parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    if until.tzinfo is None:
        until = until.replace(tzinfo=datetime.UTC)
    return min(max((until - datetime.datetime.now(datetime.UTC)).total_seconds(), 0.0), MAX_RETRY_AFTER)


def warning_texts(headers: Iterable[str]) -> list[str]:
    """The texts in these headers Warning, with which API servers warn, also in the name of webhooks. Headers that are
    not warnings of an API server are left out."""
    return [_ESCAPED.sub(r"\1", found) for header in headers for found in _WARNING.findall(header)]
