"""The pod groups of all releases under way, updated with the events of the watches."""

from collections import OrderedDict
from collections.abc import Callable
from functools import partial

from altershield.api.change_workload import SourceRef, WorkloadState
from altershield.releases import state
from altershield.workloads.pods import Pod
from altershield.workloads.workload import Workload
from kube_base.access.time_slices import time_slices
from reconciler.cluster.batch import Batch
from reconciler.cluster.caches import Caches
from reconciler.cluster.ownership import WorkloadKey, is_batch_of
from reconciler.cluster.release import Release
from reconciler.releases.pods.groups import PodGroups
from reconciler.releases.pods.health import Timing
from reconciler.releases.reads.ready_times import ReadyTimes
from reconciler.releases.terms.rules import timing_of

_MAX_PODS = 50_000  # in all groups; beyond this, groups that can be rebuilt are discarded
_SMALL = 100  # pods; smaller groups are rebuilt quickly


class PodGroupsCache:
    """The pod groups by workload. `timing`: the times of releases whose policy has no times of its own. `clock` returns
    Unix seconds."""

    def __init__(self, caches: Caches, timing: Timing, clock: Callable[[], float]) -> None:
        self._caches = caches
        self._timing = timing
        self._clock = clock
        self._ready = ReadyTimes(caches.pods, clock)
        self._groups: OrderedDict[WorkloadKey, PodGroups] = OrderedDict()
        self._meanwhile: dict[WorkloadKey, list[Callable[[], None]]] = {}
        """The events of the workloads whose groups are being built. The groups get them afterwards."""

    async def current(self, key: WorkloadKey, workload: Workload, release: Release, source: SourceRef) -> PodGroups:
        """The groups of a release at this moment. If the groups are missing, or are about another release, they are
        built from the caches in time slices: there may be thousands of pods. One caller at a time for each key."""
        groups = self._groups.get(key)
        while groups is None or not groups.is_for(workload, release, source):
            await self._build(key, workload, release, source)
            groups = self._groups.get(key)  # None: they were discarded meanwhile
        # no wait from here on: the caller decides about this moment
        self._groups.move_to_end(key)
        if state(release) is WorkloadState.SUCCESS:
            groups.set_changed(None)
        groups.refresh(workload, self._clock())
        return groups

    async def _build(self, key: WorkloadKey, workload: Workload, release: Release, source: SourceRef) -> None:
        """Build the groups from the caches as they are now, and then apply the events that came meanwhile, in their
        order. No groups are built if they are to be discarded meanwhile."""
        now, slices = self._clock(), time_slices()
        batches, pods = self._caches.batches_of(release), list(self._caches.pods_of(workload))
        events = self._meanwhile[key] = []
        self._groups.pop(key, None)
        try:
            groups = PodGroups(workload, release, source, self._caches, timing_of(self._timing, release.spec.policy))
            for batch in batches:
                if is_batch_of(batch, release):
                    groups.update_batch(batch)
                else:
                    groups.memberships.highest_batch = max(groups.memberships.highest_batch, batch.number)
                await slices.yield_if_over()
            for pod in pods:
                groups.update_pod(pod, now, self._ready.since(pod))
                await slices.yield_if_over()
            for _ in groups.refresh_in_steps(workload, now):
                await slices.yield_if_over()
            discarded = self._meanwhile.get(key) is not events
        finally:
            if self._meanwhile.get(key) is events:
                del self._meanwhile[key]
        if not discarded:
            self._groups[key] = groups
            for apply in events:
                apply()

    def on_pod(self, key: WorkloadKey, pod: Pod, *, gone: bool) -> None:
        """Take over a pod that was added, changed or deleted (`gone`), and whose owner has the key of the workload."""
        if key in self._meanwhile:
            self._meanwhile[key].append(partial(self.on_pod, key, pod, gone=gone))
            return
        groups = self._groups.get(key)
        if groups is None:
            return
        if gone or not self._caches.owns(groups.workload, pod):
            groups.remove_pod(pod.metadata.uid)
        else:
            groups.update_pod(pod, self._clock(), self._ready.since(pod))

    def on_batch(self, key: WorkloadKey, batch: Batch, release: Release, *, gone: bool) -> None:
        """Take over a ChangePod of the release that was added, changed or deleted (`gone`)."""
        if key in self._meanwhile:
            self._meanwhile[key].append(partial(self.on_batch, key, batch, release, gone=gone))
            return
        groups = self._groups.get(key)
        if groups is None or groups.release_uid != release.metadata.uid:
            return
        if gone:
            self.discard(key)  # the earlier batches of its pods count again
        elif is_batch_of(batch, release):
            groups.update_batch(batch)

    def clear(self) -> None:
        """Discard all groups. They are rebuilt when they are needed."""
        self._groups.clear()
        self._meanwhile.clear()

    def discard(self, key: WorkloadKey) -> None:
        """Discard the groups of a workload. They are rebuilt when they are needed."""
        self._groups.pop(key, None)
        self._meanwhile.pop(key, None)

    def evict_rebuildable(self, key: WorkloadKey) -> None:
        """Discard the groups of a release that has nothing due, if they are small and can be rebuilt.

        If the groups of all releases together have too many pods, discard all groups that can be rebuilt.
        """
        groups = self._groups.get(key)
        if groups is not None and groups.rebuildable and len(groups) < _SMALL:
            del self._groups[key]
        if sum(map(len, self._groups.values())) > _MAX_PODS:
            for other in [other for other, kept in self._groups.items() if kept.rebuildable]:
                del self._groups[other]
