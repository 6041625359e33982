"""The records in the status of a budget: the disruptions that were admitted, and when their records are dropped.

A gatekeeper writes a record before it admits a disruption. From then on, the pod counts as not available. The
reconciler that holds the Lease drops the record once the pod shows the disruption, or once the disruption can no longer
happen.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import msgspec

from altershield.api.budgets import MAX_RECORDS, REMOVING, DisruptionRecord, Operation, PodUnavailableBudgetStatus
from altershield.api.meta import time_of
from altershield.budgets.changes import shown
from altershield.budgets.numbers import Numbers
from altershield.budgets.pods import Pod
from kube_base.meta import version_number
from kube_base.times import rfc3339

REQUEST_SECONDS = 34.0
"""The most seconds after the arrival of a request for one object in which an API server may carry it out."""

HOLD = 35.0
"""The least number of seconds for which a record of a deletion or an eviction is kept. Longer than REQUEST_SECONDS."""

CLOCK_ERROR = 5.0
"""Seconds by which the API server's clock may differ between two processes (`kube_base/access/server_clock.py`). They
include the fraction of a second that the time of a record lacks."""

IN_PLACE_HOLD = 600.0
"""Seconds for which a record of a change in place is kept if the pod never shows the change."""

FRESH = 1.0
"""A repeated request passes without a write if its record is at most this many seconds old. Otherwise the record gets
the present time: the request can take effect for another REQUEST_SECONDS."""


def records_for(status: PodUnavailableBudgetStatus, operation: Operation) -> Mapping[str, DisruptionRecord]:
    """The records of deletions and evictions if `operation` is one of them, otherwise the records of changes in
    place."""
    return status.disrupted_pods if operation in REMOVING else status.unavailable_pods


def is_full(status: PodUnavailableBudgetStatus) -> bool:
    """Whether the status has no room for another record."""
    return len(status.disrupted_pods) + len(status.unavailable_pods) >= MAX_RECORDS


def is_fresh(record: DisruptionRecord, now: float) -> bool:
    """Whether a request may pass on this record without writing it again."""
    return now - FRESH <= time_of(record.time, 0.0) <= now + CLOCK_ERROR


def admitted_at(record: DisruptionRecord, now: float) -> float:
    """When the disruption was admitted, in Unix seconds. A time that cannot be read counts as now, and so does a time
    that is later than now by more than CLOCK_ERROR: a person or a wrong clock wrote it."""
    time = time_of(record.time, now)
    return time if time <= now + CLOCK_ERROR else now


def with_record(
    status: PodUnavailableBudgetStatus, pod: Pod, record: DisruptionRecord, after: Numbers
) -> PodUnavailableBudgetStatus:
    """The status with a record of `pod`. `after`: the numbers with this record.

    `podsResourceVersion` becomes at least the version of the pod. So a reconciler whose cache does not have the pod yet
    does not take the pod for deleted.
    """
    removing = record.operation in REMOVING
    changed = {**records_for(status, record.operation), pod.uid: record}
    return msgspec.structs.replace(
        status,
        total_replicas=after.total,
        desired_available=after.desired,
        current_available=after.current,
        unavailable_allowed=after.allowed,
        pods_resource_version=later(status.pods_resource_version, pod.version),
        disrupted_pods=changed if removing else status.disrupted_pods,
        unavailable_pods=status.unavailable_pods if removing else changed,
    )


def without_record(status: PodUnavailableBudgetStatus, uid: str, operation: Operation) -> PodUnavailableBudgetStatus:
    """The status without a record. Call it only for a record that this process wrote, and on which no request
    passed."""
    kept = {key: record for key, record in records_for(status, operation).items() if key != uid}
    if operation in REMOVING:
        return msgspec.structs.replace(status, disrupted_pods=kept)
    return msgspec.structs.replace(status, unavailable_pods=kept)


def later(version: str, other: int) -> str:
    """The later of two resourceVersions."""
    return version if version_number(version) >= other else str(other)


def runs_out(record: DisruptionRecord, now: float) -> float:
    """The time from which a record is dropped even if its pod still exists and does not show the disruption, in Unix
    seconds."""
    return admitted_at(record, now) + (HOLD + CLOCK_ERROR if record.operation in REMOVING else IN_PLACE_HOLD)


class Settled(NamedTuple):
    """The records that are kept, and the `podsResourceVersion` that fits them."""

    disrupted_pods: dict[str, DisruptionRecord]
    unavailable_pods: dict[str, DisruptionRecord]
    pods_resource_version: str
    unread: tuple[str, ...]
    """The names of pods whose records ran out. These pods have to be read live before their records are dropped."""

    def on(self, status: PodUnavailableBudgetStatus, after: Numbers, generation: int) -> PodUnavailableBudgetStatus:
        """The status with these records and numbers, which describe the spec of this generation."""
        return msgspec.structs.replace(
            status,
            observed_generation=generation,
            total_replicas=after.total,
            desired_available=after.desired,
            current_available=after.current,
            unavailable_allowed=after.allowed,
            pods_resource_version=self.pods_resource_version,
            disrupted_pods=self.disrupted_pods,
            unavailable_pods=self.unavailable_pods,
        )


def settled(
    status: PodUnavailableBudgetStatus,
    *,
    find: Callable[[str], Pod | None],
    covered: Callable[[Pod], bool],
    seen: int,
    now: float,
    live: Mapping[str, Pod | None],
) -> Settled:
    """Decide which records are kept, for the reconciler that holds the Lease.

    - `find`: returns the cached pod of a name.
    - `covered`: whether the budget covers a pod.
    - `seen`: the resourceVersion of the newest change of a pod in the cache, or of its last list. That of a bookmark
      does not count, because other processes may not get the bookmark.
    - `now`: the API server's clock.
    - `live`: the pods that an earlier call returned in `unread`, by name, as they were read live; None: there is no
      such pod.

    If the cache is older than `podsResourceVersion`, all records are kept: it may not have a new pod yet.
    """
    if seen < version_number(status.pods_resource_version):
        return Settled(dict(status.disrupted_pods), dict(status.unavailable_pods), status.pods_resource_version, ())
    version = status.pods_resource_version
    unread: list[str] = []
    kept: list[dict[str, DisruptionRecord]] = []
    for records in (status.disrupted_pods, status.unavailable_pods):
        kept.append({})
        for uid, record in records.items():
            pod = find(record.name)
            if pod is None or pod.uid != uid or not pod.exists or shown(record, pod, covered=covered(pod)):
                version = later(version, seen)
                continue
            # A record that ran out is dropped only if a live read returns the pod. A watch that hangs would show a pod
            # that was deleted long ago as available.
            if now > runs_out(record, now):
                if record.name not in live:
                    unread.append(record.name)
                else:
                    alive = live[record.name]
                    if alive is not None and alive.uid == uid and alive.exists:
                        version = later(version, alive.version)
                        continue
            kept[-1][uid] = msgspec.structs.replace(record, time=rfc3339(admitted_at(record, now)))
    return Settled(kept[0], kept[1], version, tuple(unread))


def record(
    pod_name: str, operation: Operation, now: float, by: str, shows: str = "", *, break_glass: bool = False
) -> DisruptionRecord:
    """A record of a disruption at `now`. `by`: the user, already cut to MAX_BY characters. `shows`: how the pod will
    show a change in place. `break_glass`: the budget would have refused the disruption."""
    return DisruptionRecord(pod_name, operation, rfc3339(now), by, shows, break_glass)


def ended_by_break_glass(
    before: PodUnavailableBudgetStatus, after: PodUnavailableBudgetStatus
) -> tuple[DisruptionRecord, ...]:
    """The records of break glass that `before` has and `after` does not have, sorted by the name of the pod. Only the
    reconciler that holds the Lease drops records, so it reports each record once."""
    ended = [
        record
        for old, new in (
            (before.disrupted_pods, after.disrupted_pods),
            (before.unavailable_pods, after.unavailable_pods),
        )
        for uid, record in old.items()
        if record.break_glass and uid not in new
    ]
    return tuple(sorted(ended, key=lambda record: record.name))
