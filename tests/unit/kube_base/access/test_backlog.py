"""Which keys of an informer's handlers wait in the backlog: those of objects that have not changed."""

import asyncio

import pytest

from kube_base.access.informer import Informer
from kube_base.access.queue import WorkQueue, as_backlog
from kube_base.resources import PODS
from tests.support.polling import until
from tests.support.projections import Pod
from tests.support.stub_api import StubApi, answer, is_watch
from tests.unit.kube_base.access.informers import informing, pod, running

pytestmark = pytest.mark.looptime


def queueing(informer: Informer[Pod]) -> WorkQueue[str]:
    """A queue that gets the names of the pods that change."""
    queue: WorkQueue[str] = WorkQueue()

    def changed(old: Pod | None, new: Pod | None) -> None:
        queue.add((new or old).metadata.name)  # type: ignore[union-attr]

    informer.add_handler(changed)
    return queue


async def order(queue: WorkQueue[str]) -> list[str]:
    """The names in the order in which a worker gets them."""
    found = []
    while queue.depth:
        found.append(await queue.get())
        queue.done(found[-1])
    return found


async def change(api: StubApi, queue: WorkQueue[str], name: str) -> None:
    """Change a pod that has no key in the queue, and wait for its event."""
    depth = queue.depth
    await api.put(PODS, pod(name, changed="true"))
    await until(lambda: queue.depth == depth + 1)


@pytest.mark.parametrize("streaming", [False, True])
async def test_objects_of_the_first_list_wait_behind_a_change(streaming: bool) -> None:
    async with informing("a", "b", streaming_lists=streaming) as (api, informer):
        queue = queueing(informer)
        async with running(informer):
            await change(api, queue, "c")
            assert await order(queue) == ["c", "a", "b"]


async def test_objects_of_the_first_list_of_a_second_run_wait_behind_a_change() -> None:
    """The kind was deleted, and created again."""
    async with informing() as (api, informer):
        queue = queueing(informer)
        async with running(informer):
            pass
        for name in ("a", "b"):
            await api.put(PODS, pod(name))
        async with running(informer):
            await until(lambda: queue.depth == 2)
            await change(api, queue, "c")
            assert await order(queue) == ["c", "a", "b"]


async def test_objects_of_a_resync_wait_behind_a_change() -> None:
    async with informing("a", "b", resync=600) as (api, informer):
        queue = queueing(informer)
        async with running(informer):
            await order(queue)
            await asyncio.sleep(700)
            await change(api, queue, "c")
            assert await order(queue) == ["c", "a", "b"]


async def test_objects_of_a_namespace_that_is_listed_later_wait_behind_a_change() -> None:
    wanted: set[str] = set()
    async with informing("a", "b", keep=lambda each: each.metadata.namespace in wanted) as (api, informer):
        queue = queueing(informer)
        async with running(informer):
            wanted.add("shop")
            await informer.refill("shop")
            await change(api, queue, "c")
            assert await order(queue) == ["c", "a", "b"]


@pytest.mark.parametrize("streaming", [False, True])
async def test_list_after_a_gap_of_the_watch_queues_only_changes_as_live_keys(streaming: bool) -> None:
    async with informing("a", "b", "c", streaming_lists=streaming) as (api, informer):
        queue = queueing(informer)
        async with running(informer):
            await order(queue)
            await api.wait_for_requests(is_watch, 1)
            with as_backlog():
                queue.add("old")
            api.silent = True
            await api.put(PODS, pod("b", changed="true"))
            await api.remove(PODS, "c", "shop")
            api.fault(is_watch, answer(410, "Expired"))
            api.silent = False
            api.cut_watches()
            await until(lambda: informer.relists == 1 and queue.depth == 3)
            assert await order(queue) == ["b", "c", "old"]
