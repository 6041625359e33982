"""Which budgets can keep the controller of a workload from deleting available pods."""

from collections.abc import Iterable, Sequence

from altershield.api.budgets import BudgetMode, Operation, PodUnavailableBudget
from altershield.budgets.coverage import Scales, Workload, protects, workload_of
from altershield.budgets.index import Group


def groups_of(workload_uid: str, groups: Iterable[Group], scales: Scales) -> list[Group]:
    """The groups with the pods of this workload. `groups`: the pods of its namespace."""
    return [
        group
        for group in groups
        if isinstance(workload := workload_of(group.owner, scales), Workload) and workload.uid == workload_uid
    ]


def keeps_from_deletion(budget: PodUnavailableBudget, groups: Sequence[Group], scales: Scales) -> bool:
    """Whether the budget protects pods of these groups from deletion, as long as it allows no disruption."""
    spec = budget.spec
    if spec.mode != BudgetMode.ENFORCE or Operation.DELETE not in spec.protect_operations:
        return False
    return any(protects(spec, group.owner, group.labels, scales) for group in groups)
