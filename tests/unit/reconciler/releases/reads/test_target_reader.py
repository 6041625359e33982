"""What is read from the API server before a rollback."""

import asyncio
import time
from types import SimpleNamespace
from typing import Any, cast

import pytest

from altershield.workloads.pod_events import PodEvent
from kube_base.access.errors import ForbiddenError, KubernetesError, UnreachableError
from reconciler.releases.pods.not_up import ASK_AFTER
from reconciler.releases.reads.targets import TargetReader
from reconciler.releases.terms.snapshot import Snapshot
from tests.unit.altershield.releases.builders import release
from tests.unit.reconciler.releases.scenarios import first_release
from tests.unit.reconciler.releases.world import World as ReleaseWorld


class World:
    """The client and the caches, as far as the reader uses them. Each ChangePod takes a millisecond."""

    def __init__(self, batches: int) -> None:
        self.items = list(range(batches))
        self.seen: list[int] = []
        self.batches = self

    async def list(self, *_: Any, **__: Any) -> Any:
        return self

    def read(self, item: int) -> int:
        end = time.perf_counter() + 0.001
        while time.perf_counter() < end:
            pass
        return item

    def observe(self, item: int) -> None:
        self.seen.append(item)


async def test_other_tasks_run_while_the_verdicts_of_a_large_release_are_read() -> None:
    world = World(batches=200)
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    running = asyncio.create_task(other())
    reader = TargetReader(cast(Any, world), cast(Any, world), cast(Any, None))
    await reader._read_verdicts(cast(Any, SimpleNamespace(release=release())))
    running.cancel()
    assert world.seen == world.items
    assert turns >= 5


class Events:
    """A client that has these Events for every pod, or raises this error."""

    def __init__(self, found: list[PodEvent] | KubernetesError) -> None:
        self.found = found
        self.selectors: list[str] = []

    async def list(self, *_: Any, field_selector: str, **__: Any) -> Any:
        self.selectors.append(field_selector)
        if isinstance(self.found, KubernetesError):
            raise self.found
        return SimpleNamespace(items=self.found)


def creating() -> tuple[ReleaseWorld, Snapshot]:
    """A release whose pods have been in creation for a while."""
    world = first_release("Deployment")
    world.touch(*(pod.be_created() for pod in world.make(3)))
    world.advance(ASK_AFTER)
    return world, world.snapshot(world._projected(world.stored()), [], world.workload)


async def read(world: ReleaseWorld, snapshot: Snapshot, events: Events) -> list[str]:
    assert snapshot.groups is not None
    reader = TargetReader(cast(Any, events), cast(Any, world), cast(Any, None))
    await reader.read_words(snapshot, snapshot.groups, world.now)
    return [str(snapshot.groups.words(tracked)) for tracked in snapshot.groups.not_up.telling]


async def test_words_of_a_few_pods_are_read_once() -> None:
    world, snapshot = creating()
    events = Events([PodEvent("FailedMount", "no secret")])
    assert await read(world, snapshot, events) == ["FailedMount: no secret"] * 2
    assert events.selectors == ["involvedObject.uid=pod-1", "involvedObject.uid=pod-2"]
    assert await read(world, snapshot, events) == ["FailedMount: no secret"] * 2
    assert len(events.selectors) == 2


@pytest.mark.parametrize("error", [ForbiddenError("no", code=403), UnreachableError("no")])
async def test_release_goes_on_if_events_cannot_be_read(error: KubernetesError) -> None:
    world, snapshot = creating()
    events = Events(error)
    assert await read(world, snapshot, events) == []
    assert await read(world, snapshot, events) == []
    assert len(events.selectors) == 2, "the next read waits"
