"""Requests on their way to the API server: one connection pool, credentials, and errors of one tree."""

import asyncio
import contextlib
import datetime
import email.utils
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, NamedTuple

import aiohttp

from altershield.kube import credentials
from altershield.kube.access import Access, Grant
from altershield.kube.errors import KubernetesError, UnreachableError, code_of, from_status

CONNECT_TIMEOUT = 5.0

_MAX_RETRY_AFTER = 300.0
_READ_BUFFER = 2**18
_HEAR_EVERY = 1.0  # seconds
_MAX_STATUS = 2**20  # bytes of an error's body


class Request(NamedTuple):
    """What to ask of the API server. Empty values of the query are left out."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    data: bytes | None
    timeout: aiohttp.ClientTimeout


class Transport:
    """One connection pool. `errors` counts what failed, by `errors.code_of`."""

    def __init__(self, access: Access, errors: dict[str, int]) -> None:
        self.heard: Callable[[str, float], None] = lambda date, elapsed: None
        """Called with the header Date of an answer, and how long that took, about once a second."""
        self._heard_at = 0.0
        self._access = access
        self._errors = errors
        self._session = aiohttp.ClientSession(
            # which certificates are used is said with each request: new ones then make new connections, while
            # what is under way ends on the old
            connector=aiohttp.TCPConnector(limit=0),
            proxy=credentials.proxy(access.configuration),
            read_bufsize=_READ_BUFFER,
        )

    @property
    def server(self) -> str:
        return str(self._access.configuration.host)

    async def close(self) -> None:
        await self._session.close()

    @contextlib.asynccontextmanager
    async def open(self, request: Request) -> AsyncIterator[aiohttp.ClientResponse]:
        """The answer, whose body is still to be read. KubernetesError for one that is an error, and for none.

        A 401 means that nothing was done. If other credentials are there by now, the request is sent with them once
        more.
        """
        try:
            grant = await self._access.current()
            response = await self._send(request, grant)
            if response.status == 401:
                try:
                    again = await self._access.refused(grant)
                except asyncio.CancelledError:
                    response.close()
                    raise
                if again:
                    response.release()
                    response = await self._send(request, await self._access.current())
            async with response:
                if response.status >= 300:
                    raise from_status(response.status, await _status(response), _retry_after(response))
                yield response
        except KubernetesError as error:
            self._errors[code_of(error)] += 1
            raise
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            self._errors["unreachable"] += 1
            cause = str(error) or type(error).__name__
            raise UnreachableError(
                f"no answer from the API server at {self.server} to {request.method} {request.path}: {cause}"
            ) from error

    async def _send(self, request: Request, grant: Grant) -> aiohttp.ClientResponse:
        headers = dict(request.headers)
        if grant.authorization:
            headers["Authorization"] = grant.authorization
        sent = time.monotonic()
        response = await self._session.request(
            request.method,
            f"{self.server}{request.path}",
            params={key: value for key, value in request.query.items() if value},
            data=request.data,
            headers=headers,
            timeout=request.timeout,
            allow_redirects=False,
            ssl=grant.tls,
            server_hostname=self._access.configuration.tls_server_name,
        )
        now = time.monotonic()
        if now - self._heard_at >= _HEAR_EVERY:
            self._heard_at = now
            self.heard(response.headers.get("Date", ""), now - sent)
        return response


async def _status(response: aiohttp.ClientResponse) -> dict[str, Any]:
    """The Status of an error's body, or what stands there instead as its message."""
    data = bytearray()
    while len(data) < _MAX_STATUS and (chunk := await response.content.readany()):
        data += chunk
    try:
        status = json.loads(data)
    except (ValueError, RecursionError):
        return {"message": data[:256].decode(errors="replace")}
    return status if isinstance(status, dict) else {}


def _retry_after(response: aiohttp.ClientResponse) -> float | None:
    """The seconds that an answer asks to wait, given as such or as a date."""
    value = response.headers.get("Retry-After", "")
    if value.isascii() and value.isdigit():
        return min(float(value), _MAX_RETRY_AFTER)
    try:
        until = email.utils.parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    if until.tzinfo is None:
        until = until.replace(tzinfo=datetime.UTC)
    return min(max((until - datetime.datetime.now(datetime.UTC)).total_seconds(), 0.0), _MAX_RETRY_AFTER)
