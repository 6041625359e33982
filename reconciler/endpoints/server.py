"""The HTTP port and its routes.

An AlterShield server and the receivers of `http` checks send callbacks, which are signed. People's tools list suspended
workloads and request rollbacks with a Kubernetes token. There are no other paths. Each path needs a signature or a
token.
"""

import logging
import ssl
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Self

from aiohttp import hdrs, web

from altershield.process.listener import Listener
from altershield.workloads import ADAPTERS
from kube_base.access.client import Client
from kube_base.errors import UsageError
from reconciler.checks.identity import CALLBACK_PATH
from reconciler.cluster.caches import Caches
from reconciler.cluster.writer import Writer
from reconciler.endpoints.callback_endpoint import CallbackEndpoint, Receive
from reconciler.endpoints.check_callback_endpoint import CheckCallbackEndpoint, ReceiveResult
from reconciler.endpoints.endpoint_errors import EndpointError
from reconciler.endpoints.intake import Intake
from reconciler.endpoints.metrics import CallbackMetrics
from reconciler.endpoints.outcome import CallbackOutcome
from reconciler.endpoints.refusals import Refusals
from reconciler.endpoints.responses import not_acknowledged, refused
from reconciler.endpoints.signatures import Signatures, Token
from reconciler.endpoints.tools_endpoint import ToolsEndpoint

logger = logging.getLogger(__name__)

PREFIX = "/openapi/altershield"
_CONNECTIONS = 128  # open at a time; one more closes the one that was idle longest

Handler = Callable[[web.BaseRequest], Awaitable[web.Response]]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Where the port listens, and whose signatures it accepts."""

    port: int
    """0: the operating system chooses one."""
    host: str = ""
    """Empty: all addresses."""
    context: ssl.SSLContext | None = None
    """For TLS. Without it, the port is plain HTTP."""
    platform: str
    """Our platform at the AlterShield server."""
    token: Token | None
    """The platform's token. Without it, all signed requests are refused."""


class _Route(NamedTuple):
    method: str
    handle: Handler
    failed: Callable[[EndpointError], web.Response]
    """Makes the answer to a request that is refused."""


class Endpoints:
    """Serves in a `async with` block. `clock` returns Unix seconds; `client` is not closed. UsageError if the port is
    not available."""

    def __init__(
        self,
        settings: Settings,
        caches: Caches,
        client: Client,
        writer: Writer,
        metrics: CallbackMetrics,
        receive: Receive,
        receive_result: ReceiveResult,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._settings = settings
        intake, refusals = Intake(), Refusals()
        signatures = Signatures(settings.platform, settings.token, clock)
        self._callbacks = CallbackEndpoint(intake, signatures, refusals, metrics, receive)
        self._check_callbacks = CheckCallbackEndpoint(client, caches, intake, refusals, metrics, receive_result, clock)
        self._tools = ToolsEndpoint(client, caches, writer, intake, refusals)
        self._listener = Listener(self.answer, settings.host, settings.port, settings.context, connections=_CONNECTIONS)
        self._routes = {
            f"{PREFIX}/callback": _Route("POST", self._callbacks.take, self._callbacks.refuse),
            CALLBACK_PATH: _Route("POST", self._check_callbacks.take, self._check_callbacks.refuse),
            f"{PREFIX}/liveTest": _Route("POST", self._callbacks.live_test, not_acknowledged),
        }
        for adapter in ADAPTERS:
            kind = adapter.resource.kind.lower()
            self._routes[f"{PREFIX}/suspend/{kind}"] = _Route(
                "GET", partial(self._tools.list_suspended, adapter), self._tools.refuse
            )
            self._routes[f"{PREFIX}/{kind}/rollback"] = _Route(
                "PUT", partial(self._tools.roll_back, adapter), self._tools.refuse
            )

    @property
    def port(self) -> int:
        """The port of the listening socket."""
        return self._listener.port

    async def __aenter__(self) -> Self:
        try:
            await self._listener.start()
        except OSError as error:
            raise UsageError(
                f"cannot listen on port {self._settings.port}: {error}; choose another one with --callback-port"
            ) from error
        self._tools.open()
        self._check_callbacks.open()
        scheme = "https" if self._settings.context else "http"
        logger.info("listening for callbacks", extra={"port": self.port, "scheme": scheme})
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._listener.stop()
        self._callbacks.stop()
        await self._tools.close()
        await self._check_callbacks.close()

    async def answer(self, request: web.BaseRequest) -> web.Response:
        """The answer to any request."""
        route = self._routes.get(request.rel_url.raw_path)
        if route is None:
            return refused(EndpointError("this path does not exist", 404))
        if request.method != route.method:
            answer = refused(EndpointError(f"this path accepts only {route.method}", 405))
            answer.headers[hdrs.ALLOW] = route.method
            return answer
        try:
            return await route.handle(request)
        except EndpointError as error:
            return route.failed(error)
        except ConnectionError:  # the caller has gone, so nobody reads the answer
            answer = web.Response(status=400)
            answer.force_close()
            return answer
        except Exception:
            logger.exception("failed", extra={"path": request.rel_url.raw_path})
            return route.failed(EndpointError("the request failed; the log says why", 500, CallbackOutcome.FAILED))
