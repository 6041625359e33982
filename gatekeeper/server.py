"""The HTTP endpoints: admission reviews, health and metrics.

One handler looks the path up itself. A router and middlewares would take longer than a decision.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Mapping
from email.utils import formatdate
from functools import lru_cache
from typing import Any

import orjson
from aiohttp import HttpVersion11, hdrs, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http import SERVER_SOFTWARE

from altershield.api.pages import DENIED
from altershield.process.health import Health
from gatekeeper.dispatch import decide, decide_with_io
from gatekeeper.errors import ReviewError
from gatekeeper.intake.body import Body, Intake, arrived
from gatekeeper.journal import Journal
from gatekeeper.listers import Listers
from gatekeeper.metrics import Metrics
from gatekeeper.response import Denial
from gatekeeper.review import WireRequest, write
from gatekeeper.routes import Route

logger = logging.getLogger(__name__)

_JSON = {hdrs.CONTENT_TYPE: "application/json"}
_FINISH_SECONDS = 30.0
_REASONS = {
    400: "BadRequest",
    403: "Forbidden",
    405: "MethodNotAllowed",
    408: "Timeout",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    500: "InternalError",
    503: "ServiceUnavailable",
}
"""The reasons of a Kubernetes Status (`metav1.StatusReason`), by HTTP code."""


class Gatekeeper:
    """Answers reviews, and reports its health. `unready` returns the reasons why it should get no requests. With a
    `client`, only callers whose certificate has this common name get an answer."""

    def __init__(
        self,
        routes: Mapping[str, Route],
        listers: Listers,
        metrics: Metrics,
        journal: Journal,
        unready: Callable[[], list[str]],
        *,
        client: str = "",
    ) -> None:
        self._routes = routes
        self._listers = listers
        self._metrics = metrics
        self._journal = journal
        self._intake = Intake()
        self.health = Health(metrics.registry, self._not_ready, journal.flush)
        self._unready = unready
        self._client = client
        self._draining = False
        self._idle = asyncio.Event()

    def drain(self) -> None:
        """Report not ready from now on, and close each connection after its next answer."""
        self._draining = True

    def _not_ready(self) -> str:
        return "shutting down" if self._draining else "\n".join(self._unready())

    async def finish(self) -> None:
        """After `drain`, wait until no request is in flight, at most as long as an API server waits for a webhook."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_FINISH_SECONDS):
                while self._metrics.in_flight:
                    self._idle.clear()
                    await self._idle.wait()

    async def admit(self, request: web.BaseRequest) -> web.StreamResponse:
        """The TLS port: reviews, and the health endpoints."""
        route = self._routes.get(request.rel_url.raw_path)
        if route is None:
            return self.health.probe(request)
        began = time.perf_counter()
        wire: WireRequest[Any] | None = None
        taken: Body | None = None
        answer: web.Response
        self._metrics.in_flight += 1
        try:
            if self._client:
                _identify(request, self._client)
            _check(request)
            data = arrived(request)
            if data is None:
                taken = await self._intake.take(request)
                data = taken.data
            wire = route.decode(data)
            if route.webhook.does_io:
                found = await decide_with_io(route, wire, self._listers)
            else:
                found = decide(route, wire, self._listers)
            body = write(
                wire.uid,
                status=found.denial.status if found.denial is not None else None,
                patch=found.patch,
                warnings=found.warnings,
                audit=found.audit,
            )
            answer = _Answer(body=body, headers=_JSON)
            self._journal.note(route.webhook, wire, found, time.perf_counter() - began)
        except ReviewError as error:
            self._journal.refuse(route.webhook, error)
            answer = _status(error.code, str(error))
        except ConnectionError:  # the caller has gone, so nobody reads the answer
            answer = web.Response(status=400)
            answer.force_close()
        except Exception:
            answer = self._failed(route, wire)
        finally:
            if taken is not None:
                self._intake.release(taken)
            self._metrics.in_flight -= 1
            if self._draining and self._metrics.in_flight == 0:
                self._idle.set()
        if self._draining:
            answer.force_close()
        return answer

    def _failed(self, route: Route, wire: WireRequest[Any] | None) -> web.Response:
        """The answer to a request that met a bug of the gatekeeper. With the HTTP status 500, the `failurePolicy`
        decides. The body denies the request, for clients that only read the body."""
        self._metrics.failed(route.webhook.name, 500)
        logger.exception("failed", extra={"webhook": route.webhook.name, "uid": wire and wire.uid})
        message = f"AlterShield failed to decide about this request; its log says why; see {DENIED}"
        if wire is None:
            return _status(500, message)
        denial = Denial(message=message, reason="InternalError", code=500)
        return web.Response(status=500, body=write(wire.uid, status=denial.status), headers=_JSON)


class _Answer(web.Response):
    """A response with the status 200. It writes its header in one step where the connection stays open, as nearly all
    do: aiohttp takes a tenth of the time of a small review to put together the same header."""

    written = False
    """Whether the whole response was written in one step."""

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        if self.written:
            return None
        if self.keep_alive is False or not request.keep_alive or request.version != HttpVersion11:
            return await super().prepare(request)
        body = self.body
        assert isinstance(body, bytes)  # noqa: S101  (for the type checker)
        self.written = True
        await request.writer.write_eof(b"%b%d\r\n\r\n%b" % (_head(int(time.time())), len(body), body))
        return None

    async def write_eof(self, data: bytes = b"") -> None:
        if not self.written:
            await super().write_eof(data)

    @property
    def keep_alive(self) -> bool | None:
        return self.written or super().keep_alive


@lru_cache(maxsize=1)
def _head(second: int) -> bytes:
    """The header of a response in this second (Unix time), without the length of the body."""
    return (
        f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nDate: {formatdate(second, usegmt=True)}\r\n"
        f"Server: {SERVER_SOFTWARE}\r\nContent-Length: "
    ).encode()


def _identify(request: web.BaseRequest, client: str) -> None:
    """ReviewError (403) unless the certificate has the common name `client`. The TLS handshake has verified its CA."""
    certificate = request.get_extra_info("peercert") or {}
    names = [value for part in certificate.get("subject", ()) for key, value in part if key == "commonName"]
    if client not in names:
        found = ", ".join(names)[:128] or "none"
        raise ReviewError(f"reviews are taken from {client} alone; the common name of your certificate is {found}", 403)


def _check(request: web.BaseRequest) -> None:
    """ReviewError (4xx) unless the request is a POST of JSON without a Content-Encoding."""
    headers = request.headers
    if request.method != "POST":
        raise ReviewError(f"reviews are sent with POST, not {request.method[:16]}", 405)
    media_type = headers.get(hdrs.CONTENT_TYPE, "")
    if media_type != "application/json" and request.content_type != "application/json":
        raise ReviewError(f"reviews have the Content-Type application/json, not {media_type[:64] or 'none'}", 415)
    if headers.get(hdrs.CONTENT_ENCODING, "identity") != "identity":
        raise ReviewError("reviews are sent as they are, without a Content-Encoding", 415)


def _status(code: int, message: str) -> web.Response:
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": _REASONS[code],
        "code": code,
    }
    return web.Response(status=code, body=orjson.dumps(status), headers=_JSON)
