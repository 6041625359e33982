"""What is counted about releases: how they ended, rollbacks, and releases that no gatekeeper reviewed."""

from prometheus_client import CollectorRegistry, Counter, Histogram

from altershield.api.change_workload import WorkloadState
from altershield.process.metrics import MAX_NAMESPACES, OTHER_NAMESPACES, NamespaceLabels
from reconciler.releases.findings.ungated import UngatedReason
from reconciler.releases.terms.snapshot import RollbackReason

_RELEASE_SECONDS = (5, 10, 20, 30, 60, 120, 180, 300, 600, 1200, 1800, 3600)
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
        for cause in _ROLLBACKS:
            self._rollbacks.labels(OTHER_NAMESPACES, cause)
        for reason in _UNGATED.values():
            self.ungated_releases.labels(reason)
        for result in _RESULTS.values():
            self._release_duration.labels(result)

    def ended(self, state: str, seconds: float) -> None:
        """Count a release that entered the end state `state`, `seconds` after it began."""
        self._release_duration.labels(_RESULTS[WorkloadState(state)]).observe(seconds)

    def rolled_back(self, namespace: str, reason: str) -> None:
        """Count a rollback."""
        self._rollbacks.labels(self._namespaces.value(namespace), reason).inc()

    def ungated(self, reason: UngatedReason) -> None:
        """Count an ungated release."""
        self.ungated_releases.labels(_UNGATED[reason]).inc()
