"""Metrics of ReleaseWindows, from the cache."""

from collections.abc import Iterator, Sequence

from prometheus_client.core import GaugeMetricFamily, Metric

from altershield.api.gates.windows import ReleaseWindow
from kube_base.access.objects import key_of
from kube_base.times import unix

MAX_GATES = 100
"""The maximum number of objects of a kind with a series each, so that nobody can fill Prometheus."""


def families(windows: Sequence[ReleaseWindow], system_namespace: str, now: float) -> Iterator[Metric]:
    """Which windows are open, and how far their times reach. `now`: Unix seconds."""
    yield from (_open(windows, system_namespace), _computed(windows, now))


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
