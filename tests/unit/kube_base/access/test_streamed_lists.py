"""Streamed lists: their end, interruptions, and the fallback to lists in pages."""

import asyncio

import pytest
from aiohttp import web

from kube_base.access.informer import Informer
from kube_base.resources import PODS
from tests.support.polling import until
from tests.support.projections import Pod
from tests.support.stub_api import (
    Answer,
    Place,
    StubApi,
    answer,
    end_of_list,
    is_paged_list,
    is_streamed_list,
    is_watch,
    line,
    serving,
    status,
)
from tests.unit.kube_base.access.informers import informing, names, pod, running, started

pytestmark = pytest.mark.looptime


def sending(api: StubApi, *lines: bytes, then: float = 0, cut: bool = False) -> Answer:
    """A watch that sends these lines and ends `then` seconds later."""

    async def send(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"".join(lines))
        await asyncio.sleep(then)
        if cut and request.transport is not None:
            request.transport.abort()
        return response

    return send


def added(name: str, version: int) -> bytes:
    return line("ADDED", {"metadata": {"name": name, "namespace": "shop", "resourceVersion": str(version)}})


async def test_streamed_list_and_watch_are_one_request() -> None:
    async with serving(streaming_lists=True) as (api, client):
        await api.put(PODS, pod("a"))
        async with running(Informer(client, PODS, Pod)):
            pass
        informer = Informer(client, PODS, Pod)
        async with running(informer):
            assert names(informer) == ["a"]
            await api.put(PODS, pod("b"))
            await api.remove(PODS, "a", "shop")
            await until(lambda: names(informer) == ["b"])
            assert informer.relists == 0
        assert len(api.requests) == 2
        query = api.requests[1].query
        assert (query["sendInitialEvents"], query["resourceVersionMatch"]) == ("true", "NotOlderThan")
        assert query["allowWatchBookmarks"] == "true"
        assert "resourceVersion" not in query  # the latest state


async def test_streamed_list_is_not_complete_before_its_end_is_marked() -> None:
    async with informing("a", streaming_lists=True) as (api, informer):
        api.fault(is_watch, sending(api, added("a", 101), then=20))
        async with started(informer):
            await asyncio.sleep(15)
            assert names(informer) == ["a"]
            assert not informer.synced
            await asyncio.sleep(10)
            assert informer.synced


@pytest.mark.parametrize("cut", [False, True])
async def test_incomplete_streamed_list_deletes_nothing_and_is_read_again(cut: bool) -> None:
    async with informing("a", "b", "c", streaming_lists=True) as (api, informer):
        handled: list[str] = []
        async with running(informer):
            informer.add_handler(lambda old, new: handled.append((new or old).metadata.name))
            await api.stop()
            await api.remove(PODS, "b", "shop")
            await api.put(PODS, pod("d"))
            api.forget_history()
            api.fault(is_streamed_list, sending(api, added("a", 101), added("d", 105), then=3, cut=cut))
            await api.start()
            await until(lambda: "d" in names(informer))
            assert names(informer) == ["a", "b", "c", "d"]  # b was deleted, but no complete list shows it yet
            assert handled == ["d"]
            await until(lambda: names(informer) == ["a", "c", "d"])
            assert handled == ["d", "b"]
            assert sum(map(is_paged_list, api.requests)) == 0


async def test_changes_during_a_streamed_list_are_applied() -> None:
    async with informing("a", streaming_lists=True) as (api, informer), running(informer):
        gone = line("DELETED", {"metadata": {"name": "a", "namespace": "shop", "resourceVersion": "205"}})
        changed = line(
            "MODIFIED",
            {"metadata": {"name": "b", "namespace": "shop", "resourceVersion": "206", "labels": {"app": "x"}}},
        )
        api.forget_history()
        api.version = 206
        api.fault(is_watch, answer(410, "Expired"))
        lines = (added("b", 150), added("a", 101), gone, changed, end_of_list(206))
        api.fault(is_streamed_list, sending(api, *lines, then=30))
        api.cut_watches()
        await until(lambda: names(informer) == ["b"])
        found = informer.get("shop", "b")
        assert found is not None
        assert found.metadata.labels == {"app": "x"}


async def test_response_of_our_own_write_during_a_streamed_list_stays() -> None:
    async with serving(streaming_lists=True) as (api, client):
        informer = Informer(client, PODS, Pod)
        async with running(informer):
            await api.wait_for_requests(is_watch, 1)

            async def write_meanwhile(request: web.Request) -> web.StreamResponse:
                response = web.StreamResponse()
                await response.prepare(request)
                before = end_of_list(api.version)
                informer.observe(await client.create(PODS, pod("ours"), "shop", as_=Pod))
                await response.write(before)
                await asyncio.sleep(1)
                await response.write(added("ours", api.version))
                await asyncio.sleep(60)
                return response

            api.fault(is_watch, answer(410, "Expired"))
            api.fault(is_streamed_list, write_meanwhile)
            api.cut_watches()
            handled: list[object] = []
            informer.add_handler(
                lambda old, new: handled.append((old and old.metadata.name, new and new.metadata.name))
            )
            await until(lambda: informer.relists == 1)
            await asyncio.sleep(10)
            assert names(informer) == ["ours"]
            assert handled == [(None, "ours")]


