"""The changes of the generated budgets of a workload. Pure functions."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from altershield.api import labels
from altershield.api.budgets import PodUnavailableBudget
from altershield.api.label_selectors import selects
from altershield.api.resources import POD_UNAVAILABLE_BUDGETS
from altershield.budget_caches.disruption_budgets import DisruptionBudget
from kube_base.meta import ObjectMeta
from kube_base.resources import DISRUPTION_BUDGETS, Resource
from reconciler.generated_budgets.wanted import MAX_UNAVAILABLE, MIN_AVAILABLE, Amount, BudgetKind, Invalid

Object = dict[str, Any]

RESOURCES = {BudgetKind.PUB: POD_UNAVAILABLE_BUDGETS, BudgetKind.PDB: DISRUPTION_BUDGETS}

_MAX_NAME = 253


Budget = PodUnavailableBudget | DisruptionBudget


def is_of(budget: Budget, uid: str) -> bool:
    """Whether the budget was generated for the workload with this uid."""
    owner = budget.metadata.controller
    return owner is not None and owner.uid == uid and _is_generated(budget)


def is_by_user(budget: Budget) -> bool:
    """Whether a user or another controller made the budget. It may also have the workload as its owner."""
    return budget.metadata.controller is None or not _is_generated(budget)


def _is_generated(budget: Budget) -> bool:
    return budget.metadata.labels.get(labels.MANAGED_BY) == labels.MANAGED_BY_VALUE


def amount(budget: Budget) -> Amount | None:
    """The amount in the spec of a budget; None: there is none."""
    spec = budget.spec
    if spec.max_unavailable is not None:
        return Amount(MAX_UNAVAILABLE, spec.max_unavailable)
    return Amount(MIN_AVAILABLE, spec.min_available) if spec.min_available is not None else None


class LiveWorkload(NamedTuple):
    """The workload, as the API server has it now. `selector` and `template_labels` are those of its manifest."""

    resource: Resource
    metadata: ObjectMeta
    replicas: int
    selector: Object
    template_labels: dict[str, str]


class Plan(NamedTuple):
    """At most one of `create` and `replace` is set. `reason` and `message` are those of an Event about the workload."""

    create: Object | None = None
    replace: tuple[Budget, Object] | None = None
    """A budget and its new spec."""
    delete: tuple[Budget, ...] = ()
    reason: str = ""
    message: str = ""


def plan(kind: BudgetKind, wanted: Amount | Invalid | None, workload: LiveWorkload, budgets: Sequence[Budget]) -> Plan:
    """The changes of the generated budget. `budgets`: all budgets of this kind in the namespace.

    A budget of a user has precedence: two PodDisruptionBudgets for a pod make each eviction fail. A workload with one
    replica gets none, because it would block each drain of a node.
    """
    own = tuple(each for each in budgets if is_of(each, workload.metadata.uid))
    if isinstance(wanted, Invalid):
        return Plan(delete=own, reason="BudgetInvalid", message=wanted.message)
    if wanted is None or workload.replicas <= 1 or workload.metadata.deletion_timestamp is not None:
        return Plan(delete=own)
    other = next((each for each in budgets if is_by_user(each) and _covers(each, workload)), None)
    if other is not None:
        message = (
            f"no {RESOURCES[kind].kind} is generated: {other.metadata.name} of this namespace covers the pods already"
        )
        return Plan(delete=own, reason="BudgetSkipped", message=message)
    spec = _spec(kind, wanted, workload)
    if own:
        kept, *surplus = own
        changed = amount(kept) != wanted or not _covers(kept, workload)
        return Plan(replace=(kept, spec) if changed else None, delete=tuple(surplus))
    return Plan(create=_manifest(kind, spec, workload, {each.metadata.name for each in budgets}))


def _covers(budget: Budget, workload: LiveWorkload) -> bool:
    """Whether the budget covers the pods that the workload creates. An empty selector selects all pods of the
    namespace."""
    spec = budget.spec
    if spec.target_ref is not None:
        reference = spec.target_ref
        return (reference.group_kind, reference.name) == (workload.resource.group_kind, workload.metadata.name)
    if spec.selector is None:
        return False
    return selects(spec.selector.match_labels or {}, spec.selector.match_expressions, workload.template_labels)


def _spec(kind: BudgetKind, wanted: Amount, workload: LiveWorkload) -> Object:
    resource, name = workload.resource, workload.metadata.name
    covered: Object = (
        {"targetRef": {"apiVersion": resource.api_version, "kind": resource.kind, "name": name}}
        if kind == BudgetKind.PUB
        else {"selector": workload.selector}
    )
    return {**covered, wanted.field: wanted.amount}


def _manifest(kind: BudgetKind, spec: Object, workload: LiveWorkload, taken: set[str]) -> Object:
    metadata, resource = workload.metadata, workload.resource
    name = metadata.name
    if name in taken:
        ending = f"-{resource.kind.lower()}-auto"
        name = name[: _MAX_NAME - len(ending)] + ending
    owner = {"apiVersion": resource.api_version, "kind": resource.kind, "name": metadata.name, "uid": metadata.uid}
    return {
        "apiVersion": RESOURCES[kind].api_version,
        "kind": RESOURCES[kind].kind,
        "metadata": {
            "name": name,
            "labels": {labels.MANAGED_BY: labels.MANAGED_BY_VALUE},
            "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
        },
        "spec": spec,
    }
