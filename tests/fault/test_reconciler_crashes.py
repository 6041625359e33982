"""A release ends the same if the reconciler is killed after any of its writes and another one starts."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from kube_sandbox.apiserver.storage.store import Snapshot
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


async def prepared(cluster: Cluster, before: Sequence[Chapter]) -> Snapshot:
    """The storage after these chapters. Without any, no reconciler has run: it makes its settings in the next one."""
    await cluster.go_to("told")
    if before:
        async with cluster.reconciler(history_limit=1):
            for chapter in before:
                await chapter(cluster)
    return cluster.snapshot()


async def play(cluster: Cluster, fatal: int, last: Chapter) -> bool:
    """Run the last chapter with a reconciler that is killed once. False if the chapter ended before."""
    killer = Killer(fatal)
    cluster.set_fault(killer)
    async with cluster.reconciler(history_limit=1):
        await cluster.until_leader("one")  # which has read all objects: it sees the chapter from its beginning
        telling = asyncio.create_task(last(cluster))
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
    """A cluster on which all chapters of a story but the last were told, and the event loop that serves it."""

    cluster: Cluster
    storage: Snapshot
    last: Chapter
    loop: asyncio.AbstractEventLoop

    def play(self, fatal: int) -> bool:
        """Run the last chapter on the storage as it was before. Returns whether the reconciler was killed."""

        async def played() -> bool:
            await self.cluster.restore(self.storage)
            return await play(self.cluster, fatal, self.last)

        return asyncio.run_coroutine_threadsafe(played(), self.loop).result()


@contextlib.asynccontextmanager
async def _staged(directory: Path, story: Sequence[Chapter]) -> AsyncIterator[Stage]:
    async with running_cluster(directory) as cluster:
        yield Stage(cluster, await prepared(cluster, story[:-1]), story[-1], asyncio.get_running_loop())


class Stages:
    """One stage at a time."""

    def __init__(self, tmp_path_factory: pytest.TempPathFactory) -> None:
        self._tmp_path_factory = tmp_path_factory
        self._opened: tuple[Sequence[Chapter], Stage] | None = None
        self._closing = contextlib.ExitStack()

    def of(self, story: Sequence[Chapter]) -> Stage:
        if self._opened is None or self._opened[0] is not story:
            self.close()
            directory = self._tmp_path_factory.mktemp("stage")
            stage = self._closing.enter_context(in_a_thread(_staged(directory, story)))
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
    rolled_back_by_policy: 20,
    paused: 8,
    continued: 8,
    continued_after_pause: 10,
    rolled_back_after_pause: 26,
    good_release: 20,
    suspended_and_repaired: 23,
    rolled_back: 17,
    reused_version: 22,
    without_version: 20,
    approved: 10,
    resumed: 7,
    retried: 13,
    oldest_version_deleted: 17,
}
"""The largest number of writes in the last chapter of each story: three more than usual. The number may vary, because
the reconciler may see several changes at once."""

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
    killed = stages.of(story).play(fatal)
    if fatal <= FEWEST_WRITES.get(story[-1], 8):
        assert killed, "the story has fewer writes than expected"
    if fatal > MOST_WRITES[story[-1]]:
        assert not killed, "the story has more writes: add them to MOST_WRITES"
