"""Puts DefensePolicies into the queue: one that changes, and the others of its namespace, which it may shadow."""

from altershield.api.policy import DefensePolicy
from altershield.kube.objects import key_of
from altershield.kube.queue import WorkQueue
from reconciler.cluster.caches import Caches, Key


class PolicyRoutes:
    """Handlers for the events of the caches. `old` is None for a new object, `new` is None for a deleted one."""

    def __init__(self, caches: Caches, queue: WorkQueue[Key]) -> None:
        self._caches = caches
        self._queue = queue
        caches.policies.add_handler(self._policy)

    def _policy(self, old: DefensePolicy | None, new: DefensePolicy | None) -> None:
        policy = new or old
        if policy is None:
            return
        self._queue.add(key_of(policy.metadata))
        if old is None or new is None or old.spec != new.spec or old.status.accepted != new.status.accepted:
            for other in self._caches.policies_of(policy.metadata.namespace):  # the policy may shadow other policies
                self._queue.add(key_of(other.metadata))
