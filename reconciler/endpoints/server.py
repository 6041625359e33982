"""The HTTP port: its routes and the form of its answers.

An AlterShield server and the receivers of `http` checks send callbacks, which are signed. People's tools list suspended
workloads and request rollbacks with a Kubernetes token. There are no other paths. Each path needs a signature or a
token.
"""

import asyncio
import logging
import ssl
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, NamedTuple, Self

import msgspec
from aiohttp import hdrs, web

from altershield.api.resources import CHANGE_WORKLOADS
from altershield.errors import UsageError
from altershield.kube.backoff import retry_while_unavailable
from altershield.kube.client import Client
from altershield.process.listener import Listener
from altershield.texts import one_line
from altershield.workloads import ADAPTERS, Adapter
from reconciler.checks.identity import CALLBACK_PATH
from reconciler.endpoints import callback, check_callback
from reconciler.endpoints.access import Access
from reconciler.endpoints.callback import Callback
from reconciler.endpoints.check_callback import CheckCallback
from reconciler.endpoints.check_keys import CheckKeys
from reconciler.endpoints.check_signatures import CheckSignatures
from reconciler.endpoints.endpoint_errors import EndpointError
from reconciler.endpoints.intake import Intake
from reconciler.endpoints.outcome import CallbackOutcome
from reconciler.endpoints.places import Places
from reconciler.endpoints.refusals import Refusals
from reconciler.endpoints.rollbacks import Rollbacks
from reconciler.endpoints.signatures import Signatures, Token
from reconciler.endpoints.suspended import suspended
from reconciler.machinery.caches import Caches
from reconciler.machinery.metrics import Metrics
from reconciler.machinery.writer import Writer

logger = logging.getLogger(__name__)

PREFIX = "/openapi/altershield"
MAX_CALLBACK = 1024 * 1024
"""Bytes of a callback."""

_MAX_REQUEST = 16 * 1024  # bytes of the other bodies
_CONNECTIONS = 128  # open at a time; one more closes the one that was idle longest
_RECEIVE_SECONDS = 2.0  # until a callback is answered, although it is not stored yet; the server waits six seconds
_STORE_SECONDS = 90.0  # for a callback to be stored
_STORE_ATTEMPTS = 15  # while the API server is not available, which takes longer than the time above
_STORING = 1000  # callbacks that are stored at a time
_RESULT_SECONDS = 10.0  # for a callback about a check to be stored, before it is answered
_RESULTS = 64  # callbacks about checks that are stored at a time
_HEADERS = {hdrs.CONTENT_TYPE: "application/json", hdrs.CACHE_CONTROL: "no-store"}
_CODES = {400: "101", 401: "102", 403: "102", 404: "105", 405: "103", 408: "101", 409: "103", 413: "101"}
"""AlterShield's result codes, by HTTP status; all others are `901`."""
_OK = "000"
_RETRIED = (500, 503)  # HTTP status codes of failures that may pass

Handler = Callable[[web.BaseRequest], Awaitable[web.Response]]
Receive = Callable[[Callback], Awaitable[None]]
"""Stores a callback in the cluster. It may get the same verdict twice, and nodes whose id is not stored yet. An error
means that the callback is not stored."""
ReceiveResult = Callable[[CheckCallback], Awaitable[bool]]
"""Stores the result of a check in the cluster. Returns false if the result changes nothing: the check does not run, or
has a result. An error means that the callback is not stored."""


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


_Name = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?\Z")]
_Namespace = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\Z")]


class _RollbackRequest(msgspec.Struct):
    namespace: _Namespace
    name: _Name
    version: _Name | None = None


