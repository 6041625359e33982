"""Objects as the caches hold them, with what a test cares about."""

from altershield.api import labels, names
from altershield.api.kinds import (
    ChangePod,
    ChangePodSpec,
    ChangePodStatus,
    ChangeWorkload,
    ChangeWorkloadSpec,
    ChangeWorkloadStatus,
    PodInfo,
    WorkloadState,
)
from altershield.api.meta import ObjectMeta, OwnerReference, plain_time, rfc3339
from altershield.api.views import (
    Deployment,
    Pod,
    ReplicaSet,
    _Condition,
    _ContainerState,
    _ContainerStatus,
    _DeploymentSpec,
    _PodStatus,
    _ReplicaSetCondition,
    _ReplicaSetSpec,
    _ReplicaSetStatus,
    _Strategy,
    _Waiting,
)

NOW = 1_700_000_000
V1, V2, V3 = "1" * 32, "2" * 32, "3" * 32
DEPLOYMENT_UID = "deployment-uid"


def deployment(
    version: str = V1,
    *,
    replicas: int = 3,
    suspended: bool = False,
    strategy: str = "RollingUpdate",
    paused: bool = False,
) -> Deployment:
    own = {labels.VERSION: version, labels.DEFENSE_STATUS: labels.PROCESSED}
    if suspended:
        own[labels.SUSPEND] = str(NOW)
    return Deployment(
        metadata=ObjectMeta(name="sleep", namespace="default", uid=DEPLOYMENT_UID, generation=1, labels=own),
        spec=_DeploymentSpec(replicas=replicas, paused=paused, strategy=_Strategy(strategy)),
    )


def pod(
    name: str,
    *,
    version: str = V1,
    finished: int | None = None,
    created: int = NOW,
    ready: bool = False,
    terminating: bool = False,
    phase: str = "Running",
    waiting: tuple[str, str] | None = None,
) -> Pod:
    own = {labels.VERSION: version}
    if finished is not None:
        own[labels.OPERATE_FINISHED] = str(finished)
    state = _ContainerState(waiting=_Waiting(*waiting)) if waiting else _ContainerState()
    return Pod(
        metadata=ObjectMeta(
            name=name,
            namespace="default",
            uid=f"{name}-uid",
            labels=own,
            creation_timestamp=rfc3339(created),
            deletion_timestamp=rfc3339(created) if terminating else None,
        ),
        status=_PodStatus(
            phase=phase,
            pod_ip="10.0.0.1",
            conditions=(_Condition("Ready", "True" if ready else "False"),),
            container_statuses=(_ContainerStatus("main", state=state),),
        ),
    )


def change_workload(
    version: str = V1,
    status: ChangeWorkloadStatus | str = WorkloadState.RUNNING,
    *,
    wait: int = 60,
    threshold: int = 1,
    created: int = NOW,
) -> ChangeWorkload:
    name = names.change_workload_name("sleep", version)
    if isinstance(status, str):
        status = ChangeWorkloadStatus(status=status)
    return ChangeWorkload(
        metadata=ObjectMeta(
            name=name,
            namespace="default",
            uid=f"{version[:4]}-uid",
            generation=1,
            labels={labels.VERSION: version},
            owner_references=(OwnerReference("Deployment", "sleep", DEPLOYMENT_UID, "apps/v1", controller=True),),
        ),
        spec=ChangeWorkloadSpec(
            change_workload_id=name,
            service_name="sleep",
            app_name="sleep",
            reversion="1",
            count_threshold=threshold,
            wait_time_threshold=wait,
            create_time=plain_time(created),
            create_time_unix=created,
        ),
        status=status,
    )


def change_pod(number: int, *pods: str, version: str = V1, status: ChangePodStatus | None = None) -> ChangePod:
    name = names.change_workload_name("sleep", version)
    return ChangePod(
        metadata=ObjectMeta(
            name=names.change_pod_name(name, number), namespace="default", uid=f"{version[:4]}-{number}", generation=1
        ),
        spec=ChangePodSpec(name, plain_time(NOW), NOW, tuple(PodInfo(pod=pod) for pod in pods)),
        status=status or ChangePodStatus(),
    )


def replica_set(
    version: str,
    *,
    replicas: int = 3,
    ready: int = 3,
    revision: int = 1,
    name: str = "",
    observed: int = 1,
    pods: int | None = None,
    refused: tuple[int, str] | None = None,
) -> ReplicaSet:
    """`pods`: how many there are; `refused`: since when more of them cannot be created, and why."""
    conditions = (
        (_ReplicaSetCondition("ReplicaFailure", "True", "FailedCreate", refused[1], rfc3339(refused[0])),)
        if refused
        else ()
    )
    return ReplicaSet(
        metadata=ObjectMeta(
            name=name or f"sleep-{version[:6] or 'old'}",
            namespace="default",
            uid=f"rs-{version[:6]}-{name}",
            generation=1,
            labels={labels.VERSION: version} if version else {},
            annotations={"deployment.kubernetes.io/revision": str(revision)},
        ),
        spec=_ReplicaSetSpec(replicas=replicas),
        status=_ReplicaSetStatus(
            replicas=ready if pods is None else pods,
            ready_replicas=ready,
            observed_generation=observed,
            conditions=conditions,
        ),
    )
