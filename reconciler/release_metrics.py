"""Which releases there are, and which have not succeeded: since when, by whose verdict, and what they wait for."""

import heapq
from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric

from altershield import releases
from altershield.api.kinds import WorkloadState
from altershield.releases.record import version
from reconciler.caches import Caches, belongs, workload_key
from reconciler.releases.kept import Kept

_MAX_RELEASES = 100
"""Of one state. Each is a series, and a bad day must not fill Prometheus."""


def families(caches: Caches) -> Iterator[Metric]:
    """How many records are in each state, and the oldest ones of those that want attention."""
    by_state: dict[WorkloadState, list[Kept]] = {state: [] for state in WorkloadState}
    for record in caches.records.all():
        by_state[releases.state(record)].append(record)
    counts = GaugeMetricFamily("altershield_releases", "Versions on record, by state.", labels=["state"])
    entered = GaugeMetricFamily(
        "altershield_release_entered_timestamp_seconds",
        "When a release that has not succeeded entered its state: each workload's present one, and those that were "
        f"rolled back and are denied since. At most the {_MAX_RELEASES} oldest of each state. All replicas show them.",
        labels=["namespace", "kind", "workload", "version", "state", "by", "stalled"],
    )
    for state, records in by_state.items():
        counts.add_metric([state], len(records))
        if state is WorkloadState.SUCCESS:
            continue
        still = [record for record in records if _wants_attention(record, caches)]
        for record in heapq.nsmallest(_MAX_RELEASES, still, key=releases.since):
            kind, namespace, name = workload_key(record)
            waits = releases.stalled(record)
            series = [namespace, kind.lower(), name, version(record), state]
            entered.add_metric(
                [*series, releases.failed_by(record), waits.reason if waits is not None else ""], releases.since(record)
            )
    yield from (counts, entered)


def _wants_attention(record: Kept, caches: Caches) -> bool:
    key = workload_key(record)
    if not caches.governed(key.namespace) or key.kind not in caches.workloads:
        return False
    workload = caches.workload(key)
    if workload is None or not belongs(record, workload):
        return False
    return releases.wants_attention(record, workload)
