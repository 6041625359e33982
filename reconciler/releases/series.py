"""The series of single releases: which releases have one, and its labels."""

import heapq
from collections.abc import Callable, Sequence
from typing import TypeVar

from altershield.releases.release import version_of
from altershield.workloads.workload import Workload
from reconciler.cluster.caches import Caches
from reconciler.cluster.ownership import is_controlled_by, workload_key
from reconciler.cluster.release import Release

MAX_RELEASES = 100
"""The number of the oldest releases of each state that are exported, and of the newest releases. Each release is a
series, and many failures at once must not fill Prometheus. The oldest releases have waited for the longest time. The
newest releases show the present problems."""

T = TypeVar("T")


def oldest_and_newest(found: Sequence[T], since: Callable[[T], float]) -> Sequence[T]:
    """At most the `MAX_RELEASES` oldest and the `MAX_RELEASES` newest."""
    if len(found) <= 2 * MAX_RELEASES:
        return found
    return heapq.nsmallest(MAX_RELEASES, found, key=since) + heapq.nlargest(MAX_RELEASES, found, key=since)


def labels_of(release: Release) -> list[str]:
    """The label values of a release: `namespace`, `kind`, `workload`, `version`."""
    workload, namespace, name = workload_key(release)
    return [namespace, workload.kind.lower(), name, version_of(release)]


def governed_workload(release: Release, caches: Caches) -> Workload | None:
    """The workload of a release in a governed namespace; None if it does not exist."""
    key = workload_key(release)
    if not caches.governed(key.namespace) or key.kind not in caches.workloads:
        return None
    workload = caches.workload(key)
    return workload if workload is not None and is_controlled_by(release, workload) else None
