"""Controller: reports in the status of each ReleaseFreeze that it is known. A freeze is in force as soon as it
exists, also while no reconciler runs."""

import heapq
from collections.abc import Callable, Iterator, Sequence

import msgspec
from prometheus_client.core import GaugeMetricFamily, Metric

from altershield.api.gates.freezes import KIND, ReleaseFreeze
from altershield.api.meta import set_condition
from altershield.api.resources import RELEASE_FREEZES
from altershield.api.rights import Right
from altershield.gates.freezes import in_force
from reconciler.cluster.accepted_specs import accepted
from reconciler.cluster.caches import Caches, Key
from reconciler.cluster.gates import FREEZES as WATCH
from reconciler.cluster.gauges import Gauges
from reconciler.cluster.writer import Writer
from reconciler.gates.metrics import MAX_GATES
from reconciler.subject import Controller, Parts, Subject


class FreezeReconciler:
    """Its keys are the namespace and name of a ReleaseFreeze. `clock` returns Unix seconds."""

    def __init__(self, caches: Caches, writer: Writer, clock: Callable[[], float]) -> None:
        self._caches = caches
        self._writer = writer
        self._clock = clock

    async def reconcile(self, key: Key) -> float | None:
        freeze = self._caches[WATCH].get(*key)
        if freeze is None or freeze.metadata.deletion_timestamp is not None:
            return None
        condition = accepted(freeze, self._caches.system_namespace)
        status = msgspec.structs.replace(
            freeze.status,
            conditions=set_condition(freeze.status.conditions, condition, self._clock()),
            observed_generation=freeze.metadata.generation,
        )
        if status != freeze.status:
            await self._writer.save_status(self._caches[WATCH], freeze, status)
        return None


def families(freezes: Sequence[ReleaseFreeze], now: float) -> Iterator[Metric]:
    """Which freezes are in force, and how long the oldest one without an end has been. `now`: Unix seconds."""
    placed = (in_force(each) for each in freezes)
    active = [each for each in placed if each is not None and not each.is_open(now)]
    count = GaugeMetricFamily(
        "altershield_release_freezes", "ReleaseFreezes that are in force now, by mode.", labels=["mode"]
    )
    for mode in ("enforce", "warn"):
        count.add_metric([mode], sum(each.rules.mode == mode for each in active))
    each_one = GaugeMetricFamily(
        "altershield_release_freeze_in_force",
        "1 while a ReleaseFreeze is in force. Only the "
        f"{MAX_GATES} that began first have a series. All replicas export it.",
        labels=["namespace", "freeze", "mode"],
    )
    for each in heapq.nsmallest(MAX_GATES, active, key=lambda freeze: (freeze.begins, freeze.namespace, freeze.name)):
        each_one.add_metric([each.namespace, each.name, each.rules.mode], 1)
    endless = (now - each.begins for each in active if each.ends == float("inf"))
    oldest = GaugeMetricFamily(
        "altershield_release_freeze_without_end_seconds",
        "How long the oldest ReleaseFreeze without `until` has been in force; 0: there is none.",
        value=max(endless, default=0.0),
    )
    yield from (count, each_one, oldest)


def start(parts: Parts[Key]) -> Controller[Key]:
    parts.queue_changes_of(parts.caches[WATCH])
    informer = parts.caches[WATCH]
    parts.acceptance.count(RELEASE_FREEZES.kind, informer.all)
    parts.registry.register(Gauges(lambda: families(informer.all(), parts.clock())))
    return Controller(reconcile=FreezeReconciler(parts.caches, parts.writer, parts.clock).reconcile)


FREEZES = Subject(
    "release-freezes",
    start,
    kinds=(KIND,),
    rights=(Right((RELEASE_FREEZES,), "list watch"), Right((RELEASE_FREEZES,), "patch", "status")),
    watches=(WATCH,),
    writes=((RELEASE_FREEZES, ("patch status",)),),
    workers=4,
)
