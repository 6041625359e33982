"""Whether two budgets protect the same pods."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from altershield.api import labels
from altershield.api.budgets import PodUnavailableBudget, PodUnavailableBudgetSpec
from altershield.budgets.coverage import Scales, protects, refers_to
from altershield.budgets.index import Group

_MAX_COMPARED = 10_000
"""The maximum number of comparisons of a budget with a group of pods. In a namespace with very many of both, more would
keep the process from other work. An overlap that is not found weakens no protection: a disruption passes only if each
budget admits it."""


def overlap(
    spec: PodUnavailableBudgetSpec,
    others: Iterable[PodUnavailableBudget],
    groups: Iterable[Group],
    scales: Scales,
) -> str:
    """The budget of `others` that a new budget with this `spec` overlaps, and their common target or pod, as text;
    empty: there is none. Budgets that AlterShield made do not count, because AlterShield removes them in favor of those
    of users. `groups`: the pods of the namespace."""
    users = [each for each in others if each.metadata.labels.get(labels.MANAGED_BY) != labels.MANAGED_BY_VALUE]
    for other in users:
        if spec.target_ref and other.spec.target_ref and refers_to(spec.target_ref, other.spec.target_ref):
            return f"{other.metadata.name} has the same target"
    if not users:
        return ""
    for group, other in _pairs(spec, users, groups, scales):
        if protects(other.spec, group.owner, group.labels, scales):
            name = next((pod.name for pod in group.pods.values() if pod.exists), "")
            if name:
                return f"{other.metadata.name} covers pod {name} too"
    return ""


def overlapping(
    budget: PodUnavailableBudget, others: Sequence[PodUnavailableBudget], groups: Iterable[Group], scales: Scales
) -> set[str]:
    """The names of the other budgets that protect a pod of this budget. `groups`: the pods of the namespace."""
    others = [each for each in others if each.metadata.uid != budget.metadata.uid]
    if not others:
        return set()
    found: set[str] = set()
    for group, other in _pairs(budget.spec, others, groups, scales):
        name = other.metadata.name
        if name not in found and protects(other.spec, group.owner, group.labels, scales):
            found.add(name)
    return found


def _pairs(
    spec: PodUnavailableBudgetSpec,
    others: Sequence[PodUnavailableBudget],
    groups: Iterable[Group],
    scales: Scales,
) -> Iterator[tuple[Group, PodUnavailableBudget]]:
    """Each group that `spec` protects, with each of `others`."""
    own = (group for group in groups if protects(spec, group.owner, group.labels, scales))
    return islice(((group, other) for group in own for other in others), _MAX_COMPARED)
