"""What can be watched of a reconciler. Every series exists from the start, and no label is unbounded."""

from collections.abc import Iterable, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from altershield.api.kinds import PASS, UNPASS, WorkloadState
from altershield.api.resources import CHANGE_PODS, CHANGE_WORKLOADS, DEPLOYMENTS, OPS_CONFIG_INFOS, PODS
from altershield.kube.queue import WorkQueue
from reconciler.caches import Caches, Key
from reconciler.decisions.rollback import RollbackReason

_WRITES = {
    DEPLOYMENTS.kind: ("patch",),
    PODS.kind: ("patch",),
    CHANGE_WORKLOADS.kind: ("create", "patch", "patch status", "delete"),
    CHANGE_PODS.kind: ("create", "patch status", "delete"),
    OPS_CONFIG_INFOS.kind: ("create", "patch status"),
}
_OUTCOMES = ("done", "conflict", "throttled", "error")


class Metrics:
    """The counters; what caches and queues know is read when Prometheus asks."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.leader = Gauge("altershield_leader", "1 while this reconciler leads.", registry=self.registry)
        self.reconciles = Counter(
            "altershield_reconciles", "Reconciliations.", ["controller", "outcome"], registry=self.registry
        )
        self.writes = Counter(
            "altershield_api_writes",
            "Writes to the Kubernetes API that succeeded, Leases and Events aside.",
            ["kind", "verb"],
            registry=self.registry,
        )
        self.verifications = Counter("altershield_verifications", "Pods verified.", ["verdict"], registry=self.registry)
        self.rollbacks = Counter("altershield_rollbacks", "Releases rolled back.", ["reason"], registry=self.registry)
        for kind, verbs in _WRITES.items():
            for verb in verbs:
                self.writes.labels(kind, verb)
        for verdict in (PASS, UNPASS):
            self.verifications.labels(verdict)
        for reason in (RollbackReason.POD_NOT_UP, RollbackReason.REQUESTED):
            self.rollbacks.labels(reason)

    def observe(self, caches: Caches, queues: Mapping[str, WorkQueue[Key]]) -> None:
        """Show these caches and queues too. Once."""
        for controller in queues:
            for outcome in _OUTCOMES:
                self.reconciles.labels(controller, outcome)
        self.registry.register(_Live(caches, queues))


class _Live(Collector):
    """Reads the figures that somebody else keeps."""

    def __init__(self, caches: Caches, queues: Mapping[str, WorkQueue[Key]]) -> None:
        self._caches = caches
        self._queues = queues

    def collect(self) -> Iterable[Metric]:
        depth = GaugeMetricFamily("altershield_queue_depth", "Keys that wait to be worked on.", labels=["controller"])
        oldest = GaugeMetricFamily(
            "altershield_queue_oldest_seconds", "How long the longest waiting key has waited.", labels=["controller"]
        )
        waited = CounterMetricFamily(
            "altershield_queue_wait_seconds", "Time that keys waited, all together.", labels=["controller"]
        )
        taken = CounterMetricFamily("altershield_queue_taken", "Keys taken from the queue.", labels=["controller"])
        for controller, queue in self._queues.items():
            depth.add_metric([controller], queue.depth)
            oldest.add_metric([controller], queue.oldest)
            waited.add_metric([controller], queue.waited)
            taken.add_metric([controller], queue.taken)
        yield from (depth, oldest, waited, taken)

        age = GaugeMetricFamily(
            "altershield_watch_age_seconds", "Time since the API server last sent anything.", labels=["resource"]
        )
        objects = GaugeMetricFamily("altershield_cached_objects", "Objects in the cache.", labels=["resource"])
        for informer in self._caches.informers:
            age.add_metric([informer.resource.plural], informer.age)
            objects.add_metric([informer.resource.plural], len(informer))
        yield from (age, objects)

        releases = GaugeMetricFamily("altershield_releases", "Versions on record, by state.", labels=["state"])
        counts = dict.fromkeys(WorkloadState.ALL, 0)
        for record in self._caches.change_workloads.all():
            state = record.status.status or WorkloadState.INIT
            counts[state] = counts.get(state, 0) + 1
        for state, count in counts.items():
            releases.add_metric([state], count)
        yield releases
