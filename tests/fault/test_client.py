"""The client with an API server that fails, sends wrong data, is slow or sends too much data. Time is simulated."""

import asyncio
import contextlib
import datetime
import email.utils
import time

import msgspec
import pytest
from aiohttp import web

from kube_base.access.client import Client
from kube_base.access.errors import (
    AlreadyExistsError,
    ApiError,
    BadRequestError,
    ConflictError,
    ForbiddenError,
    GoneError,
    InvalidError,
    NotFoundError,
    ServerError,
    TooManyRequestsError,
    UnauthorizedError,
    UnreachableError,
    UnreadableError,
)
from kube_base.resources import DEPLOYMENTS, PODS
from tests.support.projections import Deployment, Pod
from tests.support.stub_api import Answer, answer, is_watch, serving

pytestmark = pytest.mark.looptime

POD = {"metadata": {"name": "a", "namespace": "shop"}}


def anything(_request: web.Request) -> bool:
    return True


@pytest.mark.parametrize(
    ("code", "reason", "kind"),
    [
        (400, "BadRequest", BadRequestError),
        (401, "Unauthorized", UnauthorizedError),
        (403, "Forbidden", ForbiddenError),
        (404, "NotFound", NotFoundError),
        (409, "Conflict", ConflictError),
        (409, "AlreadyExists", AlreadyExistsError),
        (410, "Expired", GoneError),
        (422, "Invalid", InvalidError),
        (429, "TooManyRequests", TooManyRequestsError),
        (500, "InternalError", ServerError),
        (503, "", ServerError),
        (418, "", ApiError),
    ],
)
async def test_each_http_status_raises_its_own_error_class(code: int, reason: str, kind: type[ApiError]) -> None:
    async with serving() as (api, client):
        api.fault(anything, answer(code, reason, **{"Retry-After": "7"}))
        with pytest.raises(kind) as caught:
            await client.get(PODS, "a", "shop")
        assert type(caught.value) is kind
        assert (caught.value.code, caught.value.reason, caught.value.retry_after) == (code, reason, 7)
        prefix = "the API server refuses the credentials: " if code == 401 else ""
        assert str(caught.value) == f"{prefix}{code} {reason}".strip()


@pytest.mark.parametrize(("header", "seconds"), [("x", None), ("-1", None), ("9" * 400, 300), ("0", 0)])
async def test_an_invalid_retry_after_is_ignored_and_a_large_one_is_limited(header: str, seconds: float | None) -> None:
    async with serving() as (api, client):
        api.fault(anything, answer(429, **{"Retry-After": header}))
        with pytest.raises(TooManyRequestsError) as caught:
            await client.get(PODS, "a", "shop")
        assert caught.value.retry_after == seconds


async def test_retry_after_may_be_a_date() -> None:
    async with serving() as (api, client):
        for ahead, least, most in ((30, 25, 30), (-30, 0, 0), (7200, 300, 300)):
            date = email.utils.format_datetime(
                datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=ahead), usegmt=True
            )
            api.fault(anything, answer(503, **{"Retry-After": date}))
            with pytest.raises(ServerError) as caught:
                await client.get(PODS, "a", "shop")
            assert caught.value.retry_after is not None
            assert least <= caught.value.retry_after <= most


async def test_retry_after_seconds_in_a_status_object_are_used() -> None:
    async def busy(_request: web.Request) -> web.StreamResponse:
        return web.json_response({"kind": "Status", "details": {"retryAfterSeconds": 3}}, status=504)

    async with serving() as (api, client):
        api.fault(anything, busy)
        with pytest.raises(ServerError) as caught:
            await client.get(PODS, "a", "shop")
        assert caught.value.retry_after == 3


