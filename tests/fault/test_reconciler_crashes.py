"""A release ends the same if the reconciler is killed after any of its writes and another one starts."""

import asyncio
import itertools
from collections.abc import Sequence
from pathlib import Path

import pytest
from aiohttp import web

from kube_sandbox.apiserver.storage.store import Snapshot
from tests.fault.killing import Killer, is_event
from tests.fault.reconciler_cluster import Cluster, is_write, running_cluster
from tests.fault.reconciler_stories import (
    STORIES,
    Chapter,
    announced,
    approved,
    continued,
    continued_after_pause,
    oldest_version_deleted,
    overridden,
    paused,
    resumed,
    retried,
    reused_version,
    rolled_back,
    rolled_back_after_pause,
    rolled_back_by_policy,
    rolled_back_with_a_pass,
    suspended_and_repaired,
    without_version,
    written_events,
)

VERIFIED_AS_A_GOOD_RELEASE = {
    oldest_version_deleted,
    overridden,
    reused_version,
    rolled_back,
    rolled_back_after_pause,
    rolled_back_by_policy,
    rolled_back_with_a_pass,
    suspended_and_repaired,
    without_version,
}
"""Chapters that end with the verification of a release, whose writes are the same as in `good_release`. They are fatal
only there."""


class OtherWrites:
    """The writes that do not verify pods: those before a pod gets its label, and those of other kinds after it."""

    def __init__(self) -> None:
        self._verifying = False

    def __call__(self, request: web.Request) -> bool:
        parts = set(request.path.split("/"))
        self._verifying |= request.method == "PATCH" and "pods" in parts
        return is_write(request) and not (self._verifying and parts & {"pods", "changepods"})


def is_write_or_event(request: web.Request) -> bool:
    return is_write(request) or is_event(request)


async def prepared(cluster: Cluster, before: Sequence[Chapter]) -> Snapshot:
    """The storage after these chapters. Without any, no reconciler has run: it makes its settings in the next one."""
    await cluster.go_to("told")
    if before:
        async with cluster.reconciler(history_limit=1):
            for chapter in before:
                await chapter(cluster)
    return cluster.snapshot()


async def told(cluster: Cluster, last: Chapter) -> None:
    """The last chapter, and its Events."""
    before = await written_events(cluster)
    await last(cluster)
    await announced(cluster, before, last)


async def play(cluster: Cluster, fatal: int, last: Chapter) -> bool:
    """Run the last chapter with a reconciler that is killed once. False if the chapter ended before."""
    killer = Killer(fatal, OtherWrites() if last in VERIFIED_AS_A_GOOD_RELEASE else is_write_or_event)
    cluster.set_fault(killer)
    async with cluster.reconciler(history_limit=1):
        await cluster.until_leader("one")  # which has read all objects: it sees the chapter from its beginning
        telling = asyncio.create_task(told(cluster, last))
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


FEWEST_WRITES = {
    paused: 2,
    continued: 2,
    continued_after_pause: 4,
    resumed: 2,
    approved: 4,
    retried: 5,
    oldest_version_deleted: 6,
    without_version: 6,
}
"""The smallest number of fatal writes in the last chapter of a story; 8 in those that are not listed. The number may
vary, because the reconciler may see several changes at once."""

STORIES_OF_BOTH_WORKERS = [
    pytest.param(story, id=story[-1].__name__, marks=pytest.mark.xdist_group(f"crashes-{number % 2}"))
    for number, story in enumerate(STORIES)
]


@pytest.mark.parametrize("story", STORIES_OF_BOTH_WORKERS)
async def test_a_release_ends_correctly_if_the_reconciler_is_killed_after_any_of_its_writes(
    tmp_path: Path, story: Sequence[Chapter]
) -> None:
    """The last chapter is told until it ends without a kill, so every write that counts is the last one once."""
    *before, last = story
    async with running_cluster(tmp_path) as cluster:
        storage = await prepared(cluster, before)
        for fatal in itertools.count(1):
            await cluster.restore(storage)
            try:
                killed = await play(cluster, fatal, last)
            except Exception as error:
                error.add_note(f"The reconciler was to be killed after its write number {fatal}.")
                raise
            if not killed:
                break
    assert fatal > FEWEST_WRITES.get(last, 8), "the story has fewer writes than expected"
