"""Whether two budgets protect the same pods."""

from collections.abc import Iterable, Sequence

from altershield.api import labels
from altershield.api.budgets import PodUnavailableBudget, PodUnavailableBudgetSpec
from altershield.budgets.coverage import Scales, covers, is_ignored, is_target
from altershield.budgets.index import Group


def overlap(
    spec: PodUnavailableBudgetSpec,
    others: Iterable[PodUnavailableBudget],
    groups: Iterable[Group],
    scales: Scales,
) -> str:
    """What a new budget with this `spec` shares with one of `others`; empty: nothing. `groups`: the pods of the
    namespace. Budgets that AlterShield made give way to those of users, so they do not count."""
    users = [each for each in others if each.metadata.labels.get(labels.MANAGED_BY) != labels.MANAGED_BY_VALUE]
    for other in users:
        if spec.target_ref and other.spec.target_ref and is_target(spec.target_ref, other.spec.target_ref):
            return f"{other.metadata.name} has the same target"
    if not users:
        return ""
    for group in groups:
        if _protects(spec, group, scales):
            for other in users:
                if _protects(other.spec, group, scales):
                    name = next((pod.name for pod in group.pods.values() if pod.exists), "")
                    if name:
                        return f"{other.metadata.name} covers pod {name} too"
    return ""


def overlapping(
    budget: PodUnavailableBudget, others: Sequence[PodUnavailableBudget], groups: Iterable[Group], scales: Scales
) -> set[str]:
    """The names of the budgets that cover a pod of this one. `groups`: the pods of the namespace."""
    others = [each for each in others if each.metadata.uid != budget.metadata.uid]
    if not others:
        return set()
    own = [group for group in groups if _protects(budget.spec, group, scales)]
    return {each.metadata.name for each in others if any(_protects(each.spec, group, scales) for group in own)}


def _protects(spec: PodUnavailableBudgetSpec, group: Group, scales: Scales) -> bool:
    return covers(spec, group.owner, group.labels, scales) and not is_ignored(spec, group.labels)
