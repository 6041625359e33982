"""Reviews that the API server answers in unusual ways: none of them lets anybody in."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web
from multidict import CIMultiDict, CIMultiDictProxy

from kube_base.resources import DEPLOYMENTS
from reconciler.endpoints import access
from reconciler.endpoints.access import Access, User
from reconciler.endpoints.endpoint_errors import EndpointError
from tests.support.polling import until
from tests.support.stub_api import StubApi, answer, serving

HEADERS = CIMultiDictProxy(CIMultiDict({"Authorization": "Bearer abc"}))
JANE = User("jane", "1", ["devs"], {"scopes": ["a"]})


@pytest.fixture
async def asked() -> AsyncIterator[tuple[StubApi, Access]]:
    async with serving() as (api, client):
        made = Access(client)
        yield api, made
        await made.close()


def reply(api: StubApi, content: Any, seen: list[Any] | None = None) -> None:
    """Answer the next review with this content, and keep the review in `seen`."""

    async def give(request: web.Request) -> web.StreamResponse:
        if seen is not None:
            seen.append(await request.json())
        return web.json_response(content, status=201)

    api.fault(lambda request: True, give)


@pytest.mark.parametrize(
    ("status", "code"),
    [
        ({"authenticated": False, "user": {"username": "jane"}}, 401),
        ({"user": {"username": "jane"}}, 401),
        ({"authenticated": True, "user": {}}, 401),
        ({"authenticated": True}, 401),
        ({}, 401),
        ({"authenticated": "true", "user": {"username": "jane"}}, 503),
        ({"authenticated": True, "user": {"username": 5}}, 503),
    ],
)
async def test_token_review_that_names_no_authenticated_user_is_refused(
    asked: tuple[StubApi, Access], status: Any, code: int
) -> None:
    api, access = asked
    reply(api, {"status": status})
    with pytest.raises(EndpointError) as caught:
        await access.user(HEADERS)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("status", "code"),
    [({"allowed": True, "denied": True}, 403), ({"allowed": False}, 403), ({}, 403), ({"allowed": "yes"}, 503)],
)
async def test_access_review_that_does_not_clearly_allow_is_refused(
    asked: tuple[StubApi, Access], status: Any, code: int
) -> None:
    api, access = asked
    reply(api, {"status": status})
    with pytest.raises(EndpointError) as caught:
        await access.require(JANE, "list", DEPLOYMENTS, "shop")
    assert caught.value.code == code


async def test_all_that_the_token_review_says_of_the_user_is_passed_on(asked: tuple[StubApi, Access]) -> None:
    api, access = asked
    user = {"username": "jane", "uid": "1", "groups": ["devs"], "extra": {"scopes": ["a"]}}
    seen: list[Any] = []
    reply(api, {"status": {"authenticated": True, "user": user}}, seen)
    reply(api, {"status": {"allowed": True}}, seen)
    found = await access.user(HEADERS)
    assert found == JANE
    await access.require(found, "patch", DEPLOYMENTS, "shop", "web")
    assert seen[0]["spec"] == {"token": "abc"}
    assert seen[1]["spec"] == {
        "user": "jane",
        "uid": "1",
        "groups": ["devs"],
        "extra": {"scopes": ["a"]},
        "resourceAttributes": {
            "verb": "patch", "group": "apps", "version": "v1", "resource": "deployments", "namespace": "shop",
            "name": "web",
        },
    }  # fmt: skip


@pytest.mark.parametrize("code", [401, 403, 404, 429, 500])
async def test_error_of_the_api_server_is_refused(asked: tuple[StubApi, Access], code: int) -> None:
    api, access = asked
    api.fault(lambda request: True, answer(code), times=2)
    with pytest.raises(EndpointError) as caught:
        await access.user(HEADERS)
    assert caught.value.code == 503
    with pytest.raises(EndpointError) as caught:
        await access.require(JANE, "list", DEPLOYMENTS, "shop")
    assert caught.value.code == 503


async def test_api_server_that_does_not_answer_holds_up_a_bounded_number_of_callers(
    asked: tuple[StubApi, Access], monkeypatch: pytest.MonkeyPatch
) -> None:
    api, own = asked
    monkeypatch.setattr(access, "_SECONDS", 2.0)

    async def silent(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(60)
        raise AssertionError

    async def as_many_as_allowed() -> bool:
        return len(api.requests) == 4

    api.fault(lambda request: True, silent, times=1000)
    callers = [asyncio.create_task(own.user(HEADERS)) for _ in range(50)]
    await until(as_many_as_allowed, "four requests")
    await asyncio.sleep(0.1)
    assert len(api.requests) == 4
    errors = await asyncio.gather(*callers, return_exceptions=True)
    busy = [each for each in errors if "busy" in str(each)]
    assert len(busy) == 50 - 32
    assert {each.code for each in errors if isinstance(each, EndpointError)} == {503}
