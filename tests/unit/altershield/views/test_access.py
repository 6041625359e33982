"""What this user may do is asked once, all at the same time."""

import asyncio
from typing import Any

from aiohttp import web

from altershield.views.access import Access, allowed
from kube_base.resources import PODS, SELF_SUBJECT_ACCESS_REVIEWS
from tests.support.stub_api import serving, status

DELETE = Access("delete", PODS, "shop", "web-1")
LOGS = Access("get", PODS, "shop", "web-1", "log")
LIST = Access("list", PODS, "shop")


async def test_each_access_is_asked_once_and_none_waits_for_another() -> None:
    asked: list[Any] = []
    together = asyncio.Barrier(3)

    async def answer(request: web.Request) -> web.StreamResponse:
        attributes = (await request.json())["spec"]["resourceAttributes"]
        asked.append(attributes)
        await together.wait()
        return web.json_response({"status": {"allowed": attributes["verb"] == "delete"}}, status=201)

    async with serving() as (api, client):
        api.fault(lambda request: request.path == SELF_SUBJECT_ACCESS_REVIEWS.path(), answer, times=3)
        may = await allowed(client, [DELETE, LOGS, DELETE, LIST, LOGS])
    assert may == {DELETE: True, LOGS: False, LIST: False}
    assert len(asked) == 3
    (logs,) = [each for each in asked if each["subresource"]]
    assert logs == {
        "verb": "get", "group": "", "version": "v1", "resource": "pods", "subresource": "log", "namespace": "shop",
        "name": "web-1",
    }  # fmt: skip


async def test_access_that_the_api_server_does_not_answer_is_not_known() -> None:
    async def refused(request: web.Request) -> web.StreamResponse:
        return status(403, "Forbidden")(request)

    async with serving() as (api, client):
        api.fault(lambda request: True, refused, times=10)
        assert await allowed(client, [DELETE]) == {}
