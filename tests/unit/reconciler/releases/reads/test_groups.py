"""The pod groups of a large release are built in time slices, and are those of the moment at which they are used."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from altershield.api.change_workload import SourceRef
from altershield.workloads.pods import Pod
from kube_base.access.time_slices import time_slices
from reconciler.cluster.caches import Caches
from reconciler.cluster.ownership import WorkloadKey, workload_key
from reconciler.releases.pods.group import Group
from reconciler.releases.pods.groups import PodGroups
from reconciler.releases.pods.health import Timing
from reconciler.releases.reads.groups import PodGroupsCache
from tests.unit.altershield.releases import builders
from tests.unit.reconciler.filled import (
    change_pod,
    empty_caches,
    namespace,
    newer,
    pod,
    put,
    release,
    remove,
    replica_set,
)

_COUNT = 100
_STEP, _SLICE = 0.004, 0.01
_RELEASE, _WORKLOAD = release(), builders.workload()
_SOURCE = SourceRef("ReplicaSet", "sleep-1", "sleep-1")
_KEY: WorkloadKey = workload_key(_RELEASE)


def own_pod(number: int) -> Pod:
    return pod(name=f"sleep-1-{number}")


class Cluster:
    """The caches with a release of `_COUNT` pods. Each change of the groups takes 4 ms of the injected clock."""

    def __init__(self, caches: Caches, monkeypatch: pytest.MonkeyPatch) -> None:
        self.caches, self.now, self.steps = caches, 0.0, 0
        self.cache = PodGroupsCache(caches, Timing(120, 10), lambda: float(builders.NOW))
        put(caches, namespace(), _WORKLOAD, replica_set(), *(own_pod(number) for number in range(_COUNT)), _RELEASE)
        monkeypatch.setattr("kube_base.access.time_slices.time.perf_counter", lambda: self.now)
        for name in ("update_pod", "update_batch", "_assign"):
            monkeypatch.setattr(PodGroups, name, self._slow(getattr(PodGroups, name)))
        caches.pods.add_handler(self._on_pod)
        caches.batches.add_handler(self._on_batch)

    def _slow(self, method: Callable[..., None]) -> Callable[..., None]:
        def slow(*arguments: Any, **named: Any) -> None:
            self.now, self.steps = self.now + _STEP, self.steps + 1
            method(*arguments, **named)

        return slow

    def _on_pod(self, old: Pod | None, new: Pod | None) -> None:
        changed = new or old
        assert changed is not None
        self.cache.on_pod(_KEY, changed, gone=new is None)

    def _on_batch(self, old: Any, new: Any) -> None:
        self.cache.on_batch(_KEY, new or old, _RELEASE, gone=new is None)

    def build(self) -> asyncio.Task[PodGroups]:
        return asyncio.create_task(self.cache.current(_KEY, _WORKLOAD, _RELEASE, _SOURCE))


@pytest.fixture
async def cluster(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Cluster]:
    async with empty_caches() as caches:
        yield Cluster(caches, monkeypatch)
    await time_slices().yield_if_over()


def uids(groups: PodGroups) -> set[str]:
    return {each.metadata.uid for each in groups.pods_by_uid().values()}


async def test_groups_of_a_large_release_are_built_a_few_pods_at_a_time(cluster: Cluster) -> None:
    building, most = cluster.build(), 0
    while not building.done():
        before = cluster.steps
        await asyncio.sleep(0)
        most = max(most, cluster.steps - before)
    assert len(await building) == _COUNT
    assert cluster.steps >= 2 * _COUNT
    assert most <= _SLICE / _STEP + 2


async def test_groups_have_the_changes_that_came_while_they_were_built(cluster: Cluster) -> None:
    building = cluster.build()
    for _ in range(5):
        await asyncio.sleep(0)
    assert not building.done()
    put(cluster.caches, newer(own_pod(0), ready=True), newer(own_pod(1), ready=True), own_pod(_COUNT))
    remove(cluster.caches, own_pod(2))
    remove(cluster.caches, own_pod(1))
    put(cluster.caches, change_pod())
    groups = await building
    there = [own_pod(number) for number in range(_COUNT + 1) if number not in (1, 2)]
    assert uids(groups) == {each.metadata.uid for each in there}
    assert [each.metadata.name for each in groups.pods_by_uid().values() if each.ready] == ["sleep-1-0"]
    assert groups.memberships.highest_batch == 1
    again = PodGroupsCache(cluster.caches, Timing(120, 10), lambda: float(builders.NOW))
    assert uids(await again.current(_KEY, _WORKLOAD, _RELEASE, _SOURCE)) == uids(groups)


@pytest.mark.parametrize("why", ["discarded", "a batch is deleted"])
async def test_groups_that_are_discarded_while_they_are_built_are_built_again(cluster: Cluster, why: str) -> None:
    put(cluster.caches, change_pod())
    building = cluster.build()
    for _ in range(5):
        await asyncio.sleep(0)
    if why == "discarded":
        cluster.cache.discard(_KEY)
    else:
        remove(cluster.caches, change_pod())
    groups = await building
    assert len(groups) == _COUNT
    assert cluster.steps > 3 * _COUNT
    assert groups.memberships.highest_batch == (1 if why == "discarded" else 0)


async def test_groups_of_a_cancelled_reconcile_get_no_events(cluster: Cluster) -> None:
    building = cluster.build()
    for _ in range(5):
        await asyncio.sleep(0)
    building.cancel()
    await asyncio.wait((building,))
    put(cluster.caches, newer(own_pod(0), ready=True))
    assert not cluster.cache._meanwhile
    assert [each.metadata.name for each in (await cluster.build()).pods_by_uid().values() if each.ready] == [
        "sleep-1-0"
    ]


async def test_new_leader_does_not_observe_a_pod_again_that_it_has_seen_become_ready() -> None:
    """Without this, the first verdict of a new leader comes after the observation time."""
    now = float(builders.NOW)
    async with empty_caches() as caches:
        standby = PodGroupsCache(caches, Timing(120, 10), lambda: now)
        put(caches, namespace(), _WORKLOAD, replica_set(), _RELEASE)
        put(caches, *(newer(own_pod(number), ready=True, ready_at=int(now) - number) for number in (1, 2)))
        now += 8
        put(caches, newer(own_pod(2), 3, ready=True, ready_at=int(now)))
        now += 2
        groups = await standby.current(_KEY, _WORKLOAD, _RELEASE, _SOURCE)
        assert [each.pod.metadata.name for each in groups.pods_in(Group.PREPARING)] == ["sleep-1-1"]
        assert groups.next_due() == now + 8
