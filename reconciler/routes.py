"""Puts keys into the queues of the controllers when a watch brings an event.

An event only names an object to reconcile. Reconciling a key without need does no harm. If a key is missed, its object
is not reconciled.
"""

from dataclasses import dataclass, field
from typing import Any

from altershield.api.flow_control import PodDeletionFlowControl
from altershield.api.meta import ObjectMeta
from altershield.api.namespace import Namespace
from altershield.api.ops_config_info import OpsConfigInfo
from altershield.api.policy import DefensePolicy
from altershield.kube.queue import WorkQueue
from altershield.workloads import BY_KIND
from altershield.workloads.pods import Pod
from altershield.workloads.sets import Set
from altershield.workloads.workload import Workload, generates
from reconciler.cluster.batch import Batch
from reconciler.cluster.caches import Caches, Key
from reconciler.cluster.open_orders import OpenOrder
from reconciler.cluster.ownership import WorkloadKey, workload_key
from reconciler.cluster.release import Release
from reconciler.generated_budgets.budget_plan import Budget
from reconciler.releases.reads.groups import PodGroupsCache


@dataclass(frozen=True)
class Queues:
    """One queue per controller."""

    namespaces: WorkQueue[Key] = field(default_factory=WorkQueue)
    settings: WorkQueue[Key] = field(default_factory=WorkQueue)
    policies: WorkQueue[Key] = field(default_factory=WorkQueue)
    batches: WorkQueue[Key] = field(default_factory=WorkQueue)
    releases: WorkQueue[WorkloadKey] = field(default_factory=WorkQueue)
    budgets: WorkQueue[Key] = field(default_factory=WorkQueue)
    generated_budgets: WorkQueue[WorkloadKey] = field(default_factory=WorkQueue)
    notifications: WorkQueue[Key] = field(default_factory=WorkQueue)
    flow_controls: WorkQueue[Key] = field(default_factory=WorkQueue)
    orders: WorkQueue[Key] = field(default_factory=WorkQueue)

    def by_name(self) -> dict[str, WorkQueue[Any]]:
        """The queues by the name of their controller."""
        return {
            "namespaces": self.namespaces,
            "settings": self.settings,
            "policies": self.policies,
            "batches": self.batches,
            "releases": self.releases,
            "budgets": self.budgets,
            "generated-budgets": self.generated_budgets,
            "notifications": self.notifications,
            "flow-controls": self.flow_controls,
            "orders": self.orders,
        }


