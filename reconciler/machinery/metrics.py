"""The metrics of queues, reconciles and writes, which all subjects have. Those of a subject are in its folder. Every
series exists from the start, and no label has an unbounded number of values."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric, SummaryMetricFamily
from prometheus_client.registry import Collector

from kube_base.access.queue import WorkQueue
from kube_base.resources import Resource
from reconciler.machinery.outcome import Outcome

_RECONCILE_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """The counters and histograms. Gauges are read from the queues when Prometheus scrapes."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.leader = Gauge("altershield_leader", "1 while this reconciler is the leader.", registry=self.registry)
        self.reconciles = Counter(
            "altershield_reconciles",
            "Reconciled keys, by outcome. `conflict` and `throttled` are retried and are no error.",
            ["controller", "outcome"],
            registry=self.registry,
        )
        self.reconcile_duration = Histogram(
            "altershield_reconcile_duration_seconds",
            "Time to reconcile one key.",
            ["controller"],
            buckets=_RECONCILE_SECONDS,
            registry=self.registry,
        )
        self.writes = Counter(
            "altershield_api_writes",
            "Successful writes to the Kubernetes API, without Leases and Events.",
            ["kind", "verb"],
            registry=self.registry,
        )

    def expect_writes(self, writes: Iterable[tuple[Resource, Iterable[str]]]) -> None:
        """Create a series with the value 0 for each of these verbs."""
        for resource, verbs in writes:
            for verb in verbs:
                self.writes.labels(resource.kind, verb)

    def observe(self, queues: Mapping[str, WorkQueue[Any]]) -> None:
        """Export the metrics of these queues, by controller. Call it once."""
        for controller in queues:
            self.reconcile_duration.labels(controller)
            for outcome in Outcome:
                self.reconciles.labels(controller, outcome)
        self.registry.register(_QueueCollector(queues))


class _QueueCollector(Collector):
    """Reads the queues when Prometheus scrapes."""

    def __init__(self, queues: Mapping[str, WorkQueue[Any]]) -> None:
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
