"""Releases end correctly although the API server fails, refuses writes or is slow, and although leaders are lost."""

import asyncio
import collections
import zlib
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from aiohttp import web

from tests.fault.reconciler_cluster import IDENTITY, GoOn, is_write, running_cluster
from tests.fault.reconciler_stories import STORIES, Chapter, good_release, oldest_version_deleted
from tests.support.stub_api import status


async def refused(request: web.Request, go_on: GoOn, attempt: int) -> web.StreamResponse:
    answers = (status(409, "Conflict"), status(429, "TooManyRequests", **{"Retry-After": "0"}), status(503))
    return answers[attempt](request) if attempt < len(answers) else await go_on()


async def done_but_unanswered(request: web.Request, go_on: GoOn, attempt: int) -> web.StreamResponse:
    """The write takes place, but the response is an error."""
    answer = await go_on()
    return answer if attempt else status(500, "InternalError")(request)


async def slow(request: web.Request, go_on: GoOn, attempt: int) -> web.StreamResponse:
    """Responses arrive in another order than the requests."""
    number = zlib.crc32(request.path.encode())  # not hash(), which is another one in each process
    await asyncio.sleep(0.02 * (number % 5))
    answer = await go_on()
    await asyncio.sleep(0.02 * (number % 7))
    return answer


# A conflict on a deletion means that the object is another one, so an entry of the history that is too much stays until
# the next release.
FAULTS = [
    pytest.param(fault, story, id=f"{story[-1].__name__}-{fault.__name__}")
    for story in STORIES
    for fault in (refused, done_but_unanswered, slow)
    if (story[-1], fault) != (oldest_version_deleted, refused)
]


@pytest.mark.parametrize(("fault", "story"), FAULTS)
async def test_releases_end_correctly_although_every_write_is(
    fault: Callable[[web.Request, GoOn, int], Awaitable[web.StreamResponse]], story: tuple[Chapter, ...], tmp_path: Path
) -> None:
    attempts: collections.Counter[tuple[str, str]] = collections.Counter()

    async def faulty(request: web.Request, go_on: GoOn) -> web.StreamResponse:
        if not is_write(request):
            return await go_on()
        attempt = attempts[request.method, request.path]
        attempts[request.method, request.path] += 1
        return await fault(request, go_on, attempt)

    async with running_cluster(tmp_path) as cluster:
        await cluster.go_to("shop")
        cluster.set_fault(faulty)
        async with cluster.reconciler(history_limit=1):
            for chapter in story:
                await chapter(cluster)


async def test_another_reconciler_takes_over_from_one_that_stops_responding(tmp_path: Path) -> None:
    """The leader stops responding during a release, without releasing its Lease."""
    vanished = asyncio.Event()

    async def vanishing(request: web.Request, go_on: GoOn) -> web.StreamResponse:
        if request[IDENTITY] == "leader" and vanished.is_set():
            await asyncio.Event().wait()
        return await go_on()

    async with running_cluster(tmp_path) as cluster:
        await cluster.go_to("shop")
        cluster.set_fault(vanishing)
        async with cluster.reconciler(identity="leader"):
            await cluster.until_leader("leader")
            async with cluster.reconciler(identity="follower"):
                story = asyncio.create_task(good_release(cluster))
                await cluster.until(cluster.states, "the release to begin")
                vanished.set()
                await cluster.until_leader("follower")  # test_lease checks the time, in simulated time
                await story
