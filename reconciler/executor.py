"""Carries out what was decided on a ChangeWorkload, in an order that a crash cannot spoil.

The suspend label goes on after the status that explains it is stored, and comes off before that status goes: so
where there is a label, there is a reason, and whoever restarts in between derives the same again. What the new
status makes superfluous is deleted, and told, only after it is stored.
"""

from collections.abc import Callable, Sequence
from typing import Any

from altershield.api import labels, names
from altershield.api.kinds import (
    ChangePod,
    ChangePodSpec,
    ChangeWorkload,
    ChangeWorkloadStatus,
    ConditionType,
    PodInfo,
    WorkloadState,
)
from altershield.api.meta import ObjectMeta, OwnerReference, find_condition, plain_time
from altershield.api.resources import CHANGE_WORKLOADS, DEPLOYMENTS, REPLICA_SETS, Resource
from altershield.api.views import Deployment, ReplicaSet
from altershield.kube.client import Client
from altershield.kube.events import NORMAL, WARNING, EventRecorder, ObjectRef
from reconciler.caches import Caches
from reconciler.decisions.effects import (
    Announce,
    CreateChangePod,
    Effect,
    ReleaseAgain,
    Remove,
    Requeue,
    Resume,
    SetThreshold,
    Suspend,
)
from reconciler.metrics import Metrics
from reconciler.writer import Operation, Writer, label_path

_SUSPEND = label_path(labels.SUSPEND)


class Executor:
    def __init__(
        self,
        client: Client,
        caches: Caches,
        writer: Writer,
        recorder: EventRecorder,
        metrics: Metrics,
        clock: Callable[[], float],
    ) -> None:
        self._client = client
        self._caches = caches
        self._writer = writer
        self._recorder = recorder
        self._metrics = metrics
        self._clock = clock

    async def carry_out(
        self,
        change_workload: ChangeWorkload,
        deployment: Deployment | None,
        status: ChangeWorkloadStatus,
        effects: Sequence[Effect],
    ) -> float | None:
        """Do it all; in how many seconds to decide again, or None. ConflictError: decide anew, on newer caches."""
        before = change_workload.status
        for effect in effects:
            match effect:
                case CreateChangePod(number, pods):
                    await self._create_change_pod(change_workload, number, pods)
                case SetThreshold(count):
                    change_workload = await self._set_threshold(change_workload, count)
                case Resume() if deployment is not None:
                    await self._label(deployment, [{"op": "remove", "path": _SUSPEND}])
                case ReleaseAgain(replica_set) if deployment is not None:
                    await self._release_again(deployment, replica_set)
                case _:
                    pass
        if status != before:
            await self._writer.save_status(self._caches.change_workloads, change_workload, status)
            if status.status != before.status:
                self._count_end(change_workload, status)
        for effect in effects:
            match effect:
                case Suspend(since) if deployment is not None:
                    operations: list[Operation] = [{"op": "add", "path": _SUSPEND, "value": str(since)}]
                    if labels.IGNORED_SUSPEND in deployment.metadata.labels:
                        # left from an earlier repair, whose manifest was applied once more: it is not about this one
                        operations.append({"op": "remove", "path": label_path(labels.IGNORED_SUSPEND)})
                    await self._label(deployment, operations)
                case Remove(record):
                    await self._remove(record)
                case Announce(reason, message, warning) if deployment is not None:
                    regarding = ObjectRef.of(DEPLOYMENTS, deployment.metadata)
                    self._recorder.event(regarding, WARNING if warning else NORMAL, reason, message)
                case _:
                    pass
        return min((effect.seconds for effect in effects if isinstance(effect, Requeue)), default=None)

    async def _create_change_pod(self, change_workload: ChangeWorkload, number: int, pods: tuple[PodInfo, ...]) -> None:
        now = self._clock()
        metadata = change_workload.metadata
        record = ChangePod(
            metadata=ObjectMeta(
                name=names.change_pod_name(metadata.name, number),
                namespace=metadata.namespace,
                labels={
                    labels.VERSION: names.version_of(metadata.name),
                    labels.DEPLOYMENT_NAME: names.label_value(change_workload.spec.service_name),
                },
                owner_references=(owner(CHANGE_WORKLOADS, metadata),),
            ),
            spec=ChangePodSpec(
                change_workload_id=metadata.name,
                create_time=plain_time(now),
                create_time_unix=int(now),
                pod_infos=pods,
            ),
        )
        await self._writer.create(self._caches.change_pods, record)

    async def _set_threshold(self, change_workload: ChangeWorkload, count: int) -> ChangeWorkload:
        seen = change_workload.metadata.resource_version
        operations: list[Operation] = [
            # else a status written meanwhile, as a person who asks for a rollback does, would be overwritten next
            {"op": "test", "path": "/metadata/resourceVersion", "value": seen},
            {"op": "replace", "path": "/spec/countThreshold", "value": count},
        ]
        return await self._writer.patch(self._caches.change_workloads, change_workload, operations)

    async def _label(self, deployment: Deployment, operations: Sequence[Operation]) -> None:
        """Change labels of the Deployment as long as it is at the version that was decided about."""
        same = {"op": "test", "path": label_path(labels.VERSION), "value": deployment.version}
        await self._writer.patch(self._caches.deployments, deployment, [same, *operations])

    async def _release_again(self, deployment: Deployment, replica_set: ReplicaSet) -> None:
        """Give the Deployment the template of one of its ReplicaSets, as `kubectl rollout undo` does.

        The labels are set as the gatekeeper would, so that a cluster whose gatekeeper is down goes on as well.
        """
        raw: dict[str, Any] = await self._client.get(
            REPLICA_SETS, replica_set.metadata.name, replica_set.metadata.namespace
        )
        template = raw["spec"]["template"]
        template["metadata"]["labels"].pop(labels.POD_TEMPLATE_HASH, None)
        stamp = (
            {"op": "replace", "path": label_path(labels.VERSION), "value": replica_set.version}
            if replica_set.version
            else {"op": "remove", "path": label_path(labels.VERSION)}
        )
        operations = [{"op": "replace", "path": "/spec/template", "value": template}, stamp]
        if labels.DEFENSE_STATUS in deployment.metadata.labels:
            operations.append({"op": "remove", "path": label_path(labels.DEFENSE_STATUS)})
        await self._label(deployment, operations)

    async def _remove(self, record: ChangeWorkload | ChangePod) -> None:
        if isinstance(record, ChangeWorkload):
            await self._writer.delete(self._caches.change_workloads, record)
        else:
            await self._writer.delete(self._caches.change_pods, record)

    def _count_end(self, change_workload: ChangeWorkload, status: ChangeWorkloadStatus) -> None:
        """Count the end of a release, if the new state is one. A rollback that another release forestalled is none."""
        condition = find_condition(status.conditions, ConditionType.ROLLED_BACK)
        rolled_back = status.status == WorkloadState.FAILED and condition is not None and condition.is_true
        if rolled_back and condition is not None:
            self._metrics.rollbacks.labels(condition.reason).inc()
        if rolled_back or status.status in (WorkloadState.SUCCESS, WorkloadState.SUSPEND):
            self._metrics.ended(status.status, max(0.0, self._clock() - change_workload.spec.create_time_unix))


def owner(resource: Resource, metadata: ObjectMeta) -> OwnerReference:
    """The owner reference to an object of `resource` that manages what it is put on."""
    return OwnerReference(
        api_version=resource.api_version,
        kind=resource.kind,
        name=metadata.name,
        uid=metadata.uid,
        controller=True,
        block_owner_deletion=True,
    )
