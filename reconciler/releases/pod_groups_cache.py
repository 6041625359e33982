"""The books of the releases that are at work, kept up to date by what the watches tell."""

from collections import OrderedDict
from collections.abc import Callable

from altershield.api.kinds import SourceRef
from altershield.workloads.pods import Pod
from altershield.workloads.workload import Workload
from reconciler.batches.batch import Batch
from reconciler.machinery.caches import Caches, WorkloadKey, belongs_to_release
from reconciler.releases.health import Timing
from reconciler.releases.pod_groups import PodGroups
from reconciler.releases.projection import Release

_MAX_PODS = 50_000  # in books of releases at rest; those are made anew from the caches when they are needed
_SMALL = 100  # pods that are quickly looked through


class PodGroupsCache:
    def __init__(self, caches: Caches, timing: Timing, clock: Callable[[], float]) -> None:
        self._caches = caches
        self._timing = timing
        self._clock = clock
        self._groups: OrderedDict[WorkloadKey, PodGroups] = OrderedDict()

    def current(self, key: WorkloadKey, workload: Workload, release: Release, source: SourceRef) -> PodGroups:
        """The book of a release, as of now."""
        now = self._clock()
        groups = self._groups.get(key)
        if groups is None or not groups.is_for(workload, release, source):
            groups = PodGroups(workload, release, source, self._caches, self._timing)
            for batch in self._caches.batches_of(release):
                if belongs_to_release(batch, release):
                    groups.update_batch(batch)
                else:
                    groups.highest_batch = max(groups.highest_batch, batch.number)
            for pod in self._caches.pods_of(workload):
                groups.update_pod(pod, now)
            self._groups[key] = groups
        self._groups.move_to_end(key)
        groups.refresh(workload, now)
        return groups

    def on_pod(self, key: WorkloadKey, pod: Pod, *, gone: bool) -> None:
        """A pod that seems to be the workload's came, changed or went."""
        groups = self._groups.get(key)
        if groups is None:
            return
        if gone or not self._caches.owns(groups.workload, pod):
            groups.remove_pod(pod.metadata.uid)
        else:
            groups.update_pod(pod, self._clock())

    def on_batch(self, key: WorkloadKey, batch: Batch, release: Release, *, gone: bool) -> None:
        groups = self._groups.get(key)
        if groups is None or groups.release_uid != release.metadata.uid:
            return
        if gone:
            self.discard(key)  # what the batches before it say counts again
        elif belongs_to_release(batch, release):
            groups.update_batch(batch)

    def discard(self, key: WorkloadKey) -> None:
        """It is not needed any more, or not right."""
        self._groups.pop(key, None)

    def evict_rebuildable(self, key: WorkloadKey) -> None:
        """Nothing of the release becomes due: its book may go, if it is not the only one that knows something."""
        groups = self._groups.get(key)
        if groups is not None and groups.rebuildable and len(groups) < _SMALL:
            del self._groups[key]
        if sum(map(len, self._groups.values())) > _MAX_PODS:
            for other in [other for other, kept in self._groups.items() if kept.rebuildable]:
                del self._groups[other]
