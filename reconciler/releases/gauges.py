"""Metrics of releases: their number in each state, and the oldest and newest releases that have not succeeded. Also the
settings and the modes of policies, which decide the consequences of a failure."""

import heapq
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from prometheus_client.core import GaugeMetricFamily, Metric

from altershield import releases
from altershield.api.change_workload import WorkloadState
from altershield.api.condition_types import ConditionType
from altershield.api.meta import find_condition, time_of
from altershield.api.ops_config import BLOCKING, BRANCH, ROLLBACK
from altershield.api.policy import Mode
from altershield.releases.release import version_of
from reconciler.cluster.caches import Caches
from reconciler.cluster.ownership import is_controlled_by, workload_key
from reconciler.cluster.release import Release

_MAX_RELEASES = 100
"""The number of the oldest releases of each state that are exported, and of the newest releases. Each release is a
series, and many failures at once must not fill Prometheus. The oldest releases have waited for the longest time. The
newest releases show the present problems."""

T = TypeVar("T")


def families(caches: Caches) -> Iterator[Metric]:
    """The number of ChangeWorkloads in each state, the oldest and newest releases that need attention, the settings,
    and the modes of policies."""
    by_state: dict[WorkloadState, list[Release]] = {state: [] for state in WorkloadState}
    for release in caches.releases.all():
        by_state[releases.state(release)].append(release)
    counts = GaugeMetricFamily("altershield_releases", "ChangeWorkloads, by state.", labels=["state"])
    entered = GaugeMetricFamily(
        "altershield_release_entered_timestamp_seconds",
        "When a release that has not succeeded entered its state: each workload's current one, unless it has no pods "
        "to verify (condition NoReplicas), and versions that were rolled back and are now denied. At most the "
        f"{_MAX_RELEASES} oldest and the {_MAX_RELEASES} newest of each state. All replicas export them.",
        labels=["namespace", "kind", "workload", "version", "state", "by", "stalled"],
    )
    stalled = GaugeMetricFamily(
        "altershield_release_stalled_timestamp_seconds",
        "Since when a workload's current release does not go on, and the cause is not the release (condition "
        f"Stalled). At most the {_MAX_RELEASES} oldest and the {_MAX_RELEASES} newest. All replicas export them.",
        labels=["namespace", "kind", "workload", "version", "reason"],
    )
    waiting: list[tuple[float, list[str]]] = []
    for state, in_state in by_state.items():
        counts.add_metric([state], len(in_state))
        if state is WorkloadState.SUCCESS:
            continue
        wanting = [release for release in in_state if _wants_attention(release, caches)]
        waiting += [found for release in wanting if (found := _stalled(release)) is not None]
        for release in _oldest_and_newest(wanting, releases.since):
            condition = releases.stalled(release)
            reason = condition.reason if condition is not None else ""
            entered.add_metric([*_series(release), state, releases.failed_by(release), reason], releases.since(release))
    for since, series in _oldest_and_newest(waiting, lambda each: each[0]):
        stalled.add_metric(series, since)
    yield from (counts, entered, stalled)
    yield from _enforcement(caches)


def _oldest_and_newest(found: Sequence[T], since: Callable[[T], float]) -> Sequence[T]:
    if len(found) <= 2 * _MAX_RELEASES:
        return found
    return heapq.nsmallest(_MAX_RELEASES, found, key=since) + heapq.nlargest(_MAX_RELEASES, found, key=since)


def _enforcement(caches: Caches) -> Iterator[Metric]:
    """The settings and the modes of policies, which decide whether a failure has consequences."""
    settings = caches.in_effect()
    enabled = GaugeMetricFamily(
        "altershield_setting_enabled",
        "1 while the setting is on. While `blocking` is off, failed releases are not suspended. While `rollback` is "
        "off, pods that do not come up do not lead to a rollback.",
        labels=["setting"],
    )
    for name, on in ((BLOCKING, settings.blocking), (ROLLBACK, settings.rollback), (BRANCH, settings.branch)):
        enabled.add_metric([name], on)
    policies = GaugeMetricFamily(
        "altershield_policies",
        "DefensePolicies, by the mode in their spec. `observe` and `warn`: releases are verified, and a failure has no "
        "consequences.",
        labels=["mode"],
    )
    modes = [policy.spec.mode for policy in caches.policies.all()]
    for mode in Mode:
        policies.add_metric([mode], modes.count(mode))
    yield from (enabled, policies)


def _series(release: Release) -> list[str]:
    """The label values of a release."""
    workload, namespace, name = workload_key(release)
    return [namespace, workload.kind.lower(), name, version_of(release)]


def _stalled(release: Release) -> tuple[float, list[str]] | None:
    """Since when the release is stalled (Unix seconds), and its label values; None if it is not."""
    condition = releases.stalled(release)
    if condition is None:
        return None
    since = time_of(condition.last_transition_time, releases.since(release))
    return since, [*_series(release), condition.reason]


def _wants_attention(release: Release, caches: Caches) -> bool:
    """Whether the release needs attention, in a governed namespace."""
    key = workload_key(release)
    if not caches.governed(key.namespace) or key.kind not in caches.workloads:
        return False
    workload = caches.workload(key)
    if workload is None or not is_controlled_by(release, workload) or _is_empty(release):
        return False
    return releases.wants_attention(release, workload)


def _is_empty(release: Release) -> bool:
    """Whether the release waits for its workload to be scaled up. Many releases may be in this state, and nobody waits
    for them."""
    condition = find_condition(release.status.conditions, ConditionType.NO_REPLICAS)
    return condition is not None and condition.is_true