class Endpoints:
    """Serves in a `async with` block. `clock` returns Unix seconds; `client` is not closed. UsageError if the port is
    not available."""

    def __init__(
        self,
        settings: Settings,
        caches: Caches,
        client: Client,
        writer: Writer,
        metrics: Metrics,
        receive: Receive,
        receive_result: ReceiveResult,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._settings = settings
        self._caches = caches
        self._client = client
        self._metrics = metrics
        self._receive = receive
        self._receive_result = receive_result
        self._intake = Intake()
        self._signatures = Signatures(settings.platform, settings.token, clock)
        self._check_signatures = CheckSignatures(clock)
        self._rollbacks = Rollbacks(caches, writer)
        self._refusals = Refusals()
        self._access: Access | None = None
        self._keys: CheckKeys | None = None
        self._results = Places(_RESULTS, "too many callbacks are being stored; send it again")
        self._storing: set[asyncio.Task[bool]] = set()
        self._listener = Listener(self.answer, settings.host, settings.port, settings.context, connections=_CONNECTIONS)
        self._routes = {
            f"{PREFIX}/callback": _Route("POST", self._take_callback, self._refuse_callback),
            CALLBACK_PATH: _Route("POST", self._take_result, self._refuse_result),
            f"{PREFIX}/liveTest": _Route("POST", self._live_test, _not_acknowledged),
        }
        for adapter in ADAPTERS:
            kind = adapter.resource.kind.lower()
            self._routes[f"{PREFIX}/suspend/{kind}"] = _Route("GET", partial(self._list, adapter), self._refuse_user)
            self._routes[f"{PREFIX}/{kind}/rollback"] = _Route(
                "PUT", partial(self._roll_back, adapter), self._refuse_user
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
        self._access = Access(self._client)
        self._keys = CheckKeys(self._client, self._caches)
        scheme = "https" if self._settings.context else "http"
        logger.info("listening for callbacks", extra={"port": self.port, "scheme": scheme})
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._listener.stop()
        for task in self._storing:
            task.cancel()
        if self._access is not None:
            await self._access.close()
        if self._keys is not None:
            await self._keys.close()

    async def answer(self, request: web.BaseRequest) -> web.Response:
        """The answer to any request."""
        route = self._routes.get(request.rel_url.raw_path)
        if route is None:
            return _refused(EndpointError("this path does not exist", 404))
        if request.method != route.method:
            answer = _refused(EndpointError(f"this path accepts only {route.method}", 405))
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

    # an AlterShield server

    async def _take_callback(self, request: web.BaseRequest) -> web.Response:
        claim = await self._signatures.claim(request.headers)
        async with self._intake.body(request, MAX_CALLBACK) as body:
            content = self._signatures.verify(claim, body)
            taken = callback.read(content, claim.timestamp / 1000)
        if len(self._storing) >= _STORING:
            self._signatures.give_back(claim)
            raise EndpointError("too many callbacks are being stored", 503, CallbackOutcome.FAILED)
        task = asyncio.create_task(self._store(taken))
        self._storing.add(task)
        task.add_done_callback(self._storing.discard)
        await asyncio.wait({task}, timeout=_RECEIVE_SECONDS)
        if task.done() and not task.result():
            self._signatures.give_back(claim)
            raise EndpointError("the callback could not be stored", 500, CallbackOutcome.FAILED)
        return _acknowledged()

    async def _store(self, taken: Callback) -> bool:
        """Store the verdict of a callback. This goes on after the answer, because the server sends no callback
        twice."""
        try:
            async with asyncio.timeout(_STORE_SECONDS):
                await retry_while_unavailable(lambda: self._receive(taken), _STORE_ATTEMPTS)
        except Exception:
            logger.exception("callback not stored", extra=_described(taken))
            return False
        self._metrics.callbacks.labels(CallbackOutcome.ACCEPTED).inc()
        logger.info("callback accepted", extra=_described(taken))
        return True

    def _refuse_callback(self, error: EndpointError) -> web.Response:
        self._metrics.callbacks.labels(error.outcome).inc()
        self._refusals.note(error.outcome, error)
        return _not_acknowledged(error)

    def _refuse_user(self, error: EndpointError) -> web.Response:
        if error.code in _RETRIED:
            self._refusals.note("reviews", error)
        return _refused(error)

    async def _live_test(self, request: web.BaseRequest) -> web.Response:
        claim = await self._signatures.claim(request.headers)
        async with self._intake.body(request, _MAX_REQUEST) as body:
            self._signatures.verify(claim, body)
        return _acknowledged()

    # receivers of `http` checks

    async def _take_result(self, request: web.BaseRequest) -> web.Response:
        """A callback about a check. It is answered after it was stored, so that the sender learns if it was not
        stored."""
        if self._keys is None:
            raise EndpointError("the port is not open", 503, CallbackOutcome.FAILED)
        claim = self._check_signatures.claim(request.headers)
        async with self._intake.body(request, check_callback.MAX_BODY) as body:
            taken = check_callback.read(body)
            await self._check_signatures.verify(claim, taken.run, body, self._keys.key)
        changed = False
        try:
            changed = await self._store_result(taken)
        finally:
            if not changed:
                self._check_signatures.forget(claim)
        self._metrics.check_callbacks.labels(CallbackOutcome.ACCEPTED).inc()
        if not changed:
            return _acknowledged("the check has a result already, or has not begun: nothing has changed")
        return _acknowledged()

    async def _store_result(self, taken: CheckCallback) -> bool:
        """Store the result of a check. Returns false if it changes nothing."""
        run = taken.run
        about = {"namespace": run.namespace, "change_pod": run.change_pod, "check": run.check, "phase": run.phase}
        with self._results:
            try:
                async with asyncio.timeout(_RESULT_SECONDS):
                    changed = await self._receive_result(taken)
            except Exception as error:
                logger.warning("callback about a check not stored", extra={**about, "error": str(error)})
                message = "the callback could not be stored; send it again"
                raise EndpointError(message, 503, CallbackOutcome.FAILED) from error
        result = type(taken.result).__name__
        logger.info("callback about a check accepted", extra={**about, "result": result, "changed": changed})
        return changed

    def _refuse_result(self, error: EndpointError) -> web.Response:
        self._metrics.check_callbacks.labels(error.outcome).inc()
        self._refusals.note(f"check {error.outcome}", error)
        return _not_acknowledged(error)

    # people's tools

    async def _list(self, adapter: Adapter, request: web.BaseRequest) -> web.Response:
        access = self._open_access()
        user = await access.user(request.headers)
        namespaces = request.rel_url.query.getall("namespace", [""])
        if len(namespaces) != 1:
            raise EndpointError("name one namespace, or none for all", 400)
        await access.require(user, "list", adapter.resource, namespaces[0])
        return _envelope(200, success=True, domain=suspended(self._caches, adapter, namespaces[0]))

    async def _roll_back(self, adapter: Adapter, request: web.BaseRequest) -> web.Response:
        access = self._open_access()
        user = await access.user(request.headers)
        async with self._intake.body(request, _MAX_REQUEST) as body:
            wanted = _rollback_request(body)
        await access.require(user, "patch", adapter.resource, wanted.namespace, wanted.name)
        await access.require(user, "patch", CHANGE_WORKLOADS, wanted.namespace, subresource="status")
        requested = await self._rollbacks.request(adapter, wanted.namespace, wanted.name, wanted.version or "")
        logger.info(
            "rollback requested by a user of the callback port",
            extra={
                "user": one_line(user.username, 253),
                "namespace": requested.namespace,
                "workload": requested.name,
                "version": requested.version,
                "to": requested.rollback_to,
            },
        )
        return _envelope(200, success=True, domain=requested)

    def _open_access(self) -> Access:
        if self._access is None:
            raise EndpointError("the port is not open", 503)
        return self._access


def _rollback_request(body: bytes) -> _RollbackRequest:
    try:
        return msgspec.json.decode(body, type=_RollbackRequest)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        cause = one_line(str(error), 256)
        raise EndpointError(f'send {{"namespace":…,"name":…}} and optionally "version": {cause}', 400) from None


def _described(taken: Callback) -> dict[str, Any]:
    """A callback in the log."""
    return {
        "check": taken.check_type,
        "order": taken.order,
        "node": taken.node,
        "stage": taken.stage,
        "verdict": taken.verdict,
    }


def _acknowledged(message: str | None = None) -> web.Response:
    """The answer that the open API defines for callbacks."""
    return _json(200, {"success": True, "retry": False, "msg": message})


def _not_acknowledged(error: EndpointError) -> web.Response:
    return _json(error.code, {"success": False, "retry": error.code in _RETRIED, "msg": str(error)})


def _refused(error: EndpointError) -> web.Response:
    return _envelope(error.code, success=False, message=str(error))


def _envelope(status: int, *, success: bool, message: str | None = None, domain: Any = None) -> web.Response:
    """The envelope of the open API, with the HTTP status that matches."""
    code = _OK if success else _CODES.get(status, "901")
    answer = _json(status, {"success": success, "resultCode": code, "msg": message, "domain": domain})
    if status == 401:
        answer.headers[hdrs.WWW_AUTHENTICATE] = "Bearer"
    return answer


def _json(status: int, content: Any) -> web.Response:
    return web.Response(status=status, body=msgspec.json.encode(content), headers=_HEADERS)