async def test_a_separate_client_has_its_own_request_slots_and_shares_the_error_counts() -> None:
    async def slowly(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(20)
        return await api.answer(request)

    async with (
        serving() as (api, _),
        Client(api.configuration, max_in_flight=1) as client,
        client.with_own_connections() as apart,
    ):
        await api.put(PODS, POD)
        api.fault(anything, slowly)
        waiting = asyncio.create_task(client.get(PODS, "a", "shop"))
        await api.wait_for_requests(anything, 1)
        async with asyncio.timeout(1):
            await apart.get(PODS, "a", "shop")
        api.fault(anything, answer(503))
        with pytest.raises(ServerError):
            await apart.get(PODS, "a", "shop")
        assert client.errors["5xx"] == 1
        await waiting


@pytest.mark.parametrize(
    "body", [b"<html>Bad Gateway</html>", b"", b"[1]", b'{"message":3,"details":[]}', b"[" * 100_000, b"\xff"]
)
async def test_an_error_response_without_a_status_object_raises_server_error(body: bytes) -> None:
    async def proxy(_request: web.Request) -> web.StreamResponse:
        return web.Response(status=502, body=body)

    async with serving() as (api, client):
        api.fault(anything, proxy)
        with pytest.raises(ServerError) as caught:
            await client.get(PODS, "a", "shop")
        assert caught.value.code == 502
        assert str(caught.value)


async def test_an_endless_error_body_is_truncated() -> None:
    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(status=500)
        await response.prepare(request)
        with contextlib.suppress(ConnectionError):
            while True:
                await response.write(b"x" * 65536)
        return response

    async with serving() as (api, client):
        api.fault(anything, endless)
        with pytest.raises(ServerError) as caught:
            await client.get(PODS, "a", "shop")
        assert len(str(caught.value)) <= 1024


@pytest.mark.parametrize(
    "body", [b"<html/>", b"", b"[]", b'{"metadata":[]}', b'{"metadata":{"name":1}}', b"[" * 100_000]
)
async def test_a_response_of_another_shape_raises_unreadable_error(body: bytes) -> None:
    async def strange(_request: web.Request) -> web.StreamResponse:
        return web.Response(body=body)

    async with serving() as (api, client):
        api.fault(anything, strange, times=2)
        with pytest.raises(UnreadableError) as found:
            await client.get(PODS, "a", "shop", as_=Pod)
        assert found.value.may_heal is not body.startswith((b"[", b"{"))  # a page of a proxy may be gone soon
        with pytest.raises(UnreadableError):
            await client.list(PODS, as_=Pod)


async def test_a_refused_connection_raises_unreachable_error_with_the_url() -> None:
    async with serving() as (api, client):
        await api.stop()
        with pytest.raises(UnreachableError, match=r"API server at http://127\.0\.0\.1:\d+: connection refused$"):
            await client.get(PODS, "a", "shop")


async def test_a_truncated_response_raises_unreachable_error() -> None:
    async def cut(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "1000"})
        await response.prepare(request)
        await response.write(b'{"metadata":')
        assert request.transport is not None
        request.transport.abort()
        return response

    async with serving() as (api, client):
        api.fault(anything, cut)
        with pytest.raises(UnreachableError):
            await client.get(PODS, "a", "shop")