async def test_object_of_our_own_write_that_is_deleted_before_the_list_ends_is_removed() -> None:
    async with serving(streaming_lists=True) as (api, client):
        informer = Informer(client, PODS, Pod)
        async with running(informer):
            await api.wait_for_requests(is_watch, 1)

            async def answer_late(request: web.Request) -> web.StreamResponse:
                response = web.StreamResponse()
                await response.prepare(request)
                created = await client.create(PODS, pod("ours"), "shop", as_=Pod)
                await api.remove(PODS, "ours", "shop")
                informer.observe(created)
                await api.send_list(response, Place.of(request.path))
                await asyncio.sleep(60)
                return response

            api.fault(is_watch, answer(410, "Expired"))
            api.fault(is_streamed_list, answer_late)
            api.cut_watches()
            await until(lambda: informer.relists == 1)
            await asyncio.sleep(10)
            assert names(informer) == []


@pytest.mark.parametrize("code", [422, 400])
async def test_server_that_refuses_streamed_lists_is_asked_once(code: int) -> None:
    async with informing("a", streaming_lists=True) as (api, informer):
        api.fault(is_streamed_list, answer(code, "Invalid"), times=10)
        began = asyncio.get_running_loop().time()
        async with running(informer):
            assert asyncio.get_running_loop().time() - began < 1
            await api.wait_for_requests(is_watch, 2)
            api.forget_history()
            await api.send_raw(line("ERROR", {"code": 410, "reason": "Expired"}).decode())
            await until(lambda: informer.relists == 1)
            assert sum(map(is_streamed_list, api.requests)) == 1
            assert sum(map(is_paged_list, api.requests)) == 2


@pytest.mark.parametrize("bookmark", [False, True])
async def test_server_that_ignores_the_request_for_a_streamed_list_gets_lists_in_pages(bookmark: bool) -> None:
    """Old servers send the objects of a possibly old cache, and do not mark the end."""
    async with informing("a", streaming_lists=True) as (api, informer):
        lines = [added("a", 101), added("long-gone", 99)]
        if bookmark:
            lines.append(line("BOOKMARK", {"metadata": {"resourceVersion": "101"}}))
        api.fault(is_streamed_list, sending(api, *lines, then=600))
        async with started(informer):
            await asyncio.sleep(2 if bookmark else 32)
            assert informer.synced
            assert names(informer) == ["a"]
            assert sum(map(is_paged_list, api.requests)) == 1


async def test_empty_streamed_list_without_an_end_is_read_in_pages() -> None:
    async with informing(streaming_lists=True) as (api, informer):
        api.fault(is_streamed_list, sending(api, then=600))
        async with started(informer):
            await asyncio.sleep(62)
            assert informer.synced


async def test_server_that_does_not_respond_is_asked_for_a_streamed_list_again() -> None:
    async def never(_request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(3600)
        raise AssertionError

    async with informing(streaming_lists=True) as (api, informer):
        api.fault(is_streamed_list, never)
        async with running(informer):
            assert sum(map(is_streamed_list, api.requests)) == 2
            assert sum(map(is_paged_list, api.requests)) == 0


async def test_after_three_incomplete_streamed_lists_one_list_is_read_in_pages() -> None:
    async with informing("a", streaming_lists=True) as (api, informer):
        api.fault(is_streamed_list, sending(api, added("a", 101), cut=True), times=3)
        async with running(informer):
            assert sum(map(is_paged_list, api.requests)) == 1
            await api.wait_for_requests(is_watch, 4)
            await api.send_raw(line("ERROR", {"code": 410, "reason": "Expired"}).decode())
            await until(lambda: sum(map(is_streamed_list, api.requests)) == 4)


async def test_lists_are_streamed_again_after_an_outage() -> None:
    async with informing(streaming_lists=True) as (api, informer):
        await api.stop()
        async with started(informer):
            await asyncio.sleep(120)
            await api.start()
            await asyncio.wait_for(informer.wait_synced(), 15)
            assert sum(map(is_paged_list, api.requests)) == 0


async def test_retry_after_is_honoured() -> None:
    async with informing(streaming_lists=True) as (api, informer):

        async def busy(request: web.Request) -> web.StreamResponse:
            return status(429, "TooManyRequests", **{"Retry-After": "20"})(request)

        api.fault(is_streamed_list, busy)
        async with started(informer):
            await asyncio.sleep(19)
            assert len(api.requests) == 1
            await asyncio.wait_for(informer.wait_synced(), 10)
            assert sum(map(is_streamed_list, api.requests)) == 2
