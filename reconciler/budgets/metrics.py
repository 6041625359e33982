"""Metrics of PodUnavailableBudgets, from the cache."""

import heapq
from collections.abc import Iterator, Sequence
from enum import StrEnum

from prometheus_client.core import GaugeMetricFamily, Metric

from altershield.api.budgets import PodUnavailableBudget

_MAX_BUDGETS = 100
"""The maximum number of overdrawn budgets with a series each, so that the loss of many nodes does not fill
Prometheus."""


class State(StrEnum):
    """The state of a budget, from its status: the first one that applies."""

    NOT_RECONCILED = "not-reconciled"
    """The status does not describe the present spec."""
    OVERDRAWN = "overdrawn"
    """Fewer pods are available than have to be."""
    USED_UP = "used-up"
    """As many pods are available as have to be, so no disruption is admitted."""
    FREE = "free"
    """A disruption is admitted."""


def families(budgets: Sequence[PodUnavailableBudget]) -> Iterator[Metric]:
    """The number of budgets in each state, and how many pods the overdrawn ones lack."""
    states = [state(budget) for budget in budgets]
    counts = GaugeMetricFamily(
        "altershield_budgets",
        "PodUnavailableBudgets of governed namespaces, by state. `overdrawn`: fewer pods are available than have to "
        "be. `used-up`: exactly as many are available. `not-reconciled`: the status does not describe the spec. All "
        "replicas export it.",
        labels=["state"],
    )
    for each in State:
        counts.add_metric([each], states.count(each))
    missing = GaugeMetricFamily(
        "altershield_budget_missing_pods",
        "The number of pods that an overdrawn PodUnavailableBudget lacks. Only the "
        f"{_MAX_BUDGETS} budgets that lack most pods have a series. All replicas export it.",
        labels=["namespace", "budget"],
    )
    overdrawn = [budget for budget, found in zip(budgets, states, strict=True) if found is State.OVERDRAWN]
    for budget in heapq.nlargest(_MAX_BUDGETS, overdrawn, key=_missing):
        missing.add_metric([budget.metadata.namespace, budget.metadata.name], _missing(budget))
    yield from (counts, missing)


def state(budget: PodUnavailableBudget) -> State:
    """The state of a budget."""
    status = budget.status
    if status.observed_generation != budget.metadata.generation:
        return State.NOT_RECONCILED
    if _missing(budget) > 0:
        return State.OVERDRAWN
    return State.FREE if status.unavailable_allowed else State.USED_UP


def _missing(budget: PodUnavailableBudget) -> int:
    return budget.status.desired_available - budget.status.current_available
