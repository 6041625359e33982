"""Metrics of ReleaseWindows, from the cache."""

from collections.abc import Iterator, Sequence

from prometheus_client.core import GaugeMetricFamily, Metric

from altershield.api.condition_types import ConditionType
from altershield.api.gates.windows import ReleaseWindow
from altershield.api.meta import find_condition
from kube_base.access.objects import key_of
from kube_base.times import unix

MAX_GATES = 100
"""The maximum number of objects of a kind with a series each, so that nobody can fill Prometheus."""


def families(windows: Sequence[ReleaseWindow], system_namespace: str, now: float) -> Iterator[Metric]:
    """How many windows are accepted, which are open, and how far their times reach. `now`: Unix seconds."""
    yield from (_accepted(windows), _open(windows, system_namespace), _computed(windows, now))


def _accepted(windows: Sequence[ReleaseWindow]) -> Metric:
    counts = GaugeMetricFamily(
        "altershield_release_windows",
        "ReleaseWindows by the status of their condition Accepted. `False`: the spec is wrong, and the last accepted "
        "one stays in force. `Unknown`: the status does not describe the spec yet. All replicas export it.",
        labels=["accepted"],
    )
    found = [_acceptance(each) for each in windows]
    for status in ("True", "False", "Unknown"):
        counts.add_metric([status], found.count(status))
    return counts


def _acceptance(window: ReleaseWindow) -> str:
    condition = find_condition(window.status.conditions, ConditionType.ACCEPTED)
    if condition is None or window.status.observed_generation != window.metadata.generation:
        return "Unknown"
    return condition.status


def _open(windows: Sequence[ReleaseWindow], system_namespace: str) -> Metric:
    opened = GaugeMetricFamily(
        "altershield_release_window_open",
        "1 while releases may begin as far as the ReleaseWindow says, 0 while they may not, from its status. Of the "
        f"first {MAX_GATES} ReleaseWindows by namespace and name, those of AlterShield's namespace before the others. "
        "All replicas export it.",
        labels=["namespace", "window", "type", "mode"],
    )
    by_name = sorted(windows, key=lambda each: (each.metadata.namespace != system_namespace, key_of(each.metadata)))
    for each in by_name[:MAX_GATES]:
        if each.status.observed_generation:  # a reconciler has written it
            spec = each.status.accepted or each.spec
            opened.add_metric([*key_of(each.metadata), spec.type, spec.mode], each.status.open)
    return opened


def _computed(windows: Sequence[ReleaseWindow], now: float) -> Metric:
    left = GaugeMetricFamily(
        "altershield_release_windows_computed_seconds",
        "Seconds until the times in the status of a ReleaseWindow run out, of the window that runs out first. After "
        "that, an Allow is closed. There is no series without windows in force. All replicas export it.",
    )
    ends = [unix(each.status.computed_until) for each in windows if each.status.accepted is not None]
    if ends:
        left.add_metric([], min(ends) - now)
    return left
