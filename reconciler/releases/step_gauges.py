"""Metrics of releases in steps: their number in each phase, the step of each, and what they wait for."""

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric

from altershield import releases
from altershield.api.rollout import ENDED, Phase, RolloutStatus, WaitingFor
from altershield.releases.steps import in_steps
from kube_base.times import unix
from reconciler.cluster.caches import Caches
from reconciler.cluster.release import Release
from reconciler.releases.series import MAX_RELEASES, governed_workload, labels_of, oldest_and_newest

APPROVAL = "approval"
"""The reason of a wait in the phase WaitingForApproval."""

PHASES = tuple(each for each in Phase if each not in ENDED)
"""The phases of present releases in steps."""

_LABELS = ["namespace", "kind", "workload", "version"]
_REASONS = frozenset(WaitingFor)


def step_families(caches: Caches, now: float) -> Iterator[Metric]:
    """The metrics of the present releases in steps. `now`: Unix seconds."""
    found = [each for each in caches.releases.all() if in_steps(each.status.rollout) and _is_present(each, caches)]
    counts = GaugeMetricFamily(
        "altershield_releases_in_steps",
        "Present releases in steps that have not ended, by phase. All replicas export them.",
        labels=["phase"],
    )
    phases = [each.status.rollout.phase for each in found]
    for phase in PHASES:
        counts.add_metric([phase], phases.count(phase))
    oldest = GaugeMetricFamily(
        "altershield_oldest_held_release_seconds",
        "How long the oldest present release in steps has been under way; 0 if there is none. All replicas export it.",
        value=max((now - each.spec.create_time_unix for each in found), default=0.0),
    )
    step = GaugeMetricFamily(
        "altershield_release_step",
        "The number of the step of a present release in steps. At most the "
        f"{MAX_RELEASES} oldest and the {MAX_RELEASES} newest. All replicas export them.",
        labels=[*_LABELS, "phase"],
    )
    for each in oldest_and_newest(found, _began):
        step.add_metric([*labels_of(each), _phase(each.status.rollout)], each.status.rollout.step)
    waiting = GaugeMetricFamily(
        "altershield_release_step_waiting_timestamp_seconds",
        "Since when a present release in steps waits, and for what. At most the "
        f"{MAX_RELEASES} oldest and the {MAX_RELEASES} newest. All replicas export them.",
        labels=[*_LABELS, "reason"],
    )
    waits = [(since, each) for each in found if (since := _waits_since(each.status.rollout))]
    for since, each in oldest_and_newest(waits, lambda wait: wait[0]):
        waiting.add_metric([*labels_of(each), _reason(each.status.rollout)], since)
    yield from (counts, oldest, step, waiting)


def _is_present(release: Release, caches: Caches) -> bool:
    return releases.is_current(release, governed_workload(release, caches))


def _began(release: Release) -> float:
    return release.spec.create_time_unix


def _phase(status: RolloutStatus) -> str:
    """The phase; empty if it is of a newer release of AlterShield."""
    return status.phase if status.phase in PHASES else ""


def _waits_since(status: RolloutStatus) -> float:
    """Since when the release waits, in Unix seconds; 0 if it does not."""
    if status.phase == Phase.WAITING_FOR_APPROVAL:
        return status.phase_time_unix or unix(status.phase_time)
    if not status.waiting_for or status.phase == Phase.STOPPED:
        return 0
    return status.waiting_since_unix or status.phase_time_unix  # the clock goes on while it waits for a check


def _reason(status: RolloutStatus) -> str:
    """What it waits for, in one word; empty if it is of a newer release of AlterShield."""
    if status.phase == Phase.WAITING_FOR_APPROVAL:
        return APPROVAL
    return next((each for each in status.waiting_for if each in _REASONS), "")