async def test_a_request_without_a_response_times_out_after_30_seconds() -> None:
    async def never(_request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(3600)
        raise AssertionError

    async with serving() as (api, client):
        api.fault(anything, never)
        began = asyncio.get_running_loop().time()
        with pytest.raises(UnreachableError, match=r"to GET /api/v1/namespaces/shop/pods/a: timeout$"):
            await client.get(PODS, "a", "shop")
        assert asyncio.get_running_loop().time() - began == pytest.approx(30, abs=1)


async def test_a_redirect_is_not_followed() -> None:
    async with serving() as (api, client), serving() as (elsewhere, _):
        await elsewhere.put(PODS, POD)
        api.fault(anything, answer(307, Location=elsewhere.configuration.host + "/api/v1/namespaces/shop/pods/a"))
        with pytest.raises(ApiError):
            await client.get(PODS, "a", "shop")
        assert elsewhere.requests == []


async def test_a_list_with_null_items_is_empty() -> None:
    async with serving() as (api, client):
        found = await client.list(DEPLOYMENTS, as_=Deployment)
        assert found.items == []
        assert found.metadata.resource_version == "100"
        assert (await api.wait_for_requests(anything, 1))[0].query["limit"] == "2000"


async def test_proxy_variables_are_ignored_for_loopback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    async with serving() as (api, client):
        await api.put(PODS, POD)
        assert (await client.get(PODS, "a", "shop"))["metadata"]["name"] == "a"


async def test_watches_do_not_occupy_request_slots() -> None:
    async with serving() as (api, _), Client(api.configuration, max_in_flight=2) as client:
        await api.put(PODS, POD)

        async def watch() -> None:
            async for _ in client.watch(PODS, resource_version="101"):
                pass

        async with asyncio.TaskGroup() as group:
            watches = [group.create_task(watch()) for _ in range(5)]
            await api.wait_for_requests(is_watch, 5)
            await client.get(PODS, "a", "shop")
            for task in watches:
                task.cancel()


async def test_requests_in_flight_are_limited_and_waiting_for_a_slot_does_not_time_out() -> None:
    under_way = most = 0

    async def slowly(request: web.Request) -> web.StreamResponse:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(20)
        under_way -= 1
        return await api.answer(request)

    async with serving() as (api, _), Client(api.configuration, max_in_flight=3) as client:
        await api.put(PODS, POD)
        api.fault(anything, slowly, times=100)
        await asyncio.gather(*(client.get(PODS, "a", "shop") for _ in range(10)))
        assert most == 3


async def watched(client: Client, version: str = "100") -> list[str]:
    return [event.type async for event in client.watch(PODS, resource_version=version)]


def flood(data: bytes, chunk: int = 65536) -> Answer:
    async def send(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for start in range(0, len(data), chunk):
            await response.write(data[start : start + chunk])
        return response

    return send


async def test_a_huge_event_is_read_in_linear_time() -> None:
    took = []
    for size in (10 * 2**20, 40 * 2**20):
        obj = {"metadata": {"annotations": {"big": "x" * size}}}
        data = msgspec.json.encode({"type": "ADDED", "object": obj}) + b"\n"
        async with serving() as (api, client):
            api.fault(is_watch, flood(data, 4096))
            began = time.process_time()  # a busy machine takes as long as it likes
            assert await watched(client) == ["ADDED"]
            took.append(time.process_time() - began)
    assert took[1] < 10 * took[0] + 1, "the time must not grow quadratically with the size"


async def test_an_event_without_an_end_raises_unreadable_error() -> None:
    async with serving() as (api, client):
        api.fault(is_watch, flood(b"x" * (70 * 2**20)))
        with pytest.raises(UnreadableError, match="larger than 64 MiB"):
            await watched(client)


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 1000])
async def test_events_are_decoded_whatever_the_chunk_size(chunk: int) -> None:
    data = b"".join(b'{"type":"%s","object":{"x":"\xc3\xbc"}}\n' % kind for kind in (b"ADDED", b"MODIFIED", b"DELETED"))
    async with serving() as (api, client):
        api.fault(is_watch, flood(data + b"\n\n", chunk))
        assert await watched(client) == ["ADDED", "MODIFIED", "DELETED"]


async def test_a_watch_that_ends_within_an_event_raises_unreachable_error() -> None:
    async with serving() as (api, client):
        api.fault(is_watch, flood(b'{"type":"ADDED","object":{}}\n{"type":'))
        with pytest.raises(UnreachableError, match="middle of an event"):
            await watched(client)


async def test_delete_sends_uid_and_propagation_policy() -> None:
    async with serving() as (api, client):
        await api.put(PODS, POD)
        await client.delete(PODS, "a", "shop", uid="u1", propagation="Foreground")
        assert api.get(PODS, "a", "shop") is None
