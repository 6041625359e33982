"""Metrics of ReleaseLimits, from the cache."""

from collections.abc import Iterator, Sequence

from prometheus_client.core import GaugeMetricFamily, Metric

from altershield.api.gates.limits import ReleaseLimit

MAX_SERIES = 100
"""The maximum number of limits with a series."""


def families(limits: Sequence[ReleaseLimit]) -> Iterator[Metric]:
    """Which fuses have tripped."""
    tripped = GaugeMetricFamily(
        "altershield_release_fuse_tripped",
        "1 for each ReleaseLimit whose fuse tripped and whose ReleaseFreeze has not ended; at most "
        f"{MAX_SERIES} of them. `limit_namespace`, `limit`: the ReleaseLimit. All replicas export it.",
        labels=["limit_namespace", "limit"],
    )
    names = sorted((each.metadata.namespace, each.metadata.name) for each in limits if each.status.trip is not None)
    for name in names[:MAX_SERIES]:
        tripped.add_metric(name, 1)
    yield tripped
