"""A process knows since when a pod is ready that became ready while it followed, and forgets the others."""

from collections.abc import AsyncIterator

import msgspec
import pytest

from altershield.workloads.pods import Pod
from reconciler.cluster.caches import Caches
from reconciler.releases.pods.health import CLOCK_SKEW
from reconciler.releases.reads.ready_times import ReadyTimes
from tests.unit.altershield.releases.builders import NOW
from tests.unit.reconciler.filled import empty_caches, namespace, newer, pod, put, remove


class Following:
    """A cache of pods, and a clock of our own."""

    def __init__(self, caches: Caches) -> None:
        self.caches, self.now, self.version = caches, float(NOW), 1
        self.times = ReadyTimes(caches.pods, lambda: self.now)
        put(caches, namespace())

    def put(self, name: str = "sleep-1-a", *, at: float, ready_at: float | None = None, restarts: int = 0) -> Pod:
        """The pod is read at `at`, seconds after the begin. `ready_at`: since when its kubelet calls it ready."""
        self.now, self.version = NOW + at, self.version + 1
        ready = int(NOW + ready_at) if ready_at is not None else 0
        made = newer(pod(name=name), self.version, ready=ready_at is not None, ready_at=ready, restarts=restarts)
        put(self.caches, made)
        found = self.caches.pods.get("default", name)
        assert found is not None
        return found


@pytest.fixture
async def following() -> AsyncIterator[Following]:
    async with empty_caches() as caches:
        yield Following(caches)


async def test_pod_is_ready_since_it_was_read_as_ready_however_often_it_changes(following: Following) -> None:
    assert following.times.since(following.put(at=0)) is None
    following.put(at=5, ready_at=4)
    assert following.times.since(following.put(at=9, ready_at=4)) == NOW + 5


@pytest.mark.parametrize("again", [{"ready_at": 8}, {"ready_at": 4, "restarts": 1}], ids=["interrupted", "restarted"])
async def test_time_begins_again_with_an_interruption_or_a_restart(following: Following, again: dict[str, int]) -> None:
    following.put(at=5, ready_at=4)
    assert following.times.since(following.put(at=9, **again)) == NOW + 9


async def test_pod_that_is_not_ready_any_more_or_is_deleted_has_no_time(following: Following) -> None:
    following.put(at=5, ready_at=4)
    assert following.times.since(following.put(at=6)) is None
    assert len(following.times) == 0
    last = following.put(at=8, ready_at=7)
    remove(following.caches, last)
    assert len(following.times) == 0


async def test_another_pod_of_the_same_name_has_its_own_time(following: Following) -> None:
    first = following.put(at=5, ready_at=4)
    other = msgspec.structs.replace(first, metadata=msgspec.structs.replace(first.metadata, packed_uid="other"))
    following.now = NOW + 7.0
    put(following.caches, newer(other, 99))
    assert following.times.since(other) == NOW + 7
    assert following.times.since(first) is None


async def test_pods_that_were_ready_long_before_they_were_read_take_no_memory(following: Following) -> None:
    following.put(at=0, ready_at=-CLOCK_SKEW)
    assert len(following.times) == 0
    assert following.times.since(following.put("sleep-1-b", at=0, ready_at=1 - CLOCK_SKEW)) == NOW


async def test_times_that_are_not_needed_any_more_are_forgotten(following: Following) -> None:
    following.put("sleep-1-a", at=0, ready_at=0)
    following.put("sleep-1-b", at=CLOCK_SKEW, ready_at=CLOCK_SKEW)
    following.put("sleep-1-c", at=2 * CLOCK_SKEW + 1, ready_at=2 * CLOCK_SKEW)
    assert len(following.times) == 2
