"""Serves the open API over HTTP: reads a request, applies the scripted faults, writes the envelope."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import orjson
from aiohttp import web

from kube_sandbox.altershield_server import binding, chance, signature
from kube_sandbox.altershield_server.calls import Calls, Recorded
from kube_sandbox.altershield_server.checks import Checks, Clock, Sleep
from kube_sandbox.altershield_server.errors import BadRequestError, CrashError, RefusedError
from kube_sandbox.altershield_server.faults import Faults
from kube_sandbox.altershield_server.operations import Operations, Result
from kube_sandbox.altershield_server.requests import FIELDS
from kube_sandbox.altershield_server.script import Fault, FaultKind, Script
from kube_sandbox.altershield_server.validation import validate
from kube_sandbox.altershield_server.vocabulary import Call, Code

_BEFORE_ANSWER = 6.0  # seconds
_GONE_CHECK = 0.2  # seconds between checks whether a client is still there


class Api:
    """The handlers of all calls. `stopping` ends calls that hang."""

    def __init__(
        self,
        *,
        operations: Operations,
        checks: Checks,
        script: Callable[[], Script],
        platform: str,
        token: str,
        clock: Clock,
        sleep: Sleep,
    ) -> None:
        self.calls = Calls()
        self.stopping = asyncio.Event()
        self._operations = operations
        self._checks = checks
        self._script = script
        self._platform = platform
        self._token = token
        self._clock = clock
        self._sleep = sleep
        self._faults = Faults()

    def routes(self) -> list[web.RouteDef]:
        return [web.route("GET" if call == Call.HEARTBEAT else "POST", call.path, self._handler(call)) for call in Call]

    def _handler(self, call: Call) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def handle(request: web.Request) -> web.Response:
            recorded = self._recorded(call, request)
            if self._script().down:
                recorded.fault = "down"
                return _dropped(request)
            try:
                response = await self._answer(call, request, recorded)
            except web.HTTPException as error:
                recorded.status = error.status
                raise
            except BadRequestError as error:
                recorded.message = str(error)
                response = web.json_response({"status": 400, "error": "Bad Request"}, status=400)
            except CrashError as error:
                recorded.message = str(error)
                response = web.Response()
            recorded.status = None if _is_gone(request) else response.status
            return response

        return handle

    async def _answer(self, call: Call, request: web.Request, recorded: Recorded) -> web.Response:
        script = self._script()
        await self._sleep(chance.between(script.latency, script.seed, "latency", recorded.number))
        fault = None
        try:
            bound = await self._read(call, request, recorded)
            fault = self._fault(script, call, recorded)
            if fault is not None:
                recorded.fault = fault.kind
            if fault is None or fault.processed or fault.kind == FaultKind.SLOW:
                result = self._operations.handle(call, bound)
                await self._start_check(result)
            else:
                result = Result()
        except RefusedError as error:
            result = Result(success=False, code=error.code, message=error.message)
        return await self._respond(request, recorded, result, fault)

    async def _read(self, call: Call, request: web.Request, recorded: Recorded) -> binding.Body:
        """The bound request. The signature is checked after the body, as on the published server."""
        if call == Call.HEARTBEAT:
            recorded.keep(dict(request.query), len(request.query_string))
            self._check_signature(request.headers, signature.get_content(request.query))
            return {}
        text = signature.post_content(await request.read())
        body = binding.parse(text)
        recorded.keep(body, len(text))
        if request.content_type != "application/json":
            raise web.HTTPUnsupportedMediaType
        bound = binding.bind(FIELDS[call], body)
        validate(FIELDS[call], bound)
        self._check_signature(request.headers, text)
        return bound

    def _check_signature(self, headers: Mapping[str, str], content: str) -> None:
        signature.check(headers, content, platform=self._platform, token=self._token)

    def _fault(self, script: Script, call: Call, recorded: Recorded) -> Fault | None:
        node = self._operations.nodes.get(str(recorded.body.get("nodeId", "")))
        batch = recorded.batch if node is None else node.batch
        return self._faults.choose(script, call, recorded.order, batch)

    async def _start_check(self, result: Result) -> None:
        if result.starts is None:
            return
        task = self._checks.start(*result.starts)
        if self._script().callbacks.before_answer:
            await asyncio.wait((task,), timeout=_BEFORE_ANSWER)

    async def _respond(
        self, request: web.Request, recorded: Recorded, result: Result, fault: Fault | None
    ) -> web.Response:
        match fault.kind if fault else None:
            case FaultKind.HTTP if fault:
                return web.Response(status=fault.status, text="scripted")
            case FaultKind.EMPTY:
                return web.Response()
            case FaultKind.DROP:
                return _dropped(request)
            case FaultKind.HANG:
                await self._hang(request)
                return _dropped(request)
            case FaultKind.SLOW if fault:
                await self._sleep(fault.seconds)
            case FaultKind.REFUSE if fault:
                result = Result(success=False, code=fault.code, message=fault.message)
        recorded.code, recorded.message = result.code, result.message
        return _json(envelope(result))

    async def _hang(self, request: web.Request) -> None:
        while not self.stopping.is_set() and not _is_gone(request):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.stopping.wait(), _GONE_CHECK)

    def _recorded(self, call: Call, request: web.Request) -> Recorded:
        return self.calls.add(
            time=self._clock(),
            call=call,
            platform=request.headers.get(signature.PLATFORM_HEADER, ""),
            timestamp=request.headers.get(signature.TIMESTAMP_HEADER, ""),
            signed=signature.SIGN_HEADER in request.headers,
            body={},
        )


def envelope(result: Result) -> dict[str, Any]:
    """The body of every answer. Errors have HTTP status 200 too."""
    code: Code | None = result.code
    return {"success": result.success, "resultCode": code, "msg": result.message, "domain": result.domain}


def _json(body: Any) -> web.Response:
    return web.Response(body=orjson.dumps(body), content_type="application/json")


def _dropped(request: web.Request) -> web.Response:
    """Close the connection without an answer."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


def _is_gone(request: web.Request) -> bool:
    return request.transport is None or request.transport.is_closing()
