"""Informers do not block the event loop, however many objects arrive at once."""

import asyncio
import gc
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from aiohttp import web

from kube_base.access.informer import Informer
from kube_base.access.time_slices import time_slices
from kube_base.resources import PODS
from tests.support.polling import HANG, until
from tests.support.projections import Pod
from tests.support.stub_api import answer, end_of_list, is_list, is_paged_list, is_watch, serving
from tests.unit.kube_base.access.informers import running, started

_MOST = 0.1  # seconds
_COUNT = 50_000


@pytest.fixture(autouse=True)
def no_garbage_collection() -> Iterator[None]:
    """A garbage collection of the test's own objects would distort a measurement."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@asynccontextmanager
async def lag() -> AsyncIterator[list[float]]:
    """CPU seconds of the loop's thread until another task runs, each time. Other processes do not count."""
    waited: list[float] = []

    async def tick() -> None:
        while True:
            began = time.thread_time()
            await asyncio.sleep(0.001)
            waited.append(time.thread_time() - began)

    ticking = asyncio.create_task(tick())
    await asyncio.sleep(0.01)
    waited.clear()
    try:
        yield waited
    finally:
        ticking.cancel()


def manifest(number: int, version: int) -> dict[str, Any]:
    namespace = "shop" if number % 2 else "depot"
    return {"metadata": {"name": f"p{number}", "namespace": namespace, "resourceVersion": str(version)}}


def event(type_: str, number: int, version: int) -> bytes:
    return msgspec.json.encode({"type": type_, "object": manifest(number, version)}) + b"\n"


async def sent(request: web.Request, data: bytes, end: asyncio.Event) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    for start in range(0, len(data), 2**20):
        await response.write(data[start : start + 2**20])
    await end.wait()
    return response


async def test_no_work_of_an_informer_blocks_the_loop_for_a_tenth_of_a_second() -> None:
    streamed = b"".join(event("ADDED", number, number) for number in range(1, _COUNT + 1)) + end_of_list(_COUNT)
    burst = b"".join(event("MODIFIED", number, _COUNT + number) for number in range(1, _COUNT + 1))
    metadata = {"resourceVersion": str(3 * _COUNT)}
    shrunk = msgspec.json.encode({"metadata": metadata, "items": []})
    refilled = msgspec.json.encode(
        {"metadata": metadata, "items": [manifest(number, 5) for number in range(1, _COUNT, 2)]}
    )
    handled = 0
    end = asyncio.Event()
    wanted = {"shop", "depot"}

    def note(_old: object, _new: object) -> None:
        nonlocal handled
        handled += 1

    async def stream(request: web.Request) -> web.StreamResponse:
        return await sent(request, streamed + burst, end)

    async def page(_request: web.Request) -> web.StreamResponse:
        return web.Response(body=refilled)

    async def empty(_request: web.Request) -> web.StreamResponse:
        return web.Response(body=shrunk)

    async with serving(streaming_lists=True) as (api, client):
        api.fault(is_list, stream)
        informer = Informer(client, PODS, Pod, keep=lambda obj: obj.metadata.namespace in wanted, resync=1)
        informer.add_handler(note)
        informer.add_index("namespace", lambda obj: [obj.metadata.namespace])
        async with lag() as waited, running(informer):
            assert len(informer) == _COUNT
            await until(lambda: handled >= 3 * _COUNT)  # the list, the burst and a resync
            wanted.remove("shop")
            await informer.evict("shop")
            assert len(informer) == _COUNT // 2
            wanted.add("shop")
            api.fault(is_paged_list, page)
            await informer.refill("shop")
            assert len(informer) == _COUNT
            api.fault(is_watch, answer(410, "Expired"))
            api.fault(is_list, answer(422, "Invalid"))
            api.fault(is_list, empty)
            end.set()
            await until(lambda: len(informer) == 0)
        assert max(waited) < _MOST


async def test_ten_caches_that_fill_at_once_block_the_loop_no_longer_than_one() -> None:
    count = _COUNT // 10
    streamed = b"".join(event("ADDED", number, number) for number in range(1, count + 1)) + end_of_list(count)

    async def stream(request: web.Request) -> web.StreamResponse:
        return await sent(request, streamed, asyncio.Event())

    async with serving(streaming_lists=True) as (api, client):
        api.fault(is_list, stream, times=10)
        informers = [Informer(client, PODS, Pod) for _ in range(10)]
        async with lag() as waited, asyncio.TaskGroup() as group:
            tasks = [group.create_task(informer.run()) for informer in informers]
            for informer in informers:
                await informer.wait_synced()
            assert {len(informer) for informer in informers} == {count}
            for task in tasks:
                task.cancel()
        assert max(waited) < _MOST


async def test_time_slices_are_shared_fairly_with_other_tasks() -> None:
    done = [0] * 5

    async def work(number: int) -> None:
        slices = time_slices()
        while True:
            done[number] += 1
            time.sleep(0.002)  # noqa: ASYNC251  (a step of work)
            await slices.yield_if_over()

    async def look() -> None:
        while True:
            looks.append(sum(done))
            await asyncio.sleep(0)

    looks: list[int] = []
    tasks = [asyncio.create_task(each) for each in (*(work(number) for number in range(5)), look())]
    await asyncio.sleep(0.5)
    for task in tasks:
        task.cancel()
    # in steps instead of seconds, which depend on the load of the machine
    assert max(after - before for before, after in pairwise(looks)) < 50
    assert min(done) > max(done) / 3


async def test_task_that_is_cancelled_while_it_waits_for_a_slice_does_not_block_others() -> None:
    finished = asyncio.Event()

    async def work(steps: int) -> None:
        for _ in range(steps):
            time.sleep(0.006)  # noqa: ASYNC251  (a step of work)
            await time_slices().yield_if_over()
        finished.set()

    first = [asyncio.create_task(work(1000)) for _ in range(3)]
    last = asyncio.create_task(work(10))
    await asyncio.sleep(0.05)
    for task in first:
        task.cancel()
    async with asyncio.timeout(HANG):
        await finished.wait()
    await last


async def test_stopped_informer_leaves_no_task_waiting_for_a_slice() -> None:
    async with serving() as (_, client), started(Informer(client, PODS, Pod)):
        await time_slices().yield_if_over()
    assert not time_slices()._waiting
