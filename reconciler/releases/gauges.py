"""Metrics of releases: their number in each state, and the oldest and newest releases that have not succeeded. Also the
settings and the modes of policies, which decide the consequences of a failure."""

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric

from altershield import releases
from altershield.api.change_workload import WorkloadState
from altershield.api.condition_types import ConditionType
from altershield.api.meta import find_condition, time_of
from altershield.api.ops_config import BLOCKING, BRANCH, ROLLBACK
from altershield.api.policy import Mode
from reconciler.cluster.caches import Caches
from reconciler.cluster.release import Release
from reconciler.releases.series import MAX_RELEASES, governed_workload, labels_of, oldest_and_newest


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
        f"{MAX_RELEASES} oldest and the {MAX_RELEASES} newest of each state. All replicas export them.",
        labels=["namespace", "kind", "workload", "version", "state", "by", "stalled"],
    )
    stalled = GaugeMetricFamily(
        "altershield_release_stalled_timestamp_seconds",
        "Since when a workload's current release does not go on, and the cause is not the release (condition "
        f"Stalled). At most the {MAX_RELEASES} oldest and the {MAX_RELEASES} newest. All replicas export them.",
        labels=["namespace", "kind", "workload", "version", "reason"],
    )
    waiting: list[tuple[float, list[str]]] = []
    for state, in_state in by_state.items():
        counts.add_metric([state], len(in_state))
        if state is WorkloadState.SUCCESS:
            continue
        wanting = [release for release in in_state if _wants_attention(release, caches)]
        waiting += [found for release in wanting if (found := _stalled(release)) is not None]
        for release in oldest_and_newest(wanting, releases.since):
            condition = releases.stalled(release)
            reason = condition.reason if condition is not None else ""
            entered.add_metric(
                [*labels_of(release), state, releases.failed_by(release), reason], releases.since(release)
            )
    for since, series in oldest_and_newest(waiting, lambda each: each[0]):
        stalled.add_metric(series, since)
    yield from (counts, entered, stalled)
    yield from _enforcement(caches)


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


def _stalled(release: Release) -> tuple[float, list[str]] | None:
    """Since when the release is stalled (Unix seconds), and its label values; None if it is not."""
    condition = releases.stalled(release)
    if condition is None:
        return None
    since = time_of(condition.last_transition_time, releases.since(release))
    return since, [*labels_of(release), condition.reason]


def _wants_attention(release: Release, caches: Caches) -> bool:
    """Whether the release needs attention, in a governed namespace."""
    workload = governed_workload(release, caches)
    return workload is not None and not _is_empty(release) and releases.wants_attention(release, workload)


def _is_empty(release: Release) -> bool:
    """Whether the release waits for its workload to be scaled up. Many releases may be in this state, and nobody waits
    for them."""
    condition = find_condition(release.status.conditions, ConditionType.NO_REPLICAS)
    return condition is not None and condition.is_true