class Routes:
    """Handlers for the events of the caches. `old` is None for a new object, `new` is None for a deleted one."""

    def __init__(self, caches: Caches, queues: Queues, groups_cache: PodGroupsCache) -> None:
        self._caches = caches
        self._queues = queues
        self._groups_cache = groups_cache
        caches.namespaces.add_handler(self._namespace)
        caches.settings.add_handler(self._setting)
        caches.policies.add_handler(self._policy)
        caches.flow_controls.add_handler(self._flow_control)
        for workloads in caches.workloads.values():
            workloads.add_handler(self._workload)
            workloads.add_handler(self._generated_budgets)
        caches.budgets.budgets_informer.add_handler(self._budget)
        caches.budgets.disruption_budgets.add_handler(self._budget)
        for sets in caches.sets.values():
            sets.add_handler(self._set)
        caches.pods.add_handler(self._pod)
        caches.releases.add_handler(self._release)
        caches.orders.add_handler(self._order)
        caches.batches.add_handler(self._batch)

    def _namespace(self, old: Namespace | None, new: Namespace | None) -> None:
        if not self._caches.namespaces.synced:
            return  # other informers list their objects only after this one is filled
        if new is not None and (
            old is None or generates(old.metadata.annotations) != generates(new.metadata.annotations)
        ):
            self._generate_in(new.metadata.name)
        for metadata in {each.metadata.name: each.metadata for each in (old, new) if each is not None}.values():
            if old is None or new is None or old.governed != new.governed or _is_deleting(old) != _is_deleting(new):
                self._caches.begin_filling(metadata.name)
                self._queues.namespaces.add(("", metadata.name))

    def _setting(self, old: OpsConfigInfo | None, new: OpsConfigInfo | None) -> None:
        for setting in (old, new):
            if setting is not None:
                self._queues.settings.add(_key(setting.metadata))
        if old is not new and (old is None or new is None or (old.spec, old.status) != (new.spec, new.status)):
            for release in self._caches.releases.all():
                self._queues.releases.add(workload_key(release))

    def _policy(self, old: DefensePolicy | None, new: DefensePolicy | None) -> None:
        policy = new or old
        if policy is None:
            return
        self._queues.policies.add(_key(policy.metadata))
        if old is None or new is None or old.spec != new.spec or old.status.accepted != new.status.accepted:
            for other in self._caches.policies_of(policy.metadata.namespace):  # the policy may shadow other policies
                self._queues.policies.add(_key(other.metadata))

    def _flow_control(self, old: PodDeletionFlowControl | None, new: PodDeletionFlowControl | None) -> None:
        policy = new or old
        if policy is not None:
            self._queues.flow_controls.add(_key(policy.metadata))

    def _workload(self, old: Workload | None, new: Workload | None) -> None:
        for workload in (old, new):
            if workload is not None:
                metadata = workload.metadata
                self._queues.releases.add(WorkloadKey(workload.kind, metadata.namespace, metadata.name))

    def _generated_budgets(self, old: Workload | None, new: Workload | None) -> None:
        """Queue a workload whose generated budgets may have to change. The garbage collector deletes the budgets of a
        deleted workload."""
        if new is None or (old is not None and _budget_fields(old) == _budget_fields(new)):
            return
        namespace = self._caches.namespaces.get("", new.metadata.namespace)
        by_workload = new.generates or (old is not None and old.generates)
        if by_workload or (namespace is not None and generates(namespace.metadata.annotations)):
            self._queues.generated_budgets.add(WorkloadKey(new.kind, new.metadata.namespace, new.metadata.name))

    def _budget(self, old: Budget | None, new: Budget | None) -> None:
        """Queue the workload of a generated budget. A budget of a user may cover any workload of its namespace."""
        if old is not None and new is not None and (old.metadata.labels, old.spec) == (new.metadata.labels, new.spec):
            return
        for budget in (old, new):
            owner = budget.metadata.controller if budget is not None else None
            if budget is None:
                continue
            if owner is None:
                self._generate_in(budget.metadata.namespace, if_asked=True)
            elif owner.kind in BY_KIND:
                self._queues.generated_budgets.add(WorkloadKey(owner.kind, budget.metadata.namespace, owner.name))

    def _generate_in(self, namespace: str, *, if_asked: bool = False) -> None:
        """Queue all workloads of the namespace, or only those for which annotations ask for budgets."""
        found = self._caches.namespaces.get("", namespace)
        every = not if_asked or (found is not None and generates(found.metadata.annotations))
        for each in self._caches.workloads_in(namespace):
            if every or each.generates:
                self._queues.generated_budgets.add(WorkloadKey(each.kind, namespace, each.metadata.name))

    def _set(self, old: Set | None, new: Set | None) -> None:
        for each in (old, new):
            if each is not None:
                key = WorkloadKey(each.owner.kind, each.metadata.namespace, each.owner.name)
                if old is None or new is None or old.owner != new.owner:
                    # The pods of the set may have been in the cache before the set. The groups of the other pods stay:
                    # anybody may create and delete sets, and new groups do not know when a pod was last up.
                    for pod in self._caches.pods_of_set(each):
                        self._groups_cache.on_pod(key, pod, gone=False)
                self._queues.releases.add(key)

    def _pod(self, old: Pod | None, new: Pod | None) -> None:
        if new is not None and new.lost and (old is None or not old.lost):
            for policy in self._caches.flow_controls.all():  # they count the loss
                self._queues.flow_controls.add(_key(policy.metadata))
        if old is not None and new is not None and _decisive_fields(old) == _decisive_fields(new):
            return  # most changes of a pod do not affect a decision
        # after a gap of the watch, one change may replace a pod by another one of the same name
        stays = old is not None and new is not None and (old.owner, old.metadata.uid) == (new.owner, new.metadata.uid)
        for pod in (old, new):
            key = self._caches.workload_of(pod) if pod is not None else None
            if pod is not None and key is not None:
                if pod is new or not stays:
                    self._groups_cache.on_pod(key, pod, gone=pod is not new)
                self._queues.releases.add(key)

    def _release(self, old: Release | None, new: Release | None) -> None:
        for release in (old, new):
            if release is not None:
                self._queues.releases.add(workload_key(release))
                for order in self._caches.orders_of(release):
                    self._queues.orders.add(order.key)
        if old is not None and new is not None and old.spec.policy != new.spec.policy:
            for batch in self._caches.batches_of(new):  # they have other checks now, and may wait for a person
                if batch.unfinished is not None:
                    self._queues.batches.add(batch.metadata.key)

    def _order(self, old: OpenOrder | None, new: OpenOrder | None) -> None:
        if new is not None:
            self._queues.orders.add(new.key)

    def _batch(self, old: Batch | None, new: Batch | None) -> None:
        batch = new or old
        if batch is None:
            return
        if new is not None and new.unfinished is not None:
            self._queues.batches.add(new.metadata.key)
        release = self._caches.releases.get(*batch.release)
        if release is not None:
            key = workload_key(release)
            self._groups_cache.on_batch(key, batch, release, gone=new is None)
            self._queues.releases.add(key)


def _key(metadata: ObjectMeta) -> Key:
    return metadata.namespace, metadata.name


def _is_deleting(namespace: Namespace) -> bool:
    """Whether the namespace is being deleted."""
    return namespace.metadata.deletion_timestamp is not None


def _budget_fields(workload: Workload) -> tuple[object, ...]:
    """The fields of a workload that decide which budgets are generated for it."""
    metadata = workload.metadata
    return (
        metadata.uid,
        metadata.deleting,
        workload.generates,
        workload.replicas,
        workload.max_unavailable,
        workload.selector,
    )


def _decisive_fields(pod: Pod) -> tuple[object, ...]:
    """The fields of a pod that decisions depend on."""
    return (
        pod.metadata.uid,
        pod.owner,
        pod.hash,
        pod.version,
        pod.finished,
        pod.exists,
        pod.ready,
        pod.ready_at,
        pod.restarts,
        pod.node,
        pod.ip,
        pod.unscheduled,
        pod.creating,
        pod.starting,
        pod.trouble,
    )
