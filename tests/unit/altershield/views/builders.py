"""Workloads and ChangeWorkloads for the tests of `altershield status`."""

from typing import Any

import msgspec

from altershield.api import labels
from altershield.api.change_workload import (
    ChangeWorkload,
    ChangeWorkloadSpec,
    ChangeWorkloadStatus,
    WorkloadRef,
    WorkloadState,
)
from altershield.api.condition_types import ConditionType
from altershield.api.meta import Condition
from altershield.api.rollout import Rollout, RolloutStatus
from altershield.views.releases.model import StoredRelease
from altershield.workloads import change_workload_name
from altershield.workloads.workload import Workload
from kube_base.meta import ObjectMeta, OwnerReference
from tests.support import workloads
from tests.support.workloads import BY_NAME, GROUP_KINDS

V1, V2 = "1" * 32, "2" * 32
DONE = ChangeWorkloadStatus(status=WorkloadState.SUCCESS)
RUNNING = ChangeWorkloadStatus(status=WorkloadState.RUNNING)
SUSPENDED = ChangeWorkloadStatus(status=WorkloadState.SUSPEND)
ROLLED_BACK = ChangeWorkloadStatus(
    status=WorkloadState.FAILED, conditions=(Condition(ConditionType.ROLLED_BACK, "True", "PodNotUp"),)
)


def manifest(kind: str = "Deployment", name: str = "web", version: str = V1, **own: str) -> dict[str, Any]:
    """A workload. With a `version` that is not empty, it is processed. `own` are further labels."""
    stamped = {labels.VERSION: version, labels.DEFENSE_STATUS: labels.PROCESSED} if version else {}
    metadata = {"namespace": "shop", "uid": "u", "labels": stamped | own}
    return workloads.manifest(kind, name, "busybox", metadata=metadata)


def workload(kind: str = "Deployment", name: str = "web", version: str = V1, **own: str) -> Workload:
    return BY_NAME[kind].read(msgspec.json.encode(manifest(kind, name, version, **own)))


def release(
    status: ChangeWorkloadStatus = DONE,
    kind: str = "Deployment",
    name: str = "web",
    version: str = V1,
    uid: str = "u",
    created: int = 0,
) -> ChangeWorkload:
    own = change_workload_name(GROUP_KINDS[kind], name, version)
    ref = WorkloadRef(BY_NAME[kind].resource.api_version, kind, name, uid)
    owner = OwnerReference(kind, name, uid, ref.api_version, controller=True)
    spec = ChangeWorkloadSpec(own, name, name, version, 1, 60, "", created, ref)
    if not status.source.fingerprint:  # of the template of `manifest`
        source = msgspec.structs.replace(status.source, fingerprint=workload(kind, name).fingerprint)
        status = msgspec.structs.replace(status, source=source)
    return ChangeWorkload(ObjectMeta(name=own, namespace="shop", owner_references=(owner,)), spec, status)


def stored(of: ChangeWorkload, **metadata: Any) -> StoredRelease:
    """The ChangeWorkload as the API server sends it."""
    obj = msgspec.to_builtins(of)
    obj["metadata"] |= metadata
    return StoredRelease(of, msgspec.json.encode(obj))


def in_steps(rollout: Rollout, status: RolloutStatus, state: WorkloadState = WorkloadState.RUNNING) -> ChangeWorkload:
    """A release in steps, of a workload with one pod unless its replicas are set."""
    made = release(ChangeWorkloadStatus(status=state, rollout=status))
    policy = msgspec.structs.replace(made.spec.policy, namespace="shop", name="steps", rollout=rollout)
    return msgspec.structs.replace(made, spec=msgspec.structs.replace(made.spec, policy=policy))


def scaled(replicas: int) -> Workload:
    """The workload with so many replicas."""
    obj = manifest()
    obj["spec"]["replicas"] = replicas
    return BY_NAME["Deployment"].read(msgspec.json.encode(obj))
