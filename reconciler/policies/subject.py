"""The subject of DefensePolicies. A policy is reconciled when it changes, and with the others of its namespace, which
it may shadow."""

from functools import partial

from altershield.api.policy import KIND, DefensePolicy
from altershield.api.resources import DEFENSE_POLICIES
from altershield.api.rights import Right
from kube_base.access.objects import key_of
from kube_base.access.queue import WorkQueue, as_backlog
from reconciler.cluster.caches import Caches, Key
from reconciler.policies.acceptance import rule_of
from reconciler.policies.policy_reconciler import PolicyReconciler
from reconciler.receivers.file import unknown_receivers
from reconciler.subject import Controller, Parts, Subject


class PolicyRoutes:
    """Handlers for the events of the caches. `old` is None for a new object, `new` is None for a deleted one."""

    def __init__(self, caches: Caches, queue: WorkQueue[Key]) -> None:
        self._caches = caches
        self._queue = queue
        caches.policies.add_handler(self._policy)

    def add_all(self) -> None:
        """Queue all policies: their conditions name receivers that do not exist, and the receivers have changed."""
        with as_backlog():
            for policy in self._caches.policies.all():
                self._queue.add(key_of(policy.metadata))

    def _policy(self, old: DefensePolicy | None, new: DefensePolicy | None) -> None:
        policy = new or old
        if policy is None:
            return
        self._queue.add(key_of(policy.metadata))
        if old is None or new is None or old.spec != new.spec or old.status.accepted != new.status.accepted:
            for other in self._caches.policies_of(policy.metadata.namespace):  # the policy may shadow other policies
                self._queue.add(key_of(other.metadata))


def start(parts: Parts[Key]) -> Controller[Key]:
    routes = PolicyRoutes(parts.caches, parts.queue)
    parts.acceptance.count(DEFENSE_POLICIES.kind, parts.caches.policies.all)
    file = parts.delivery.file if parts.delivery is not None else None
    if file is not None:
        file.add_handler(routes.add_all)
    policies = PolicyReconciler(
        parts.caches,
        parts.writer,
        parts.recorder,
        parts.clock,
        rule_of(parts.allowed_hosts),
        partial(unknown_receivers, file, parts.options.system_namespace),
    )
    # only a leader follows the file, so it may have changed since the conditions were written
    return Controller(reconcile=policies.reconcile, on_lead=routes.add_all if file is not None else None)


POLICIES = Subject(
    "policies",
    start,
    kinds=(KIND,),
    rights=(Right((DEFENSE_POLICIES,), "list watch"), Right((DEFENSE_POLICIES,), "patch", "status")),
    writes=((DEFENSE_POLICIES, ("patch status",)),),
)
