"""The work queue."""

import asyncio

import pytest

from kube_sandbox.client.queue import WorkQueue


async def test_key_is_queued_once_and_handled_by_one_worker() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    queue.add("a")
    assert await queue.get() == "a"
    queue.add("a")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.02):
            await queue.get()
    queue.done("a")
    assert await queue.get() == "a"


async def test_shortest_of_several_delays_applies() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add_after("a", 60)
    queue.add_after("a", 0.01)
    queue.add_after("a", 60)
    async with asyncio.timeout(5):
        assert await queue.get() == "a"


async def test_delay_doubles_until_forget() -> None:
    queue: WorkQueue[str] = WorkQueue()
    loop = asyncio.get_running_loop()
    waits = []
    for failures in range(5):
        if failures == 4:
            queue.forget("a")
        began = loop.time()
        queue.add_rate_limited("a")
        await queue.get()
        queue.done("a")
        waits.append(loop.time() - began)
    assert waits[3] >= 0.04 > waits[4]
