"""PodUnavailableBudgets as data. Pure functions."""

from collections.abc import Sequence
from typing import Annotated

import msgspec

from altershield.api.schema import doc
from altershield.views.budgets.figures import Detail, Figures
from altershield.views.document import Document, Part, Time
from kube_base.times import rfc3339


class ShownRecord(Part, frozen=True):
    """A disruption that was admitted, and that its pod does not show yet."""

    pod: Annotated[str, doc("The pod.")]
    operation: Annotated[str, doc("What was admitted, as in `status.disruptedPods`.")]
    by: Annotated[str, doc("The user; empty: not known.")]
    since: Annotated[Time, doc("When it was admitted.")]
    runs_out: Annotated[Time, doc("When the record is dropped if nothing happens to the pod.")]


class ShownBudget(Part, frozen=True):
    """A PodUnavailableBudget. Numbers are null until a reconciler has counted its pods."""

    namespace: Annotated[str, doc("Its namespace.")]
    name: Annotated[str, doc("Its name.")]
    mode: Annotated[str, doc("`Enforce` or `Warn`.")]
    allowed: Annotated[int | None, doc("How many pods may be disrupted now.")]
    available: Annotated[int | None, doc("How many pods are available.")]
    desired: Annotated[int | None, doc("How many pods have to stay available.")]
    total: Annotated[int | None, doc("How many pods there should be.")]
    problems: Annotated[tuple[str, ...], doc("What is wrong with it, or keeps it from admitting disruptions.")]
    records: Annotated[tuple[ShownRecord, ...], doc("The disruptions that were admitted.")]


class AwayPod(Part, frozen=True):
    """A pod that is not available."""

    name: Annotated[str, doc("Its name.")]
    why: Annotated[str, doc("Why.")]


class BudgetList(Document, frozen=True):
    """PodUnavailableBudgets, with the numbers of their status."""

    items: Annotated[tuple[ShownBudget, ...], doc("The budgets, by namespace and name.")]


class Budget(ShownBudget, Document, frozen=True):
    """A PodUnavailableBudget with numbers that were counted for this command, and what keeps its pods away."""

    unavailable_pods: Annotated[tuple[AwayPod, ...], doc("The pods that are not available.")]
    missing_pods: Annotated[int, doc("How many pods should be there and are not.")]
    blocking_pod_disruption_budgets: Annotated[
        tuple[str, ...], doc("The PodDisruptionBudgets that allow no eviction of these pods now.")
    ]


def budget_list(found: Sequence[Figures]) -> BudgetList:
    return BudgetList(tuple(map(_shown, found)))


def budget_detail(found: Detail) -> Budget:
    away = tuple(AwayPod(each.pod, each.why) for each in found.away)
    shown = msgspec.structs.asdict(_shown(found.figures))
    return Budget(
        **shown,
        unavailable_pods=away,
        missing_pods=found.missing,
        blocking_pod_disruption_budgets=tuple(found.blocking),
    )


def _shown(figures: Figures) -> ShownBudget:
    metadata, numbers = figures.budget.metadata, figures.numbers
    return ShownBudget(
        namespace=metadata.namespace,
        name=metadata.name,
        mode=str(figures.budget.spec.mode),
        allowed=numbers.allowed if numbers else None,
        available=numbers.current if numbers else None,
        desired=numbers.desired if numbers else None,
        total=numbers.total if numbers else None,
        problems=tuple(figures.problems),
        records=tuple(
            ShownRecord(each.pod, str(each.operation), each.by, rfc3339(each.since), rfc3339(each.runs_out))
            for each in figures.records
        ),
    )
