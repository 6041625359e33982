"""The metrics of a reconciler. Every series exists from the start, and no label has an unbounded number of values."""

import time
from collections.abc import Iterator, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric, SummaryMetricFamily
from prometheus_client.registry import Collector

from altershield.api.change_pod import PodState
from altershield.api.change_workload import WorkloadState
from altershield.api.pod_verdicts import Verdict
from altershield.api.resources import (
    CHANGE_PODS,
    CHANGE_WORKLOADS,
    CONFIG_MAPS,
    DEFENSE_POLICIES,
    DISRUPTION_BUDGETS,
    OPS_CONFIG_INFOS,
    POD_DELETION_FLOW_CONTROLS,
    POD_UNAVAILABLE_BUDGETS,
    PODS,
)
from altershield.kube.client import Client
from altershield.kube.events import EventRecorder
from altershield.kube.queue import WorkQueue
from altershield.process.metrics import MAX_NAMESPACES, OTHER_NAMESPACES, NamespaceLabels, ProcessMetrics
from altershield.releases import history
from altershield.workloads import ADAPTERS
from reconciler.budgets import metrics as budget_metrics
from reconciler.cluster.caches import Caches
from reconciler.endpoints.outcome import CallbackOutcome
from reconciler.flow_control import metrics as flow_control_metrics
from reconciler.machinery.outcome import Outcome
from reconciler.notifications.vocabulary import NotificationResult, Type
from reconciler.releases.findings.ungated import UngatedReason
from reconciler.releases.metrics import families
from reconciler.releases.terms.snapshot import RollbackReason

_WRITES = {
    **{adapter.resource.kind: ("patch",) for adapter in ADAPTERS},
    **{adapter.intermediate.kind: ("patch",) for adapter in ADAPTERS if adapter.intermediate is not None},
    PODS.kind: ("patch", "delete"),
    CHANGE_WORKLOADS.kind: ("create", "patch", "patch status", "delete"),
    CHANGE_PODS.kind: ("create", "patch status", "delete"),
    OPS_CONFIG_INFOS.kind: ("create", "patch status"),
    DEFENSE_POLICIES.kind: ("patch status",),
    POD_DELETION_FLOW_CONTROLS.kind: ("update status",),
    POD_UNAVAILABLE_BUDGETS.kind: ("create", "patch", "update status", "delete"),
    DISRUPTION_BUDGETS.kind: ("create", "patch", "delete"),
    history.RESOURCE.kind: ("create", "patch", "delete"),
    CONFIG_MAPS.kind: ("create", "delete"),
}
_RECONCILE_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_RELEASE_SECONDS = (5, 10, 20, 30, 60, 120, 180, 300, 600, 1200, 1800, 3600)

_RESULTS = {
    WorkloadState.SUCCESS: "success",
    WorkloadState.SUSPEND: "suspended",
    WorkloadState.FAILED: "rolled-back",
}
UNCHECKED_ENDS = (PodState.PRE_FAILED, PodState.PRE_TIMEOUT, PodState.POST_FAILED, PodState.POST_TIMEOUT)
"""The ends of batches whose checks ended without a result."""

_UNGATED = {UngatedReason.NO_VERSION: "no-version", UngatedReason.VERSION_REUSED: "version-reused"}


