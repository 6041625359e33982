"""The API server behind a proxy. Requests are forwarded unchanged, with the caller's own token."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from typing import Self

import aiohttp
from aiohttp import web

from kube_base.access import credentials

_HOP_BY_HOP = {"host", "content-length", "transfer-encoding", "connection", "content-encoding"}


class Upstream:
    """The API server of a kubeconfig."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session = session
        self._url = url

    @classmethod
    @contextlib.asynccontextmanager
    async def connected(cls, kubeconfig: str) -> AsyncIterator[Self]:
        """Connect without the client certificate of the kubeconfig, because callers send their own tokens."""
        configuration = (await credentials.load(kubeconfig, None)).configuration
        context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=context, limit=0),
            timeout=aiohttp.ClientTimeout(total=None),
            auto_decompress=False,
        ) as session:
            yield cls(session, str(configuration.host).rstrip("/"))

    @contextlib.asynccontextmanager
    async def asked(self, request: web.BaseRequest, path: str) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send the request to `path`, which includes the query. Yields the response."""
        headers = {key: value for key, value in request.headers.items() if key.lower() not in _HOP_BY_HOP}
        body = await request.read() or None
        async with self._session.request(request.method, self._url + path, headers=headers, data=body) as answer:
            yield answer


async def passed_back(
    answer: aiohttp.ClientResponse, request: web.BaseRequest, under_way: set[asyncio.Timeout] | None = None
) -> web.StreamResponse:
    """The response for the caller. It is forwarded as it arrives, because a watch has no end.

    Meanwhile its timeout is in `under_way`. If the timeout expires, the response ends without an error, and then the
    connection is closed."""
    headers = {key: value for key, value in answer.headers.items() if key.lower() not in _HOP_BY_HOP}
    response = web.StreamResponse(status=answer.status, headers=headers)
    await response.prepare(request)
    under_way = set() if under_way is None else under_way
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(None) as until:
            under_way.add(until)
            try:
                async for chunk in answer.content.iter_any():
                    await response.write(chunk)
            finally:
                under_way.discard(until)
    if until.expired():
        response.force_close()
    await response.write_eof()
    return response
