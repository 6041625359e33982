"""The conditions of a PodUnavailableBudget, and when its status is written. Pure functions."""

from collections.abc import Iterable

import msgspec

from altershield.api.budgets import BudgetCondition, PodUnavailableBudget, PodUnavailableBudgetStatus
from altershield.api.meta import Condition, set_condition
from altershield.budgets.numbers import Numbers

_WRITE_EVERY = 1.0  # seconds


def with_conditions(
    status: PodUnavailableBudgetStatus, found: Numbers, overlapping: Iterable[str], generation: int, now: float
) -> PodUnavailableBudgetStatus:
    """The status with its conditions. `overlapping`: the names of other budgets that cover pods of this one."""
    others = sorted(overlapping)
    if found.allowed:
        allowed = Condition(BudgetCondition.ALLOWED, "True", "SufficientPods")
    elif found.desired >= found.total:
        message = "all pods have to be available, so no disruption is ever admitted"
        allowed = Condition(BudgetCondition.ALLOWED, "False", "NoDisruptionEver", message)
    else:
        allowed = Condition(BudgetCondition.ALLOWED, "False", "InsufficientPods", "too few pods are available")
    if others:
        message = (
            f"other budgets cover pods of this budget, and each has to admit a disruption: {', '.join(others[:5])}"
        )
        overlap = Condition(BudgetCondition.OVERLAPPING, "True", "CoversTheSamePods", message)
    else:
        overlap = Condition(BudgetCondition.OVERLAPPING, "False", "NoOtherBudget")
    conditions = status.conditions
    for each in (allowed, overlap):
        conditions = set_condition(conditions, msgspec.structs.replace(each, observed_generation=generation), now)
    return msgspec.structs.replace(status, conditions=conditions)


def wait(budget: PodUnavailableBudget, wanted: PodUnavailableBudgetStatus, written: float, now: float) -> float:
    """Seconds until the status is written; 0: now. `written`: when it was written last. It is written at most once a
    second, because pods of a release change often. A new spec, slots that become free, and lost pods are written at
    once, because people and gatekeepers wait for them."""
    urgent = (
        wanted.observed_generation != budget.status.observed_generation
        or wanted.unavailable_allowed > budget.status.unavailable_allowed
        or len(wanted.disrupted_pods) < len(budget.status.disrupted_pods)
        or len(wanted.unavailable_pods) < len(budget.status.unavailable_pods)
        or bool(wanted.ungated_pods.keys() - budget.status.ungated_pods.keys())
    )
    return 0.0 if urgent else max(0.0, written + _WRITE_EVERY - now)
