"""Whether two budgets protect the same pods."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from altershield.api import labels
from altershield.api.budgets import PodUnavailableBudget, PodUnavailableBudgetSpec
from altershield.budgets.coverage import Scales, covers, is_ignored, is_target
from altershield.budgets.index import Group

_MAX_COMPARED = 10_000
"""The pairs of a budget and a group of pods that are compared at most: a namespace with very many of both must not keep
a process from other work. An overlap that is not found takes no protection away, because all budgets have to agree."""


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
    for group, other in _pairs(spec, users, groups, scales):
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
    found: set[str] = set()
    for group, other in _pairs(budget.spec, others, groups, scales):
        if other.metadata.name not in found and _protects(other.spec, group, scales):
            found.add(other.metadata.name)
    return found


def _pairs(
    spec: PodUnavailableBudgetSpec,
    others: Sequence[PodUnavailableBudget],
    groups: Iterable[Group],
    scales: Scales,
) -> Iterator[tuple[Group, PodUnavailableBudget]]:
    """The groups that `spec` protects, each with each of `others`."""
    own = (group for group in groups if _protects(spec, group, scales))
    return islice(((group, other) for group in own for other in others), _MAX_COMPARED)


def _protects(spec: PodUnavailableBudgetSpec, group: Group, scales: Scales) -> bool:
    return covers(spec, group.owner, group.labels, scales) and not is_ignored(spec, group.labels)
