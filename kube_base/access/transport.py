"""HTTP requests to the API server: one connection pool, credentials, and errors of one tree."""

import asyncio
import contextlib
import datetime
import email.utils
import json
import re
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import Any, NamedTuple

import aiohttp

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


class Transport:
    """One connection pool. `errors` counts failed requests by `errors.code_of`."""

    def __init__(self, authentication: Authentication, errors: dict[str, int]) -> None:
        self.on_date: Callable[[str, float], None] = lambda date, elapsed: None
        """Called about once a second with the header Date of a response, and the seconds that the response took."""
        self._date_reported_at = 0.0
        self.on_warning: Callable[[str], None] = lambda text: None
        """Called with each warning of a response, before an error of this response is raised."""
        self._authentication = authentication
        self._errors = errors
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
                    raise from_status(response.status, await _status(response), _retry_after(response))
                yield response
        except KubernetesError as error:
            self._errors[code_of(error)] += 1
            raise
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            self._errors["unreachable"] += 1
            raise unreachable(error, self._authentication.configuration, request.method, request.path) from error

    async def _send(self, request: Request, used: RequestCredentials) -> aiohttp.ClientResponse:
        headers = [*request.headers.items(), *self._authentication.configuration.impersonation]
        if used.authorization:
            headers.append(("Authorization", used.authorization))
        sent = time.monotonic()
        response = await self._session.request(
            request.method,
            f"{self.server}{request.path}",
            params={key: value for key, value in request.query.items() if value},
            data=request.data,
            headers=headers,
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


async def _status(response: aiohttp.ClientResponse) -> dict[str, Any]:
    """The Status in an error's body. Any other body becomes the message of a Status."""
    data = bytearray()
    while len(data) < _MAX_STATUS and (chunk := await response.content.readany()):
        data += chunk
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
