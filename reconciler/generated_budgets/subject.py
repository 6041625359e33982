"""The subject of generated budgets. A workload is reconciled after the events that may change the budgets that
annotations ask for."""

from altershield.api.namespace import Namespace
from altershield.api.resources import POD_UNAVAILABLE_BUDGETS
from altershield.api.rights import Right
from altershield.workloads import BY_KIND, named_kind
from altershield.workloads.workload import Workload, generates
from kube_base.access.queue import WorkQueue
from kube_base.resources import DISRUPTION_BUDGETS
from reconciler.cluster.caches import Caches
from reconciler.cluster.ownership import WorkloadKey
from reconciler.generated_budgets.budget_plan import Budget
from reconciler.generated_budgets.generated_budget_reconciler import GeneratedBudgetReconciler
from reconciler.subject import Controller, Parts, Subject


class GeneratedBudgetRoutes:
    """Handlers for the events of the caches. `old` is None for a new object, `new` is None for a deleted one."""

    def __init__(self, caches: Caches, queue: WorkQueue[WorkloadKey]) -> None:
        self._caches = caches
        self._queue = queue
        caches.namespaces.add_handler(self._namespace)
        for workloads in caches.workloads.values():
            workloads.add_handler(self._workload)
        caches.budgets.budgets_informer.add_handler(self._budget)
        caches.budgets.disruption_budgets.add_handler(self._budget)

    def _namespace(self, old: Namespace | None, new: Namespace | None) -> None:
        if not self._caches.namespaces.synced:
            return  # other informers list their objects only after this one is filled
        if new is not None and (
            old is None or generates(old.metadata.annotations) != generates(new.metadata.annotations)
        ):
            self._generate_in(new.metadata.name)

    def _workload(self, old: Workload | None, new: Workload | None) -> None:
        """Queue a workload whose generated budgets may have to change. The garbage collector deletes the budgets of a
        deleted workload."""
        if new is None or (old is not None and _budget_fields(old) == _budget_fields(new)):
            return
        namespace = self._caches.namespaces.get("", new.metadata.namespace)
        by_workload = new.generates or (old is not None and old.generates)
        if by_workload or (namespace is not None and generates(namespace.metadata.annotations)):
            self._queue.add(WorkloadKey(new.group_kind, new.metadata.namespace, new.metadata.name))

    def _budget(self, old: Budget | None, new: Budget | None) -> None:
        """Queue the workload of a generated budget. A budget of a user may cover any workload of its namespace."""
        if old is not None and new is not None and (old.metadata.labels, old.spec) == (new.metadata.labels, new.spec):
            return
        for budget in (old, new):
            if budget is None:
                continue
            owner, namespace = budget.metadata.controller, budget.metadata.namespace
            if owner is None:
                self._generate_in(namespace, if_asked=True)
            elif (kind := named_kind(owner)) in BY_KIND:
                self._queue.add(WorkloadKey(kind, namespace, owner.name))

    def _generate_in(self, namespace: str, *, if_asked: bool = False) -> None:
        """Queue all workloads of the namespace, or only those for which annotations ask for budgets."""
        found = self._caches.namespaces.get("", namespace)
        every = not if_asked or (found is not None and generates(found.metadata.annotations))
        for each in self._caches.workloads_in(namespace):
            if every or each.generates:
                self._queue.add(WorkloadKey(each.group_kind, namespace, each.metadata.name))


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


def start(parts: Parts[WorkloadKey]) -> Controller[WorkloadKey]:
    GeneratedBudgetRoutes(parts.caches, parts.queue)
    budgets = GeneratedBudgetReconciler(parts.client, parts.caches, parts.writer, parts.recorder)
    return Controller(reconcile=budgets.reconcile)


_VERBS = ("create", "patch", "delete")

GENERATED_BUDGETS = Subject(
    "generated-budgets",
    start,
    rights=(
        Right((POD_UNAVAILABLE_BUDGETS,), "create patch delete", why="The budgets that annotations ask for."),
        Right((DISRUPTION_BUDGETS,), "list watch create patch delete"),
    ),
    writes=((POD_UNAVAILABLE_BUDGETS, _VERBS), (DISRUPTION_BUDGETS, _VERBS)),
)
