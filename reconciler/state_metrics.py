"""The gauges about objects in the caches, of all subjects. They are read when Prometheus scrapes."""

import time
from collections.abc import Iterator

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from reconciler.budgets import metrics as budgets
from reconciler.cluster.caches import Caches
from reconciler.flow_control import metrics as flow_control
from reconciler.releases import gauges as releases


class StateMetrics(Collector):
    def __init__(self, caches: Caches) -> None:
        self._caches = caches

    def collect(self) -> Iterator[Metric]:
        yield from releases.families(self._caches)
        yield from budgets.families(self._caches.budgets.budgets_informer.all())
        yield from flow_control.families(self._caches.flow_controls.all(), time.time())
