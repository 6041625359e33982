"""The paths below `/sandbox`, which read and replace the script and list the recorded calls and callbacks. They need no
signature, and work while the API is down."""

import dataclasses
from collections.abc import Iterable
from typing import Any, Protocol

import msgspec
import orjson
from aiohttp import web

from kube_sandbox.altershield_server.callbacks import Callback
from kube_sandbox.altershield_server.calls import Calls
from kube_sandbox.altershield_server.nodes import Node
from kube_sandbox.altershield_server.script import Script

_PAGE = 1000


class Controlled(Protocol):
    """The server, as this module needs it."""

    script: Script

    @property
    def calls(self) -> Calls: ...
    @property
    def callbacks(self) -> Iterable[Callback]: ...
    @property
    def nodes(self) -> dict[str, Node]: ...


class Control:
    def __init__(self, server: Controlled) -> None:
        self._server = server

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/sandbox/script", self._get_script),
            web.put("/sandbox/script", self._put_script),
            web.get("/sandbox/calls", self._get_calls),
            web.delete("/sandbox/calls", self._delete_calls),
            web.get("/sandbox/callbacks", self._get_callbacks),
            web.get("/sandbox/nodes", self._get_nodes),
        ]

    async def _get_script(self, _: web.Request) -> web.Response:
        return web.Response(body=msgspec.json.encode(self._server.script), content_type="application/json")

    async def _put_script(self, request: web.Request) -> web.Response:
        """Replace the whole script; members that are missing get their defaults."""
        try:
            self._server.script = msgspec.json.decode(await request.read(), type=Script)
        except msgspec.DecodeError as error:
            return _json({"error": str(error)}, status=400)
        return await self._get_script(request)

    async def _get_calls(self, request: web.Request) -> web.Response:
        """The calls after the number `after`, at most 1,000; optionally only those with the name `call`."""
        name = request.query.get("call")
        return _page(request, (each for each in self._server.calls if name in (None, each.call)))

    async def _delete_calls(self, _: web.Request) -> web.Response:
        self._server.calls.clear()
        return _json({"items": []})

    async def _get_callbacks(self, _: web.Request) -> web.Response:
        return _json({"items": list(self._server.callbacks)[-_PAGE:]})

    async def _get_nodes(self, _: web.Request) -> web.Response:
        return _json({"items": [_summary(node) for node in list(self._server.nodes.values())[-_PAGE:]]})


def _page(request: web.Request, items: Iterable[Any]) -> web.Response:
    try:
        after = int(request.query.get("after", "0"))
    except ValueError:
        return _json({"error": "`after` is the number of a call"}, status=400)
    return _json({"items": [each for each in items if each.number > after][:_PAGE]})


def _summary(node: Node) -> dict[str, Any]:
    checks = {
        stage.lower(): {
            "passed": check.passed,
            "rules": [{**dataclasses.asdict(each), "rule": each.rule.name} for each in check.executions],
        }
        for stage, check in node.checks.items()
    }
    return {
        "id": node.id,
        "kind": node.kind,
        "order": node.order.id,
        "batch": node.batch,
        "state": node.state,
        "emergency": node.emergency,
        **checks,
    }


def _json(body: Any, *, status: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(body), status=status, content_type="application/json")
