"""Since when pods are ready that became ready lately, as this process has seen it. A standby sees it too, so a new
leader does not observe these pods from the beginning."""

from collections.abc import Callable

from altershield.workloads.meta import Packed
from altershield.workloads.pods import Pod
from kube_base.access.informer import Informer
from reconciler.releases.pods.health import CLOCK_SKEW, is_interrupted

_KEPT = 2 * CLOCK_SKEW
"""Seconds. Afterwards, the kubelet's time shows that the pod has been ready for at least `CLOCK_SKEW`."""


class ReadyTimes:
    """Follows a cache of pods. `clock` returns Unix seconds.

    A pod that became ready long before this process first read it has no entry, so thousands of pods at rest take no
    memory.
    """

    def __init__(self, pods: Informer[Pod], clock: Callable[[], float]) -> None:
        self._clock = clock
        self._since: dict[Packed, float] = {}  # by uid, the oldest time first
        pods.add_handler(self._on_pod)

    def __len__(self) -> int:
        return len(self._since)

    def since(self, pod: Pod) -> float | None:
        """Since when this process has seen that the pod is ready, without a restart or an interruption, Unix seconds;
        None if it has not seen when the pod became ready."""
        return self._since.get(pod.metadata.packed_uid) if pod.ready else None

    def _on_pod(self, old: Pod | None, new: Pod | None) -> None:
        same = old is not None and new is not None and old.metadata.packed_uid == new.metadata.packed_uid
        if old is not None and new is not None and same and old.ready and new.ready and not is_interrupted(old, new):
            return
        if old is not None:
            self._since.pop(old.metadata.packed_uid, None)
        if new is not None and new.ready:
            now = self._clock()
            self._forget_before(now - _KEPT)
            if not new.ready_at or now < new.ready_at + CLOCK_SKEW:
                self._since[new.metadata.packed_uid] = now

    def _forget_before(self, time: float) -> None:
        while self._since and self._since[oldest := next(iter(self._since))] < time:
            del self._since[oldest]
