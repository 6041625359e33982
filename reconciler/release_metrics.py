"""Which releases there are, and which have not succeeded: since when, and whose verdict it was."""

import heapq
from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric

from altershield.api import names
from altershield.api.kinds import ChangeWorkload, ConditionType, WorkloadState
from altershield.api.meta import find_condition
from reconciler.caches import Caches, current
from reconciler.decisions.change_pods import FailedBy

_MAX_RELEASES = 100
"""Of one state. Each is a series, and a bad day must not fill Prometheus."""

_GIVERS = {FailedBy.PERSON: "person", FailedBy.SERVER: "server"}


def releases(caches: Caches) -> Iterator[Metric]:
    """How many records are in each state, and the oldest ones of those that want attention."""
    by_state: dict[str, list[ChangeWorkload]] = {state: [] for state in WorkloadState.ALL}
    for record in caches.change_workloads.all():
        # what is in no known state is taken up from the first one
        by_state.get(record.status.status, by_state[WorkloadState.INIT]).append(record)
    counts = GaugeMetricFamily("altershield_releases", "Versions on record, by state.", labels=["state"])
    entered = GaugeMetricFamily(
        "altershield_release_entered_timestamp_seconds",
        "When a release that has not succeeded entered its state: each Deployment's present one, and those that were "
        f"rolled back and are denied since. At most the {_MAX_RELEASES} oldest of each state. All replicas show them.",
        labels=["namespace", "deployment", "version", "state", "by"],
    )
    for state, records in by_state.items():
        counts.add_metric([state], len(records))
        still = [record for record in records if _wants_attention(record, caches)]
        for record in heapq.nsmallest(_MAX_RELEASES, still, key=_entered):
            metadata = record.metadata
            name = metadata.controller.name if metadata.controller else ""
            series = [metadata.namespace, name, names.version_of(metadata.name), state, _failed_by(record, caches)]
            entered.add_metric(series, _entered(record))
    yield from (counts, entered)


def _wants_attention(record: ChangeWorkload, caches: Caches) -> bool:
    state = record.status.status
    if state == WorkloadState.SUCCESS or not caches.governed(record.metadata.namespace):
        return False
    deployment = caches.deployment_of(record)
    if state == WorkloadState.FAILED:
        rolled_back = find_condition(record.status.conditions, ConditionType.ROLLED_BACK)
        return deployment is not None and rolled_back is not None and rolled_back.is_true
    return current(record, deployment)


def _entered(record: ChangeWorkload) -> int:
    return record.status.entry_time_unix or record.spec.create_time_unix


def _failed_by(record: ChangeWorkload, caches: Caches) -> str:
    """Whose verdict the failed pods have, a person's before a server's; empty where no pod failed."""
    failed = {pod.pod for pod in record.status.defense_check_fail_pods}
    if not failed:
        return ""
    givers = set()
    for change_pod in caches.change_pods_of(record)[0]:
        verified = find_condition(change_pod.status.conditions, ConditionType.VERIFIED)
        if verified is not None and failed & {pod.pod for pod in change_pod.spec.pod_infos}:
            givers.add(_GIVERS.get(verified.reason, ""))
    return min(filter(None, givers), default="")
