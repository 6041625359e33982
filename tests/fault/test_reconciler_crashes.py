"""A release ends the same if the reconciler is killed after any of its writes and another one starts."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.fault.killing import Killer
from tests.fault.reconciler_cluster import Cluster, running_cluster
from tests.fault.reconciler_stories import (
    STORIES,
    Chapter,
    approved,
    continued,
    continued_after_pause,
    good_release,
    oldest_version_deleted,
    paused,
    resumed,
    retried,
    reused_version,
    rolled_back,
    rolled_back_after_pause,
    rolled_back_by_policy,
    suspended_and_repaired,
    without_version,
)
from tests.support.threads import in_a_thread


async def play(cluster: Cluster, fatal: int, story: Sequence[Chapter]) -> bool:
    """Run the story with a reconciler that is killed once in its last chapter. False if the story ended before."""
    killer = Killer(0)
    cluster.set_fault(killer)
    async with cluster.reconciler(history_limit=1):
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
    async with cluster.reconciler(identity="two", history_limit=1):
        await telling
    return True


@dataclass(frozen=True)
class Stage:
    """A cluster, and the event loop that serves it."""

    cluster: Cluster
    loop: asyncio.AbstractEventLoop

    def play(self, namespace: str, fatal: int, story: Sequence[Chapter]) -> bool:
        """Run the story in its own namespace. Returns whether the reconciler was killed."""

        async def played() -> bool:
            await self.cluster.go_to(namespace)
            return await play(self.cluster, fatal, story)

        return asyncio.run_coroutine_threadsafe(played(), self.loop).result()


@contextlib.asynccontextmanager
async def _staged(directory: Path) -> AsyncIterator[Stage]:
    async with running_cluster(directory) as cluster:
        yield Stage(cluster, asyncio.get_running_loop())


class Stages:
    """One stage at a time. Each story has a new one, because each reconciler reads all objects when it starts."""

    def __init__(self, tmp_path_factory: pytest.TempPathFactory) -> None:
        self._tmp_path_factory = tmp_path_factory
        self._opened: tuple[Sequence[Chapter], Stage] | None = None
        self._closing = contextlib.ExitStack()

    def of(self, story: Sequence[Chapter]) -> Stage:
        if self._opened is None or self._opened[0] is not story:
            self.close()
            stage = self._closing.enter_context(in_a_thread(_staged(self._tmp_path_factory.mktemp("stage"))))
            self._opened = story, stage
        return self._opened[1]

    def close(self) -> None:
        self._opened = None
        self._closing.close()


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stages]:
    stages = Stages(tmp_path_factory)
    with contextlib.closing(stages):
        yield stages


FEWEST_WRITES = {paused: 2, continued: 2, continued_after_pause: 4, resumed: 2, approved: 4, retried: 5}
"""The smallest number of writes in the last chapter of a story; 8 in those that are not listed."""

MOST_WRITES = {
    rolled_back_by_policy: 22,
    paused: 9,
    continued: 7,
    continued_after_pause: 9,
    rolled_back_after_pause: 26,
    good_release: 17,
    suspended_and_repaired: 25,
    rolled_back: 18,
    reused_version: 25,
    without_version: 22,
    approved: 14,
    resumed: 7,
    retried: 16,
    oldest_version_deleted: 20,
}
"""The largest number of writes in the last chapter of each story. The number varies, because the reconciler may see
several changes at once."""

FATAL_WRITES = [
    pytest.param(
        story, fatal, id=f"{story[-1].__name__}-{fatal}", marks=pytest.mark.xdist_group(f"crashes-{number % 2}")
    )
    for number, story in enumerate(STORIES)
    for fatal in range(1, MOST_WRITES[story[-1]] + 2)
]


@pytest.mark.parametrize(("story", "fatal"), FATAL_WRITES)
def test_a_release_ends_correctly_if_the_reconciler_is_killed_after_its_nth_write(
    stages: Stages, story: Sequence[Chapter], fatal: int
) -> None:
    """The last `fatal` of a story is larger than its number of writes, so every write is the last one in some test."""
    name = story[-1].__name__.replace("_", "-")
    killed = stages.of(story).play(f"{name}-{fatal}", fatal, story)
    if fatal <= FEWEST_WRITES.get(story[-1], 8):
        assert killed, "the story has fewer writes than expected"
    if fatal > MOST_WRITES[story[-1]]:
        assert not killed, "the story has more writes: add them to MOST_WRITES"
