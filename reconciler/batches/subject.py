"""Puts ChangePods into the queue while they are unfinished, and when the policy of their release changes."""

from altershield.kube.queue import WorkQueue
from reconciler.cluster.batch import Batch
from reconciler.cluster.caches import Caches, Key
from reconciler.cluster.release import Release


class BatchRoutes:
    """Handlers for the events of the caches. `old` is None for a new object, `new` is None for a deleted one."""

    def __init__(self, caches: Caches, queue: WorkQueue[Key]) -> None:
        self._caches = caches
        self._queue = queue
        caches.releases.add_handler(self._release)
        caches.batches.add_handler(self._batch)

    def _release(self, old: Release | None, new: Release | None) -> None:
        if old is not None and new is not None and old.spec.policy != new.spec.policy:
            for batch in self._caches.batches_of(new):  # they have other checks now, and may wait for a person
                if batch.unfinished is not None:
                    self._queue.add(batch.metadata.key)

    def _batch(self, old: Batch | None, new: Batch | None) -> None:
        if new is not None and new.unfinished is not None:
            self._queue.add(new.metadata.key)
