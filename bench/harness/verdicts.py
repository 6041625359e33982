"""When pods become ready, and when they get their verdicts."""

import time

from altershield.workloads.pods import Pod
from kube_base.access.informer import Informer
from reconciler.cluster.batch import Batch


class Verdicts:
    """Follows two caches, and records the times (`time.monotonic()`), by name of the pod."""

    def __init__(self, pods: Informer[Pod], batches: Informer[Batch]) -> None:
        self.ready: dict[str, float] = {}
        self.judged: dict[str, float] = {}
        pods.add_handler(self._pod)
        batches.add_handler(self._batch)

    def waits(self, since: float = 0.0) -> list[float]:
        """The seconds from readiness to verdict, of the verdicts since then."""
        return [at - self.ready[pod] for pod, at in self.judged.items() if at >= since and pod in self.ready]

    def _pod(self, _: Pod | None, new: Pod | None) -> None:
        if new is not None and new.ready:
            self.ready.setdefault(new.metadata.name, time.monotonic())

    def _batch(self, _: Batch | None, new: Batch | None) -> None:
        if new is not None and new.done:
            for member in new.members:
                self.judged.setdefault(member.pod, time.monotonic())
