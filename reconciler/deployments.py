"""Controller: every release of a governed Deployment gets its ChangeWorkload."""

from collections.abc import Callable

import msgspec

from altershield.api import labels, names
from altershield.api.kinds import ChangeWorkload, ChangeWorkloadSpec, ChangeWorkloadStatus, ConditionType, WorkloadState
from altershield.api.meta import Condition, ObjectMeta, find_condition, plain_time, rfc3339
from altershield.api.resources import DEPLOYMENTS
from altershield.api.views import Deployment
from reconciler.caches import Caches, Key
from reconciler.decisions.rollback import RollbackReason
from reconciler.executor import owner
from reconciler.writer import Operation, Writer, label_path


class DeploymentsController:
    """`batch_wait`: seconds after which a batch is verified although it is not full."""

    def __init__(self, caches: Caches, writer: Writer, clock: Callable[[], float], batch_wait: int) -> None:
        self._caches = caches
        self._writer = writer
        self._clock = clock
        self._batch_wait = batch_wait

    async def reconcile(self, key: Key) -> float | None:
        deployment = self._caches.deployments.get(*key)
        if (
            deployment is None
            or deployment.metadata.deletion_timestamp is not None
            or not names.is_version(deployment.version)
            or not self._caches.governed(key[0])
        ):
            return None
        processed = deployment.metadata.labels.get(labels.DEFENSE_STATUS) == labels.PROCESSED
        name = names.change_workload_name(deployment.metadata.name, deployment.version)
        record = self._caches.change_workloads.get(key[0], name)
        owned_by = record.metadata.controller if record is not None else None
        if record is not None and (owned_by is None or owned_by.uid != deployment.metadata.uid):
            # the record of a Deployment by the same name that was deleted and not yet collected
            await self._writer.delete(self._caches.change_workloads, record)
            record = None
        if record is None:
            await self._writer.create(self._caches.change_workloads, self._record(deployment, name))
        elif not processed and record.spec.reversion != _reversion(deployment):
            await self._release_again(deployment, record)
        if not processed:
            await self._mark_processed(deployment)
        return None

    def _record(self, deployment: Deployment, name: str) -> ChangeWorkload:
        return ChangeWorkload(
            metadata=ObjectMeta(
                name=name,
                namespace=deployment.metadata.namespace,
                labels={
                    labels.VERSION: deployment.version,
                    labels.DEPLOYMENT_NAME: names.label_value(deployment.metadata.name),
                },
                owner_references=(owner(DEPLOYMENTS, deployment.metadata),),
            ),
            spec=self._spec(deployment, name),
        )

    def _spec(self, deployment: Deployment, name: str) -> ChangeWorkloadSpec:
        now = self._clock()
        return ChangeWorkloadSpec(
            change_workload_id=name,
            service_name=deployment.metadata.name,
            app_name=deployment.metadata.name,
            reversion=_reversion(deployment),
            count_threshold=self._caches.in_effect().batch(deployment.spec.replicas),
            wait_time_threshold=self._batch_wait,
            create_time=plain_time(now),
            create_time_unix=int(now),
        )

    async def _release_again(self, deployment: Deployment, record: ChangeWorkload) -> None:
        """Start the record of a version anew. The spec comes last: it says that this was done."""
        now = self._clock()
        status = ChangeWorkloadStatus(
            status=WorkloadState.INIT,
            entry_time=plain_time(now),
            entry_time_unix=int(now),
            update_time=plain_time(now),
            update_time_unix=int(now),
            conditions=_kept(record, now),
            observed_generation=record.metadata.generation,
        )
        record = await self._writer.save_status(self._caches.change_workloads, record, status)
        spec = msgspec.to_builtins(self._spec(deployment, record.metadata.name))
        replace = {"op": "replace", "path": "/spec", "value": spec}
        await self._writer.patch(self._caches.change_workloads, record, [replace])

    async def _mark_processed(self, deployment: Deployment) -> None:
        """Let verification begin. `ignored-suspend` has let this release pass; it counts once."""
        operations: list[Operation] = [
            {"op": "test", "path": label_path(labels.VERSION), "value": deployment.version},
            {"op": "add", "path": label_path(labels.DEFENSE_STATUS), "value": labels.PROCESSED},
        ]
        if labels.IGNORED_SUSPEND in deployment.metadata.labels:
            operations.append({"op": "remove", "path": label_path(labels.IGNORED_SUSPEND)})
        await self._writer.patch(self._caches.deployments, deployment, operations)


def _reversion(deployment: Deployment) -> str:
    return str(deployment.metadata.generation)


def _kept(record: ChangeWorkload, now: float) -> tuple[Condition, ...]:
    """What a release again must know: that this version was rolled back once. It is not a second time."""
    known = find_condition(record.status.conditions, ConditionType.ROLLED_BACK)
    once = (RollbackReason.RELEASED_AGAIN, RollbackReason.ALREADY_ROLLED_BACK)
    if known is None or not (known.is_true or known.reason in once):
        return ()
    return (
        Condition(
            ConditionType.ROLLED_BACK,
            "False",
            RollbackReason.RELEASED_AGAIN,
            "this version was rolled back once and then released again; it is not rolled back by itself a second time",
            last_transition_time=rfc3339(now),
            observed_generation=record.metadata.generation,
        ),
    )
