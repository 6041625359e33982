"""What is counted about releases: how they ended, their steps, rollbacks, and releases that no gatekeeper reviewed."""

from collections.abc import Sequence

from prometheus_client import CollectorRegistry, Counter, Histogram

from altershield.api.change_workload import WorkloadState
from altershield.api.rollout import PassedStep
from altershield.process.metrics import MAX_NAMESPACES, OTHER_NAMESPACES, NamespaceLabels
from reconciler.releases.findings.ungated import UngatedReason
from reconciler.releases.terms.snapshot import RollbackReason

_RELEASE_SECONDS = (5, 10, 20, 30, 60, 120, 180, 300, 600, 1200, 1800, 3600)
_STEP_SECONDS = (30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 43200, 86400, 604800)
_RESULTS = {
    WorkloadState.SUCCESS: "success",
    WorkloadState.SUSPEND: "suspended",
    WorkloadState.FAILED: "rolled-back",
}
_ROLLBACKS = (RollbackReason.POD_NOT_UP, RollbackReason.VERIFICATION_FAILED, RollbackReason.REQUESTED)
_UNGATED = {UngatedReason.NO_VERSION: "no-version", UngatedReason.VERSION_REUSED: "version-reused"}


class ReleaseMetrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        self._rollbacks = Counter(
            "altershield_rollbacks",
            "Releases rolled back, by the namespace of the workload. `(other)`: the namespaces after the first "
            f"{MAX_NAMESPACES}.",
            ["namespace", "reason"],
            registry=registry,
        )
        self._namespaces = NamespaceLabels()
        self.ungated_releases = Counter(
            "altershield_ungated_releases",
            "Releases that no gatekeeper reviewed: without a version, or with the version of another pod template.",
            ["reason"],
            registry=registry,
        )
        self._release_duration = Histogram(
            "altershield_release_duration_seconds",
            "Time from the start of a release to its end. A repaired release reaches an end more than once.",
            ["result"],
            buckets=_RELEASE_SECONDS,
            registry=registry,
        )
        self._step_duration = Histogram(
            "altershield_step_duration_seconds",
            "Time from the begin of a step of a release to its end, with its soak and the waits for people.",
            buckets=_STEP_SECONDS,
            registry=registry,
        )
        for cause in _ROLLBACKS:
            self._rollbacks.labels(OTHER_NAMESPACES, cause)
        for reason in _UNGATED.values():
            self.ungated_releases.labels(reason)
        for result in _RESULTS.values():
            self._release_duration.labels(result)

    def ended(self, state: str, seconds: float) -> None:
        """Count a release that entered the end state `state`, `seconds` after it began."""
        self._release_duration.labels(_RESULTS[WorkloadState(state)]).observe(seconds)

    def steps_passed(self, before: Sequence[PassedStep], after: Sequence[PassedStep]) -> None:
        """Count the steps that passed. `before`, `after`: the steps that were and are over."""
        for each in after:
            if each not in before:
                self._step_duration.observe(max(0, each.end_time_unix - each.begin_time_unix))

    def rolled_back(self, namespace: str, reason: str) -> None:
        """Count a rollback."""
        self._rollbacks.labels(self._namespaces.value(namespace), reason).inc()

    def ungated(self, reason: UngatedReason) -> None:
        """Count an ungated release."""
        self.ungated_releases.labels(_UNGATED[reason]).inc()
