"""Metrics of ReleaseWindows, from the cache."""

from collections.abc import Iterator, Sequence

from prometheus_client.core import GaugeMetricFamily, Metric

from altershield.api.gates.windows import ReleaseWindow
from kube_base.times import unix


def families(windows: Sequence[ReleaseWindow], now: float) -> Iterator[Metric]:
    """How far the times of the windows reach. `now`: Unix seconds."""
    left = GaugeMetricFamily(
        "altershield_release_windows_computed_seconds",
        "Seconds until the times in the status of a ReleaseWindow run out, of the window that runs out first. After "
        "that, an Allow is closed. There is no series without windows in force. All replicas export it.",
    )
    ends = [unix(each.status.computed_until) for each in windows if each.status.accepted is not None]
    if ends:
        left.add_metric([], min(ends) - now)
    yield left
