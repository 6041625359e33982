"""A reconciler killed after any of its writes, and started again, brings every release to the same end."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest
from aiohttp import web

from tests.fault.reconciler_cluster import Cluster, is_write, running_cluster
from tests.fault.reconciler_stories import STORIES, Chapter


class Killer:
    """Lets the reconciler's writes through, but after the `fatal`-th it never hears an answer again."""

    def __init__(self, fatal: int) -> None:
        self.fatal = fatal
        self.writes = 0
        self.struck = asyncio.Event()

    async def __call__(
        self, request: web.Request, go_on: Callable[[], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        if is_write(request) and self.struck.is_set():
            raise web.HTTPServiceUnavailable
        answer = await go_on()
        if is_write(request):
            self.writes += 1
            if self.writes == self.fatal:
                self.struck.set()
                await asyncio.Event().wait()
        return answer


async def play(cluster: Cluster, fatal: int, story: Sequence[Chapter]) -> bool:
    """Play the story with a reconciler that is killed once in its last chapter; False when it came to its end
    before that."""
    killer = Killer(0)
    cluster.set_fault(killer)
    async with cluster.reconciler():
        for chapter in story[:-1]:
            await chapter(cluster)
        killer.fatal = killer.writes + fatal
        telling = asyncio.create_task(story[-1](cluster))
        struck = asyncio.create_task(killer.struck.wait())
        await asyncio.wait((telling, struck), return_when=asyncio.FIRST_COMPLETED)
        struck.cancel()
    if not killer.struck.is_set():
        await telling
        return False
    killer.fatal = 0
    killer.struck.clear()
    async with cluster.reconciler(identity="two"):
        await telling
    return True


@pytest.mark.timeout(300)
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story[-1].__name__)
async def test_releases_end_correctly_if_the_reconciler_is_killed_after_any_write(
    story: Sequence[Chapter], tmp_path: Path
) -> None:
    async with running_cluster(tmp_path) as cluster:
        for fatal in itertools.count(1):
            await cluster.go_to(f"killed-after-{fatal}")
            if not await play(cluster, fatal, story):
                break

    assert fatal > 8, "the story has more writes than that"
