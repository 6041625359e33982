"""Which budget keeps the controller of a workload from deleting pods."""

from collections.abc import Iterable

from altershield.api.budgets import BudgetMode, Operation, PodUnavailableBudget
from altershield.budgets.coverage import Scales, Workload, covers, is_ignored, workload_of
from altershield.budgets.index import Group
from altershield.budgets.numbers import Numbers


def exhausted(budget: PodUnavailableBudget, found: Numbers) -> bool:
    """Whether the deletion of an available pod would be refused now."""
    spec = budget.spec
    return spec.mode == BudgetMode.ENFORCE and Operation.DELETE in spec.protect_operations and not found.allowed


def protects(budget: PodUnavailableBudget, workload_uid: str, groups: Iterable[Group], scales: Scales) -> bool:
    """Whether a budget covers pods of this workload. `groups`: the pods of its namespace."""
    return any(
        isinstance(workload := workload_of(group.owner, scales), Workload)
        and workload.uid == workload_uid
        and covers(budget.spec, group.owner, group.labels, scales)
        and not is_ignored(budget.spec, group.labels)
        for group in groups
    )
