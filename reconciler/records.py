"""How the record of a release begins."""

from collections.abc import Callable

import msgspec

from altershield.api import labels, names
from altershield.api.kinds import ChangeWorkload, ChangeWorkloadSpec, ChangeWorkloadStatus, ConditionType, WorkloadState
from altershield.api.meta import Condition, ObjectMeta, find_condition, plain_time, rfc3339
from altershield.api.resources import DEPLOYMENTS
from altershield.api.views import Deployment
from reconciler.caches import Caches
from reconciler.decisions.rollback import RollbackReason
from reconciler.executor import owner
from reconciler.writer import Operation, Writer, label_path


class Records:
    """`batch_wait`: seconds after which a batch is verified although it is not full."""

    def __init__(self, caches: Caches, writer: Writer, clock: Callable[[], float], batch_wait: int) -> None:
        self._caches = caches
        self._writer = writer
        self._clock = clock
        self._batch_wait = batch_wait

    async def existing(self, deployment: Deployment, version: str) -> ChangeWorkload | None:
        """The record of one version of this very Deployment, if there is one."""
        namespace, name = deployment.metadata.namespace, names.change_workload_name(deployment.metadata.name, version)
        record = self._caches.change_workloads.get(namespace, name)
        owned_by = record.metadata.controller if record is not None else None
        if record is not None and (owned_by is None or owned_by.uid != deployment.metadata.uid):
            # of a Deployment by the same name that was deleted and not yet collected
            await self._writer.delete(self._caches.change_workloads, record)
            return None
        return record

    async def create(self, deployment: Deployment, version: str) -> ChangeWorkload:
        name = names.change_workload_name(deployment.metadata.name, version)
        record = ChangeWorkload(
            metadata=ObjectMeta(
                name=name,
                namespace=deployment.metadata.namespace,
                labels={
                    labels.VERSION: version,
                    labels.DEPLOYMENT_NAME: names.label_value(deployment.metadata.name),
                },
                owner_references=(owner(DEPLOYMENTS, deployment.metadata),),
            ),
            spec=self._spec(deployment, name),
        )
        return await self._writer.create(self._caches.change_workloads, record)

    async def start_anew(self, deployment: Deployment, record: ChangeWorkload) -> None:
        """Start the record of a version that is released again anew."""
        await self.began(deployment, await self.reset(record))

    async def reset(self, record: ChangeWorkload, *more: Condition) -> ChangeWorkload:
        """The first step of this: the status, with what has to be known from before and `more`."""
        now = self._clock()
        status = ChangeWorkloadStatus(
            status=WorkloadState.INIT,
            entry_time=plain_time(now),
            entry_time_unix=int(now),
            update_time=plain_time(now),
            update_time_unix=int(now),
            conditions=(*_kept(record, now), *more),
            observed_generation=record.metadata.generation,
        )
        return await self._writer.save_status(self._caches.change_workloads, record, status)

    async def began(self, deployment: Deployment, record: ChangeWorkload) -> None:
        """The last step: the spec says that it was done."""
        spec = msgspec.to_builtins(self._spec(deployment, record.metadata.name))
        replace = {"op": "replace", "path": "/spec", "value": spec}
        await self._writer.patch(self._caches.change_workloads, record, [replace])

    def _spec(self, deployment: Deployment, name: str) -> ChangeWorkloadSpec:
        now = self._clock()
        return ChangeWorkloadSpec(
            change_workload_id=name,
            service_name=deployment.metadata.name,
            app_name=deployment.metadata.name,
            reversion=reversion(deployment),
            count_threshold=self._caches.in_effect().batch(deployment.spec.replicas),
            wait_time_threshold=self._batch_wait,
            create_time=plain_time(now),
            create_time_unix=int(now),
        )


def processed(deployment: Deployment) -> list[Operation]:
    """What lets verification begin. `ignored-suspend` has let this release pass; it counts once."""
    operations: list[Operation] = [{"op": "add", "path": label_path(labels.DEFENSE_STATUS), "value": labels.PROCESSED}]
    if labels.IGNORED_SUSPEND in deployment.metadata.labels:
        operations.append({"op": "remove", "path": label_path(labels.IGNORED_SUSPEND)})
    return operations


def reversion(deployment: Deployment) -> str:
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
