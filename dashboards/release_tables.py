"""Tables of releases, and the PromQL for them."""

from dashboards.board import values_of
from dashboards.panels import DOCS, Column, Object, Query, Steps, table
from dashboards.queries import CLUSTER

WHERE = f'{CLUSTER}, namespace=~"$workload_namespace"'
"""Selects the series of releases in the chosen namespaces."""

WORKLOADS = values_of(
    "workload_namespace",
    "Workload's namespace",
    "altershield_release_entered_timestamp_seconds",
    "The namespace of the workloads. It filters panels that show workloads or kinds. Other panels show all namespaces.",
)

_FIELD = "${{__data.fields.{}}}"
_WHY = (
    f"altershield why {_FIELD.format('Kind')}/{_FIELD.format('Workload')} -n {_FIELD.format('Namespace')}",
    f"{DOCS}reference/commands.md#altershield-why",
)
"""The link's title is the command that explains the release. Its URL is the description of the command."""


def named(metric: str, which: str, *labels: str) -> str:
    """PromQL for the releases in the labels of a metric. `max`, because every replica shows the same releases."""
    selected = ", ".join(filter(None, (which, WHERE)))
    by = ", ".join(("cluster", "namespace", "kind", "workload", "version", *labels))
    return f"max by ({by}) ({metric}{{{selected}}})"


def listed(title: str, description: str, metric: str, which: str, late: Steps, *more: Column) -> Object:
    since = named(metric, which, *(column.source for column in more))
    return table(
        title,
        description,
        [Query(f"1000 * {since}"), Query(f"time() - {since}")],
        [
            Column("cluster", "Cluster"),
            Column("namespace", "Namespace"),
            Column("kind", "Kind"),
            Column("workload", "Workload", link=_WHY),
            Column("version", "Version"),
            *more,
            Column("Value #A", "Since", "dateTimeAsIso"),
            Column("Value #B", "For", "s", late),
        ],
    )
