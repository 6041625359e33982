"""Controller: takes the current version's pods through verification and keeps its record and the suspension."""

from collections.abc import Callable

from altershield.api import names
from reconciler.caches import Caches, Key, current
from reconciler.decisions.change_workloads import Observed, decide
from reconciler.executor import Executor


class ChangeWorkloadsController:
    def __init__(self, caches: Caches, executor: Executor, clock: Callable[[], float]) -> None:
        self._caches = caches
        self._executor = executor
        self._clock = clock

    async def reconcile(self, key: Key) -> float | None:
        record = self._caches.change_workloads.get(*key)
        if record is None or not self._caches.governed(key[0]):
            return None
        deployment = self._caches.deployment_of(record)
        if deployment is None or not current(record, deployment):
            return None
        change_pods, highest = self._caches.change_pods_of(record)
        observed = Observed(
            change_workload=record,
            deployment=deployment,
            pods=self._caches.pods_of(deployment, names.version_of(record.metadata.name)),
            change_pods=change_pods,
            highest_number=highest,
            others=[
                other
                for other in self._caches.change_workloads_of(deployment)
                if other.metadata.uid != record.metadata.uid
            ],
            settings=self._caches.in_effect(),
        )
        status, effects = decide(record.status, observed, self._clock())
        return await self._executor.carry_out(record, deployment, status, effects)
