"""Gauges about objects in the caches. They are read when Prometheus scrapes."""

from collections.abc import Callable, Iterable

from prometheus_client.core import Metric
from prometheus_client.registry import Collector


class Gauges(Collector):
    """`families` makes the metrics of one subject."""

    def __init__(self, families: Callable[[], Iterable[Metric]]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families()
