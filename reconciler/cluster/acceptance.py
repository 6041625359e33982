"""The metric of objects whose spec can be wrong, by their condition Accepted."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from altershield.api.condition_types import ConditionType
from altershield.api.meta import Condition, find_condition
from kube_base.meta import ObjectMeta


class _Status(Protocol):
    @property
    def conditions(self) -> Sequence[Condition]: ...
    @property
    def observed_generation(self) -> int: ...


class _Object(Protocol):
    @property
    def metadata(self) -> ObjectMeta: ...
    @property
    def status(self) -> _Status: ...


class AcceptanceMetrics(Collector):
    """Each subject of such a kind adds its cache."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._objects: dict[str, Callable[[], Iterable[_Object]]] = {}
        registry.register(self)

    def count(self, kind: str, objects: Callable[[], Iterable[_Object]]) -> None:
        """Count these objects from now on."""
        self._objects[kind] = objects

    def collect(self) -> Iterator[Metric]:
        counts = GaugeMetricFamily(
            "altershield_objects",
            "Objects by the status of their condition Accepted. `False`: the spec is wrong, and the last accepted one "
            "stays in force, if there is one. `Unknown`: the status does not describe the spec yet. All replicas "
            "export it.",
            labels=["kind", "accepted"],
        )
        for kind, objects in self._objects.items():
            found = [_acceptance(each) for each in objects() if each.metadata.deletion_timestamp is None]
            for status in ("True", "False", "Unknown"):
                counts.add_metric([kind, status], found.count(status))
        yield counts


def _acceptance(obj: _Object) -> str:
    condition = find_condition(obj.status.conditions, ConditionType.ACCEPTED)
    if condition is None or obj.status.observed_generation != obj.metadata.generation:
        return "Unknown"
    return condition.status