class Metrics:
    """The counters and histograms. Gauges are read from caches, queues and clients when Prometheus scrapes."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.leader = Gauge("altershield_leader", "1 while this reconciler is the leader.", registry=self.registry)
        self.reconciles = self._counter(
            "altershield_reconciles",
            "Reconciled keys, by outcome. `conflict` and `throttled` are retried and are no error.",
            ["controller", "outcome"],
        )
        self.reconcile_duration = self._histogram(
            "altershield_reconcile_duration_seconds", "Time to reconcile one key.", ["controller"], _RECONCILE_SECONDS
        )
        self.writes = self._counter(
            "altershield_api_writes",
            "Successful writes to the Kubernetes API, without Leases and Events.",
            ["kind", "verb"],
        )
        self.verifications = self._counter(
            "altershield_verifications",
            "Verdicts on pods. A pod can get two: one when its batch is done, and one when a person fails it later.",
            ["verdict"],
        )
        self.unchecked = self._counter(
            "altershield_unchecked_pods",
            "Pods that count as passed although their checks ended without a result, by how their batch ended.",
            ["reason"],
        )
        self.ungated_deletions = self._counter(
            "altershield_ungated_deletions",
            "Pods that were deleted, evicted by a kubelet, or lost with their node, although no gatekeeper was asked: "
            "one for each PodUnavailableBudget and PodDeletionFlowControl.",
            [],
        )
        self.break_glass = self._counter(
            "altershield_break_glass",
            "Disruptions of pods that passed by break glass: one for each PodUnavailableBudget and each "
            "PodDeletionFlowControl that recorded it. They are counted when their records end.",
            [],
        )
        self._rollbacks = self._counter(
            "altershield_rollbacks",
            "Releases rolled back, by the namespace of the workload. `(other)`: the namespaces after the first "
            f"{MAX_NAMESPACES}.",
            ["namespace", "reason"],
        )
        self._namespaces = NamespaceLabels()
        self.ungated_releases = self._counter(
            "altershield_ungated_releases",
            "Releases that no gatekeeper reviewed: without a version, or with the version of another pod template.",
            ["reason"],
        )
        self.callbacks = self._counter(
            "altershield_callbacks", "Callbacks of an AlterShield server, by outcome.", ["outcome"]
        )
        self.check_callbacks = self._counter(
            "altershield_check_callbacks", "Callbacks about `http` checks of DefensePolicies, by outcome.", ["outcome"]
        )
        self.skips = self._counter(
            "altershield_skips",
            "Approvals that an AlterShield server was told of. `failed`: it was not told, or this is not known.",
            ["result"],
        )
        self.notifications = self._counter(
            "altershield_notifications",
            "Notifications, by the type of the receiver. `failed`: the receiver refused it. `dropped`: too many "
            "waited, or it could not be sent for an hour.",
            ["type", "result"],
        )
        self._release_duration = self._histogram(
            "altershield_release_duration_seconds",
            "Time from the start of a release to its end. A repaired release reaches an end more than once.",
            ["result"],
            _RELEASE_SECONDS,
        )
        for kind, verbs in _WRITES.items():
            for verb in verbs:
                self.writes.labels(kind, verb)
        for verdict in Verdict:
            self.verifications.labels(verdict)
        for end in UNCHECKED_ENDS:
            self.unchecked.labels(end)
        for cause in (RollbackReason.POD_NOT_UP, RollbackReason.VERIFICATION_FAILED, RollbackReason.REQUESTED):
            self._rollbacks.labels(OTHER_NAMESPACES, cause)
        for reason in _UNGATED.values():
            self.ungated_releases.labels(reason)
        for ended in CallbackOutcome:
            self.callbacks.labels(ended)
            self.check_callbacks.labels(ended)
        for skipped in ("done", "failed"):
            self.skips.labels(skipped)
        for type_ in Type:
            for sent in NotificationResult:
                self.notifications.labels(type_, sent)
        for result in _RESULTS.values():
            self._release_duration.labels(result)

    def observe(
        self, client: Client, caches: Caches, queues: Mapping[str, WorkQueue[Any]], recorder: EventRecorder
    ) -> None:
        """Also export the figures of these objects. Call it once."""
        for controller in queues:
            self.reconcile_duration.labels(controller)
            for outcome in Outcome:
                self.reconciles.labels(controller, outcome)
        self.registry.register(_StateCollector(caches, queues))
        self.registry.register(ProcessMetrics("reconciler", client, caches.informers, recorder))

    def ended(self, state: str, seconds: float) -> None:
        """Count a release that entered the end state `state`, `seconds` after it began."""
        self._release_duration.labels(_RESULTS[WorkloadState(state)]).observe(seconds)

    def rolled_back(self, namespace: str, reason: str) -> None:
        """Count a rollback."""
        self._rollbacks.labels(self._namespaces.value(namespace), reason).inc()

    def ungated(self, reason: UngatedReason) -> None:
        """Count an ungated release."""
        self.ungated_releases.labels(_UNGATED[reason]).inc()

    def _counter(self, name: str, text: str, labels: list[str]) -> Counter:
        return Counter(name, text, labels, registry=self.registry)

    def _histogram(self, name: str, text: str, labels: list[str], buckets: tuple[float, ...]) -> Histogram:
        return Histogram(name, text, labels, buckets=buckets, registry=self.registry)


class _StateCollector(Collector):
    """Reads queues and caches when Prometheus scrapes."""

    def __init__(self, caches: Caches, queues: Mapping[str, WorkQueue[Any]]) -> None:
        self._caches = caches
        self._queues = queues

    def collect(self) -> Iterator[Metric]:
        depth = GaugeMetricFamily("altershield_queue_depth", "Keys that wait to be reconciled.", labels=["controller"])
        oldest = GaugeMetricFamily(
            "altershield_queue_oldest_seconds",
            "How long the oldest key in the queue has waited.",
            labels=["controller"],
        )
        waits = SummaryMetricFamily(
            "altershield_queue_wait_seconds", "How long keys waited in the queue.", labels=["controller"]
        )
        for controller, queue in self._queues.items():
            depth.add_metric([controller], queue.depth)
            oldest.add_metric([controller], queue.oldest)
            waits.add_metric([controller], queue.taken, queue.waited)
        yield from (depth, oldest, waits)
        yield from families(self._caches)
        yield from budget_metrics.families(self._caches.budgets.budgets_informer.all())
        yield from flow_control_metrics.families(self._caches.flow_controls.all(), time.time())
