"""Budgets as a table, as lines and as data. Pure functions."""

from collections.abc import Sequence

from altershield.api.budgets import PodUnavailableBudgetSpec
from altershield.budgets.coverage import as_query
from altershield.budgets.texts import amount
from altershield.views.budgets.figures import Detail, Figures, record_line
from altershield.views.names import printable
from command.columns import Columns

_UNKNOWN = "<unknown>"


def table(shown: Sequence[Figures], *, namespaces: bool, wide: bool) -> list[str]:
    """A line for each budget, and the header."""
    header = (
        *(("NAMESPACE",) if namespaces else ()),
        *("NAME", "MODE", "ALLOWED", "AVAILABLE", "DESIRED", "TOTAL", "RECORDS"),
        *(("PODS", "AMOUNT", "PROTECTS FROM") if wide else ()),
        "PROBLEM",
    )
    rows = [_row(each, namespaces=namespaces, wide=wide) for each in shown]
    return Columns(len(header)).lines([header, *rows])


def _row(shown: Figures, *, namespaces: bool, wide: bool) -> tuple[str, ...]:
    metadata, spec, found = shown.budget.metadata, shown.budget.spec, shown.numbers
    counts = (
        (str(found.allowed), str(found.current), str(found.desired), str(found.total)) if found else (_UNKNOWN,) * 4
    )
    return (
        *((metadata.namespace,) if namespaces else ()),
        *(metadata.name, str(spec.mode), *counts, str(len(shown.records))),
        *((_pods(spec), amount(spec), ",".join(spec.protect_operations)) if wide else ()),
        printable("; ".join(shown.problems)),
    )


def _pods(spec: PodUnavailableBudgetSpec) -> str:
    """Which pods a budget covers."""
    if spec.target_ref is not None:
        return f"{spec.target_ref.kind.lower()}/{spec.target_ref.name}"
    return as_query(spec.selector) if spec.selector is not None else ""


def lines(shown: Detail, now: float, *, wide: bool) -> list[str]:
    """The table of one budget, its records, and what keeps its pods away."""
    found = table([shown.figures], namespaces=False, wide=wide)
    found += _listed("Disruptions that were admitted, and that the pods do not show yet", [
        (each.pod, record_line(each, now)) for each in shown.figures.records
    ])  # fmt: skip
    found += _listed("Pods that are not available", shown.away)
    if shown.missing:
        found.append(f"Pods that should be there and are not: {shown.missing}")
    if shown.blocking:
        found.append(f"PodDisruptionBudgets that allow no eviction of these pods: {', '.join(shown.blocking)}")
    return [printable(line) for line in found]


def _listed(title: str, entries: Sequence[tuple[str, str]]) -> list[str]:
    width = max((len(name) for name, _ in entries), default=0)
    return [f"{title}:", *(f"  {name.ljust(width)}   {text}" for name, text in entries)] if entries else []
