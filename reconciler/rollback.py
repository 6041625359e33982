"""Controller: a release whose pods do not come up is undone, and so is one that a person wants undone."""

from collections.abc import Callable

from altershield.api import labels, names
from altershield.api.kinds import ChangeWorkload, ConditionType, WorkloadState
from altershield.api.meta import find_condition
from altershield.api.resources import REPLICA_SETS
from altershield.api.views import Deployment, ReplicaSet
from altershield.kube.client import Client
from reconciler.caches import Caches, Key, current
from reconciler.decisions.rollback import Observed, Target, decide, overdue
from reconciler.executor import Executor

_LOOK_AGAIN = 30.0  # seconds; ReplicaSets from before AlterShield carry no version, so no watch tells of them


class RollbackController:
    """`start_timeout`: seconds a pod may take to come up."""

    def __init__(
        self, client: Client, caches: Caches, executor: Executor, clock: Callable[[], float], start_timeout: float
    ) -> None:
        self._client = client
        self._caches = caches
        self._executor = executor
        self._clock = clock
        self._start_timeout = start_timeout

    async def reconcile(self, key: Key) -> float | None:
        record = self._caches.change_workloads.get(*key)
        if record is None or record.metadata.deletion_timestamp is not None or not self._caches.governed(key[0]):
            return None
        deployment = self._caches.deployment_of(record)
        rolling_back = record.status.status == WorkloadState.ROLLBACK
        if not rolling_back and not current(record, deployment):
            return None
        version = names.version_of(record.metadata.name)
        pods = self._caches.pods_of(deployment, version) if deployment is not None else []
        late, _ = overdue(pods, self._start_timeout, self._clock())
        targets: list[Target] = []
        if deployment is not None and deployment.version == version and (late or rolling_back):
            targets = await self._targets(deployment, version)
        observed = Observed(record, deployment, pods, targets, self._start_timeout)
        status, effects = decide(record.status, observed, self._clock())
        again = await self._executor.carry_out(record, deployment, status, effects)
        return _LOOK_AGAIN if again is None and late and not rolling_back else again

    async def _targets(self, deployment: Deployment, version: str) -> list[Target]:
        found = self._caches.replica_sets_of(deployment)
        unstamped = await self._client.list(
            REPLICA_SETS, deployment.metadata.namespace, as_=ReplicaSet, label_selector=f"!{labels.VERSION}"
        )
        found += [
            candidate
            for candidate in unstamped.items
            if (owner := candidate.metadata.controller) is not None and owner.uid == deployment.metadata.uid
        ]
        records = {
            names.version_of(record.metadata.name): record for record in self._caches.change_workloads_of(deployment)
        }
        return [
            Target(
                candidate,
                successful=_successful(records.get(candidate.version)),
                rolled_back=_rolled_back(records.get(candidate.version)),
            )
            for candidate in found
            if candidate.version != version and candidate.metadata.deletion_timestamp is None
        ]


def _successful(record: ChangeWorkload | None) -> bool:
    return record is not None and record.status.status == WorkloadState.SUCCESS


def _rolled_back(record: ChangeWorkload | None) -> bool:
    if record is None:
        return False
    condition = find_condition(record.status.conditions, ConditionType.ROLLED_BACK)
    return record.status.status == WorkloadState.ROLLBACK or (condition is not None and condition.is_true)
