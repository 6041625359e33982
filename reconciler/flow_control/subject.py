"""Puts PodDeletionFlowControls into the queue: one that changes, and all of them when a pod is lost."""

from altershield.api.flow_control import PodDeletionFlowControl
from altershield.kube.objects import key_of
from altershield.kube.queue import WorkQueue
from altershield.workloads.pods import Pod
from reconciler.cluster.caches import Caches, Key


class FlowControlRoutes:
    """Handlers for the events of the caches. `old` is None for a new object, `new` is None for a deleted one."""

    def __init__(self, caches: Caches, queue: WorkQueue[Key]) -> None:
        self._caches = caches
        self._queue = queue
        caches.flow_controls.add_handler(self._flow_control)
        caches.pods.add_handler(self._pod)

    def _flow_control(self, old: PodDeletionFlowControl | None, new: PodDeletionFlowControl | None) -> None:
        policy = new or old
        if policy is not None:
            self._queue.add(key_of(policy.metadata))

    def _pod(self, old: Pod | None, new: Pod | None) -> None:
        if new is not None and new.lost and (old is None or not old.lost):
            for policy in self._caches.flow_controls.all():  # they count the loss
                self._queue.add(key_of(policy.metadata))
