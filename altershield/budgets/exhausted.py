"""Whether a budget keeps the controller of a workload from deleting available pods."""

from collections.abc import Iterable

from altershield.api.budgets import BudgetMode, Operation, PodUnavailableBudget
from altershield.budgets.coverage import Scales, Workload, protects, workload_of
from altershield.budgets.index import Group
from altershield.budgets.numbers import Numbers


def exhausted(budget: PodUnavailableBudget, found: Numbers) -> bool:
    """Whether the deletion of an available pod would be refused now."""
    spec = budget.spec
    return spec.mode == BudgetMode.ENFORCE and Operation.DELETE in spec.protect_operations and not found.allowed


def protects_workload(budget: PodUnavailableBudget, workload_uid: str, groups: Iterable[Group], scales: Scales) -> bool:
    """Whether a budget protects pods of this workload. `groups`: the pods of its namespace."""
    return any(
        isinstance(workload := workload_of(group.owner, scales), Workload)
        and workload.uid == workload_uid
        and protects(budget.spec, group.owner, group.labels, scales)
        for group in groups
    )
