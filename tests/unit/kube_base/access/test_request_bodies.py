"""The bytes of requests."""

import json
from typing import Any

import pytest
from aiohttp import web
from pytest_aiohttp import AiohttpServer

from kube_base.access.client import Client
from kube_base.access.configuration import Configuration
from kube_base.resources import CONTROLLER_REVISIONS


@pytest.mark.parametrize(
    ("data", "sent"),
    [
        ({"z": 1, "a": {"c": [{"y": None, "x": True}], "b": 2}}, b'{"a":{"b":2,"c":[{"x":true,"y":null}]},"z":1}'),
        ({"command": "a && b <in >out"}, rb'{"command":"a \u0026\u0026 b \u003cin \u003eout"}'),
        ({"Z": 1, "a": 2, "\u00e9": 3, "\U0001f600": 4}, '{"Z":1,"a":2,"\u00e9":3,"\U0001f600":4}'.encode()),
        ({"separators": "\u2028\u2029"}, rb'{"separators":"\u2028\u2029"}'),
        ({"control": '\b\f\n\r\t\x00\x1f\x7f"\\/'}, b'{"control":"\\b\\f\\n\\r\\t\\u0000\\u001f\x7f\\"\\\\/"}'),
    ],
)
async def test_body_has_the_bytes_that_go_would_write(
    data: dict[str, Any], sent: bytes, aiohttp_server: AiohttpServer
) -> None:
    bodies = []

    async def create(request: web.Request) -> web.Response:
        bodies.append(await request.read())
        return web.json_response({})

    app = web.Application()
    app.router.add_post(CONTROLLER_REVISIONS.path("shop"), create)
    server = await aiohttp_server(app)
    async with Client(Configuration(host=str(server.make_url("/")).rstrip("/"))) as client:
        await client.create(CONTROLLER_REVISIONS, {"kind": "ControllerRevision", "data": data}, "shop")

    assert bodies == [b'{"data":%b,"kind":"ControllerRevision"}' % sent]
    assert json.loads(bodies[0])["data"] == data
