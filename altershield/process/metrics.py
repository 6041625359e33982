"""The metrics that all components have: the build, the process and its memory, the watches, failed requests and dropped
Events."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from prometheus_client import ProcessCollector, disable_created_metrics
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from altershield import __version__
from altershield.process import cgroup
from kube_base.access.client import Client
from kube_base.access.events import EventRecorder
from kube_base.access.informer import Informer

disable_created_metrics()  # type: ignore[no-untyped-call]  # no dashboard and no alert uses these additional series

MAX_NAMESPACES = 100
OTHER_NAMESPACES = "(other)"
"""This cannot be the name of a namespace."""


class NamespaceLabels:
    """The values of a label `namespace`: the first 100 namespaces, and one value for all others. Each is a series."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def value(self, namespace: str, *, trusted: Callable[[str], bool] = lambda namespace: True) -> str:
        """The value for this namespace. `trusted`: whether a new namespace may become a value."""
        if namespace not in self._known:
            if len(self._known) >= MAX_NAMESPACES or not trusted(namespace):
                return OTHER_NAMESPACES
            self._known.add(namespace)
        return namespace


class ProcessMetrics(Collector):
    """Reads the numbers of the client, the informers and the recorder at each scrape. `recorder` is None in a component
    that records no Events."""

    def __init__(
        self,
        component: str,
        client: Client,
        informers: Iterable[Informer[Any]],
        recorder: EventRecorder | None = None,
    ) -> None:
        self._component = component
        self._client = client
        self._informers = tuple(informers)
        self._recorder = recorder
        self._process = ProcessCollector(registry=None)

    def collect(self) -> Iterator[Metric]:
        component = self._component
        build = GaugeMetricFamily("altershield_build_info", "Always 1.", labels=["component", "version"])
        build.add_metric([component, __version__], 1)
        yield build
        yield from self._memory()
        yield from self._process.collect()
        errors = CounterMetricFamily(
            "altershield_api_errors",
            "Failed requests and watches of the Kubernetes API, by HTTP status; `unreachable`: there was no complete "
            "answer.",
            labels=["component", "code"],
        )
        for code, count in self._client.errors.items():
            errors.add_metric([component, code], count)
        yield errors
        yield from self._watches()
        if self._recorder is not None:
            dropped = CounterMetricFamily(
                "altershield_events_dropped",
                "Events that were not written, because too many were waiting or because the API server refused them.",
                labels=["component"],
            )
            dropped.add_metric([component], self._recorder.dropped)
            yield dropped

    def _memory(self) -> Iterator[Metric]:
        memory = cgroup.memory()
        used = GaugeMetricFamily(
            "altershield_memory_working_set_bytes",
            "Memory of the container that the kernel cannot free at once, from its cgroup; 0: it has no limit.",
            labels=["component"],
        )
        used.add_metric([self._component], memory.working_set)
        limit = GaugeMetricFamily(
            "altershield_memory_limit_bytes",
            "The container's memory limit, from its cgroup. The kernel kills a process of a container that reaches it; "
            "0: there is none.",
            labels=["component"],
        )
        limit.add_metric([self._component], memory.limit)
        yield from (used, limit)

    def _watches(self) -> Iterator[Metric]:
        labels = ["component", "resource"]
        age = GaugeMetricFamily(
            "altershield_watch_age_seconds",
            "Seconds since the API server last sent anything. Without changes it sends something about once a minute.",
            labels=labels,
        )
        relists = CounterMetricFamily(
            "altershield_watch_relists",
            "How often all objects were listed again, because the watch could not continue.",
            labels=labels,
        )
        skipped = CounterMetricFamily(
            "altershield_watch_skipped",
            "Objects that could not be read and are not in the cache; the log names them.",
            labels=labels,
        )
        objects = GaugeMetricFamily("altershield_cached_objects", "Objects in the cache.", labels=labels)
        for informer in self._informers:
            series = [self._component, informer.name]
            age.add_metric(series, informer.age)
            relists.add_metric(series, informer.relists)
            skipped.add_metric(series, informer.skipped)
            objects.add_metric(series, len(informer))
        yield from (age, relists, skipped, objects)
