"""Controller: a release whose pods do not come up is undone, and so is one that a person wants undone."""

from collections.abc import Callable
from typing import TypeVar

from altershield.api import labels, names
from altershield.api.kinds import ChangeWorkload, ConditionType, WorkloadState
from altershield.api.meta import find_condition
from altershield.api.resources import PODS, REPLICA_SETS
from altershield.api.views import Deployment, Pod, ReplicaSet
from altershield.kube.client import Client
from reconciler.caches import Caches, Key, current
from reconciler.decisions.rollback import Observed, Target, decide, overdue
from reconciler.executor import Executor

_LOOK_AGAIN = 30.0  # seconds; ReplicaSets from before AlterShield carry no version, so no watch tells of them

Owned = TypeVar("Owned", ReplicaSet, Pod)


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
        replica_sets = [] if deployment is None else self._caches.replica_sets_of(deployment)
        now = self._clock()  # once: what becomes late in between would seem to have no targets
        late, _ = overdue(pods, _of(version, replica_sets), self._start_timeout, now)
        targets: list[Target] = []
        if deployment is not None and deployment.version == version and (late or rolling_back):
            replica_sets, pods = await self._read(deployment, version)
            targets = self._targets(deployment, version, replica_sets)
        observed = Observed(record, deployment, pods, _of(version, replica_sets), targets, self._start_timeout)
        status, effects = decide(record.status, observed, now)
        again = await self._executor.carry_out(record, deployment, status, effects)
        return _LOOK_AGAIN if again is None and late and not rolling_back else again

    async def _read(self, deployment: Deployment, version: str) -> tuple[list[ReplicaSet], list[Pod]]:
        """The Deployment's ReplicaSets, and the pods of the version, as they are now. Watches may be behind, each by
        another time, after an outage above all: no release is undone because of old news."""
        namespace = deployment.metadata.namespace
        selected = deployment.spec.selector.match_labels.items()
        selector = ",".join(f"{key}={value}" for key, value in selected if key != labels.VERSION)
        listed = await self._client.list(REPLICA_SETS, namespace, as_=ReplicaSet, label_selector=selector)
        replica_sets = _owned(listed.items, {deployment.metadata.uid})
        pods = await self._client.list(PODS, namespace, as_=Pod, label_selector=f"{labels.VERSION}={version}")
        return replica_sets, _owned(pods.items, {each.metadata.uid for each in _of(version, replica_sets)})

    def _targets(self, deployment: Deployment, version: str, replica_sets: list[ReplicaSet]) -> list[Target]:
        records = {
            names.version_of(record.metadata.name): record for record in self._caches.change_workloads_of(deployment)
        }
        return [
            Target(
                candidate,
                successful=_successful(records.get(candidate.version)),
                rolled_back=_rolled_back(records.get(candidate.version)),
            )
            for candidate in replica_sets
            if candidate.version != version and candidate.metadata.deletion_timestamp is None
        ]


def _of(version: str, replica_sets: list[ReplicaSet]) -> list[ReplicaSet]:
    return [each for each in replica_sets if each.version == version]


def _owned(objects: list[Owned], owners: set[str]) -> list[Owned]:
    """Those that one of the owners, by uid, controls."""
    return [obj for obj in objects if (owner := obj.metadata.controller) is not None and owner.uid in owners]


def _successful(record: ChangeWorkload | None) -> bool:
    return record is not None and record.status.status == WorkloadState.SUCCESS


def _rolled_back(record: ChangeWorkload | None) -> bool:
    if record is None:
        return False
    condition = find_condition(record.status.conditions, ConditionType.ROLLED_BACK)
    return record.status.status == WorkloadState.ROLLBACK or (condition is not None and condition.is_true)
