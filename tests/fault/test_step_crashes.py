"""A release in steps ends the same if the reconciler is killed after any of its writes and another one starts."""

import asyncio
import itertools
from collections.abc import Sequence
from pathlib import Path

import pytest
from aiohttp import web

from altershield.api.annotations import ROLLOUT
from tests.fault.gatekeeper import admitting
from tests.fault.killing import Killer
from tests.fault.reconciler_cluster import Cluster, GoOn, running_cluster
from tests.fault.step_stories import (
    STORIES,
    Chapter,
    Held,
    excess,
    prepared,
    promoted,
    rolled_back,
    scaled,
    second_version,
    third_version,
    told,
)

_BODY = web.RequestKey("body", bytes)


def moves_steps(request: web.Request) -> bool:
    """Whether the request changes the hold, the fields it holds, or what the ChangeWorkload says about the steps, or
    evicts a pod. The other writes are those of releases without steps."""
    parts = request.path.split("/")
    if request.method == "POST":
        return parts[-1] == "eviction"
    if request.method not in ("PATCH", "PUT") or "dryRun" in request.query:
        return False
    body = request[_BODY]
    if "changeworkloads" in parts:
        return any(name in body for name in (b'"phase"', b'"step"', b'"heldBy"', b'"full"'))
    return any(each in body for each in (ROLLOUT.replace("/", "~1").encode(), b"managedFields"))


class Bounded:
    """A fault that kills the reconciler, and looks at each of its writes how many pods a version has."""

    def __init__(self, cluster: Cluster, kind: str, killer: Killer, *, bound: bool) -> None:
        self._cluster, self._kind, self._killer, self._bound = cluster, kind, killer, bound
        self.excess = ""

    async def __call__(self, request: web.Request, go_on: GoOn) -> web.StreamResponse:
        request[_BODY] = await request.read()
        if self._bound and request.method not in ("GET", "HEAD"):
            self.excess = self.excess or excess(self._cluster.store, self._cluster.namespace, self._kind)
        return await self._killer(request, go_on)


async def play(cluster: Cluster, kind: str, fatal: int, last: Chapter) -> bool:
    """Run the last chapter with a reconciler that is killed once. False if the chapter ended before."""
    killer = Killer(fatal, moves_steps)
    fault = Bounded(cluster, kind, killer, bound=last is not scaled)
    cluster.set_fault(fault)
    async with cluster.reconciler(start_timeout=30.0):
        await cluster.until_leader("one")
        telling = asyncio.create_task(told(Held(cluster, kind), last))
        struck = asyncio.create_task(killer.struck.wait())
        await asyncio.wait((telling, struck), return_when=asyncio.FIRST_COMPLETED)
        struck.cancel()
    if killer.struck.is_set():
        killer.fatal = 0
        killer.struck.clear()
        async with cluster.reconciler(identity="two", start_timeout=30.0):
            await telling
        assert not fault.excess
        return True
    await telling
    assert not fault.excess
    return False


FEWEST_WRITES = {second_version: 12, promoted: 6, rolled_back: 4, third_version: 4}
"""The smallest number of fatal writes in the last chapter of a story; 2 in those that are not listed."""

STORIES_OF_BOTH_WORKERS = [
    pytest.param(kind, story, id=f"{kind}-{story[-1].__name__}", marks=pytest.mark.xdist_group(f"crashes-{number % 2}"))
    for number, (kind, story) in enumerate(STORIES)
]


@pytest.mark.parametrize(("kind", "story"), STORIES_OF_BOTH_WORKERS)
async def test_release_in_steps_ends_correctly_if_the_reconciler_is_killed_after_any_write_of_a_step(
    tmp_path: Path, kind: str, story: Sequence[Chapter]
) -> None:
    """The last chapter is told until it ends without a kill, so every write that counts is the last one once."""
    *before, last = story
    async with running_cluster(tmp_path) as cluster, admitting(cluster, tmp_path):
        storage = await prepared(cluster, kind, before)
        for fatal in itertools.count(1):
            await cluster.restore(storage)
            try:
                killed = await play(cluster, kind, fatal, last)
            except Exception as error:
                error.add_note(f"The reconciler was to be killed after its write number {fatal}.")
                raise
            if not killed:
                break
    assert fatal > FEWEST_WRITES.get(last, 2), "the story has fewer writes than expected"
