"""ChangeWorkloads, ChangePods and workloads with the fields that tests set."""

import msgspec

from altershield.api import labels, names
from altershield.api.change_pod import ChangePod, ChangePodSpec, ChangePodStatus
from altershield.api.change_workload import (
    ChangeWorkload,
    ChangeWorkloadSpec,
    ChangeWorkloadStatus,
    WorkloadRef,
    WorkloadState,
)
from altershield.api.meta import plain_time
from altershield.api.pod_verdicts import PodInfo
from altershield.workloads import change_workload_name
from altershield.workloads.workload import Workload
from kube_base.meta import ObjectMeta, OwnerReference
from kube_base.times import rfc3339
from tests.support import workloads
from tests.support.workloads import BY_NAME, GROUP_KINDS

NOW = 1_700_000_000
V1, V2, V3 = "1" * 32, "2" * 32, "3" * 32


def workload(version: str = V1, *, kind: str = "Deployment", name: str = "sleep", generation: int = 1) -> Workload:
    """A workload whose release is processed: it has the label defense-status."""
    own = {labels.VERSION: version, labels.DEFENSE_STATUS: labels.PROCESSED} if version else {}
    metadata = {"namespace": "default", "uid": name, "resourceVersion": "1", "generation": generation, "labels": own}
    body = workloads.manifest(kind, name, "busybox", metadata=metadata)
    return BY_NAME[kind].read(msgspec.json.encode({**body, "status": {"observedGeneration": generation}}))


def release(
    version: str = V1,
    status: ChangeWorkloadStatus | str = WorkloadState.RUNNING,
    *,
    kind: str = "Deployment",
    name: str = "sleep",
    uid: str = "",
) -> ChangeWorkload:
    """The ChangeWorkload of the workload with this name."""
    api_version, own = BY_NAME[kind].resource.api_version, change_workload_name(GROUP_KINDS[kind], name, version)
    if isinstance(status, str):
        status = ChangeWorkloadStatus(status=status)
    return ChangeWorkload(
        metadata=ObjectMeta(
            name=own,
            namespace="default",
            uid=uid or f"release-{own}",
            resource_version="1",
            generation=1,
            creation_timestamp=rfc3339(NOW),
            labels={labels.VERSION: version},
            owner_references=(OwnerReference(kind, name, name, api_version, controller=True),),
        ),
        spec=ChangeWorkloadSpec(
            change_workload_id=own,
            service_name=name,
            app_name=name,
            reversion=version,
            count_threshold=1,
            wait_time_threshold=60,
            create_time=plain_time(NOW),
            create_time_unix=NOW,
            workload_ref=WorkloadRef(api_version, kind, name, name),
            workload_generation=1,
        ),
        status=status,
    )


def change_pod(number: int, *pods: str, status: ChangePodStatus | None = None, verdict: str = "") -> ChangePod:
    """A batch of these pods. `verdict`: the verdict that the batch is created with."""
    own = change_workload_name(GROUP_KINDS["Deployment"], "sleep", V1)
    infos = tuple(PodInfo(pod=pod, uid=f"{pod}-uid", verdict=verdict) for pod in pods)
    return ChangePod(
        metadata=ObjectMeta(
            name=names.change_pod_name(own, number), namespace="default", uid=f"batch-{number}", generation=1
        ),
        spec=ChangePodSpec(own, plain_time(NOW), NOW, infos),
        status=status or ChangePodStatus(),
    )
