"""How an informer handles lists and watches that end, hang or are refused, and its logs. Time is simulated."""

import asyncio
import contextlib
import logging

import pytest
from aiohttp import web

from kube_base.access import client as client_module
from kube_base.access.informer import Informer
from kube_base.resources import PODS
from tests.support.polling import until
from tests.support.projections import Pod
from tests.support.stub_api import (
    answer,
    end_of_list,
    is_list,
    is_paged_list,
    is_streamed_list,
    is_watch,
    line,
    serving,
)
from tests.unit.kube_base.access.informers import informing, names, pod, running, started

pytestmark = pytest.mark.looptime

TROUBLE, OVER = "cannot list or watch, retrying", "listing and watching again"


def warnings(caplog: pytest.LogCaptureFixture, cause: str = "") -> int:
    """The number of warnings with this cause; of all without it."""
    reported = [each for each in caplog.records if (each.levelno, each.message) == (logging.WARNING, TROUBLE)]
    return sum(cause in ("", vars(each)["cause"]) for each in reported)


async def test_informer_that_runs_again_lists_again() -> None:
    async with informing("a") as (api, informer):
        async with running(informer):
            await asyncio.sleep(30)
        await asyncio.sleep(60)
        assert informer.age == 0
        await api.remove(PODS, "a", "shop")

        async def slow(request: web.Request) -> web.StreamResponse:
            await asyncio.sleep(10)
            return await api.answer(request)

        api.fault(is_list, slow)
        async with started(informer):
            await asyncio.sleep(5)
            assert not informer._reflector.watching.is_set()
            assert informer.age == pytest.approx(5, abs=1)
            await asyncio.sleep(10)
            assert names(informer) == []
            assert informer.relists == 1


@pytest.mark.parametrize("streaming", [False, True])
async def test_client_lists_two_resources_at_a_time_and_watches_take_no_turn(streaming: bool) -> None:
    """Each complete list needs memory for the keys of all objects."""
    async with serving(streaming_lists=streaming) as (api, client), contextlib.AsyncExitStack() as stack:

        async def slow(request: web.Request) -> web.StreamResponse:
            await asyncio.sleep(10)
            return await api.answer(request)

        api.fault(is_list, slow, times=6)
        informers = [Informer(client, PODS, Pod, namespace=f"shop-{number}") for number in range(6)]
        for informer in informers:
            await stack.enter_async_context(started(informer))
        for seconds, complete in ((5, 0), (10, 2), (10, 4), (10, 6)):
            await asyncio.sleep(seconds)
            assert sum(each.synced for each in informers) == complete


async def test_refill_waits_for_the_next_complete_list() -> None:
    async with informing() as (api, informer), running(informer):
        await api.wait_for_requests(is_watch, 1)
        api.fault(is_watch, answer(410, "Expired", **{"Retry-After": "20"}))
        api.cut_watches()
        await asyncio.sleep(5)
        await api.put(PODS, pod("a"))
        await informer.refill("shop")
        assert names(informer) == ["a"]
        assert {request.path for request in api.requests} == {"/api/v1/pods"}


@pytest.mark.parametrize("code", [422, 400])
async def test_server_that_refuses_streamed_lists_causes_no_warning(
    code: int, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(streaming_lists=True) as (api, client):
        api.fault(is_streamed_list, answer(code, "Invalid"))
        async with running(Informer(client, PODS, Pod)):
            assert warnings(caplog) == 0


async def test_watch_without_a_response_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    async def never(_request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(3600)
        raise AssertionError

    async with serving() as (api, client), running(Informer(client, PODS, Pod)):
        await api.wait_for_requests(is_watch, 1)
        await asyncio.sleep(10)
        await api.put(PODS, pod("a"))
        await asyncio.sleep(1)
        api.fault(is_watch, never, times=100)
        api.cut_watches()
        await asyncio.sleep(60)
        assert warnings(caplog) == 0  # the interrupted watch had worked before
        await asyncio.sleep(60)
        assert warnings(caplog) == 1


async def test_outage_and_its_end_are_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with serving() as (api, client), running(Informer(client, PODS, Pod)):
        for count in (1, 2):
            await api.wait_for_requests(is_watch, count)
            api.fault(is_watch, answer(500), times=5)
            api.cut_watches()
            await asyncio.sleep(120)
            assert warnings(caplog, "500") == count
            assert caplog.messages.count(OVER) == count


async def test_each_page_of_a_list_resets_the_age(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "_PAGE", 1)

    async def slow(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(20)
        return await api.list_page(request)

    async with informing("a", "b", "c") as (api, informer):
        api.fault(is_paged_list, slow, times=3)
        async with started(informer):
            await asyncio.sleep(55)
            assert not informer.synced
            assert informer.age < 20


def _item(number: int) -> bytes:
    metadata = {"name": f"p{number}", "namespace": "shop", "resourceVersion": str(101 + number)}
    return line("ADDED", {"metadata": metadata})


async def test_streamed_list_may_take_long_while_data_comes() -> None:
    async with informing(streaming_lists=True) as (api, informer):

        async def bit_by_bit(request: web.Request) -> web.StreamResponse:
            response = web.StreamResponse()
            await response.prepare(request)
            for number in range(6):
                await response.write(_item(number))
                await asyncio.sleep(10)
            await response.write(end_of_list(110))
            await asyncio.sleep(600)
            return response

        api.fault(is_streamed_list, bit_by_bit)
        async with started(informer):
            await asyncio.sleep(65)
            assert informer.synced
            assert len(informer) == 6
            assert sum(map(is_paged_list, api.requests)) == 0


async def test_refused_watch_does_not_end_streamed_lists(caplog: pytest.LogCaptureFixture) -> None:
    async with informing(streaming_lists=True) as (api, informer), running(informer):
        await api.wait_for_requests(is_watch, 1)
        api.fault(lambda request: is_watch(request) and not is_streamed_list(request), answer(422, "Invalid"))
        api.cut_watches()
        await asyncio.sleep(30)
        assert warnings(caplog, "422 Invalid") == 1
        api.fault(is_watch, answer(410, "Expired"))
        api.cut_watches()
        await until(lambda: informer.relists == 1)
        assert sum(map(is_paged_list, api.requests)) == 0


async def test_watch_without_events_after_a_streamed_list_continues() -> None:
    async with serving(streaming_lists=True) as (api, client), running(Informer(client, PODS, Pod)):
        await asyncio.sleep(80)
        assert len(api.requests) == 1


async def test_complete_list_is_delayed_by_retry_after() -> None:
    async with informing() as (api, informer), running(informer):
        await api.wait_for_requests(is_watch, 1)
        await asyncio.sleep(10)
        await api.put(PODS, pod("a"))
        expired = {"kind": "Status", "code": 410, "reason": "Expired", "details": {"retryAfterSeconds": 20}}
        await api.send_raw(line("ERROR", expired).decode())
        await asyncio.sleep(15)
        assert informer.relists == 0
        await until(lambda: informer.relists == 1, seconds=20)
