"""The subject of PodUnavailableBudgets. A budget is reconciled after the events that change its status."""

from collections.abc import Set

from altershield.api.budgets import KIND, PodUnavailableBudget, PodUnavailableBudgetSpec
from altershield.api.resources import POD_UNAVAILABLE_BUDGETS
from altershield.api.rights import Right
from altershield.budget_caches.caches import BudgetCaches
from altershield.budgets.coverage import Scales, covers, refers_to
from altershield.budgets.index import Group
from altershield.budgets.pods import Pod
from altershield.budgets.scaled import Scaled
from kube_base.access.queue import WorkQueue
from reconciler.budgets.budget_reconciler import BudgetReconciler
from reconciler.budgets.departures import Departures
from reconciler.budgets.metrics import families
from reconciler.cluster.caches import Key
from reconciler.cluster.gauges import Gauges
from reconciler.subject import Controller, Parts, Subject


class BudgetRoutes:
    """Handlers for the events of the caches. `old` is None for a new object, `new` is None for a deleted one."""

    def __init__(self, caches: BudgetCaches, queue: WorkQueue[Key], departures: Departures) -> None:
        self._caches = caches
        self._queue = queue
        self._departures = departures
        caches.budgets_informer.add_handler(self._budget)
        caches.pods_informer.add_handler(self._pod, evicted=lambda old: None)
        caches.add_scaled_handler(self._scaled)
        caches.namespaces.add_handler(self._all)

    def _budget(self, old: PodUnavailableBudget | None, new: PodUnavailableBudget | None) -> None:
        for budget in (old, new):
            if budget is not None:
                self._queue.add((budget.metadata.namespace, budget.metadata.name))
        if old is not None:
            key = (old.metadata.namespace, old.metadata.name)
            if new is None:
                self._departures.forget(key)
            elif dropped := old.status.disrupted_pods.keys() - new.status.disrupted_pods.keys():
                self._departures.drop_records(key, dropped)
        if old is None or new is None or old.spec != new.spec:  # it may overlap with other budgets
            self._all((new or old).metadata.namespace)  # type: ignore[union-attr]

    def _pod(self, old: Pod | None, new: Pod | None) -> None:
        if old is not None and new is not None and _of_pod(old) == _of_pod(new):
            return
        pod = new or old
        # until all pods are listed, budgets are queued by their own events: comparing all pods takes long
        if pod is None or not self._caches.is_filled(pod.namespace):
            return
        for budget in self._caches.budgets(pod.namespace):
            covered = [each for each in (old, new) if each is not None and self._covers(budget, each)]
            if not covered:
                continue
            key = (budget.metadata.namespace, budget.metadata.name)
            self._queue.add(key)
            if old is not None and old in covered:
                self._departures.add(key, old, new)

    def _covers(self, budget: PodUnavailableBudget, pod: Pod) -> bool:
        return covers(budget.spec, pod.owner, pod.labels, self._caches.scales.of(pod.namespace))

    def _scaled(self, old: Scaled | None, new: Scaled | None) -> None:
        if old is not None and new is not None and _of_scaled(old) == _of_scaled(new):
            return
        changed = [each for each in (old, new) if each is not None]
        namespace = changed[0].namespace
        if not self._caches.is_filled(namespace):
            return
        # only the budgets of its pods: a namespace may have thousands of budgets, and its workloads change all the time
        scales = self._caches.scales.of(namespace)
        uids = {uid for each in changed for uid in (each.uid, each.owner.uid) if uid}
        groups = [each for each in self._caches.index.groups(namespace) if _has_controller(each, uids, scales)]
        for budget in self._caches.budgets(namespace):
            spec = budget.spec
            if any(_is_named(spec, each) for each in changed) or any(
                covers(spec, each.owner, each.labels, scales) for each in groups
            ):
                self._queue.add((namespace, budget.metadata.name))

    def _all(self, namespace: str) -> None:
        for budget in self._caches.budgets(namespace):
            self._queue.add((namespace, budget.metadata.name))


def _of_pod(pod: Pod) -> tuple[object, ...]:
    """The fields that decide whether a budget covers the pod, and how the pod counts."""
    return pod.labels, pod.owner, pod.flags, pod.containers


def _has_controller(group: Group, uids: Set[str], scales: Scales) -> bool:
    """Whether one of these uids is that of the controller of these pods, or of the controller of their controller."""
    if group.owner.uid in uids:
        return True
    controller = scales.get(group.owner) if group.owner.uid else None
    return controller is not None and controller.owner.uid in uids


def _is_named(spec: PodUnavailableBudgetSpec, scaled: Scaled) -> bool:
    """Whether a budget names the object, or its controller."""
    reference = spec.target_ref
    if reference is None:
        return False
    own = (scaled.group_kind, scaled.name) == (reference.group_kind, reference.name)
    return own or (bool(scaled.owner.uid) and refers_to(reference, scaled.owner))


def _of_scaled(scaled: Scaled) -> tuple[object, ...]:
    """The fields that decide how many pods there should be."""
    return scaled.replicas, scaled.deleting, scaled.owner


def start(parts: Parts[Key]) -> Controller[Key]:
    caches, departures = parts.caches.budgets, Departures(parts.clock)
    BudgetRoutes(caches, parts.queue, departures)
    parts.registry.register(Gauges(lambda: families(caches.budgets_informer.all())))
    budgets = BudgetReconciler(
        parts.client, caches, parts.writer, parts.recorder, parts.disruptions, departures, parts.clock
    )
    return Controller(reconcile=budgets.reconcile)


BUDGETS = Subject(
    "budgets",
    start,
    kinds=(KIND,),
    rights=(
        Right((POD_UNAVAILABLE_BUDGETS,), "get list watch", why="`get` after a conflict of two writers of the status."),
        Right((POD_UNAVAILABLE_BUDGETS,), "update", "status"),
    ),
    writes=((POD_UNAVAILABLE_BUDGETS, ("update status",)),),
)
