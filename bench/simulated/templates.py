"""The templates of the objects: JSON with placeholders such as `%(uid)s`, and sizes as in real clusters."""

import time
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from altershield.api import labels, names
from altershield.api.change_pod import ChangePod, ChangePodSpec, ChangePodStatus, PodState
from altershield.api.change_workload import (
    ChangeWorkload,
    ChangeWorkloadSpec,
    ChangeWorkloadStatus,
    SourceRef,
    WorkloadRef,
    WorkloadState,
)
from altershield.api.condition_types import ConditionType
from altershield.api.meta import Condition
from altershield.api.pod_verdicts import PodInfo
from altershield.api.resources import CHANGE_WORKLOADS
from kube_base.meta import ObjectMeta
from kube_base.resources import DEPLOYMENTS, REPLICA_SETS
from kube_base.times import rfc3339

RELEASED = int(time.time()) - 3 * 86400
"""The time of the first release (Unix seconds)."""
CREATED = rfc3339(RELEASED)
LISTED = 2000
"""Pods that a status lists at most."""

T = TypeVar("T")


def _metadata(owner: tuple[str, str, str, str] | None, own: Mapping[str, str]) -> dict[str, Any]:
    """Metadata as an API server returns it, with managedFields. `owner`: the owner's apiVersion, kind, name and uid."""
    managed = {"manager": "kube-controller-manager", "operation": "Update", "time": CREATED, "fieldsType": "FieldsV1"}
    fields: dict[str, Any] = {f"f:field{each}": {"f:name": {}, "f:value": {}} for each in range(40)}
    metadata = {
        "name": "%(own)s",
        "namespace": "%(namespace)s",
        "uid": "%(uid)s",
        "resourceVersion": "%(rv)s",
        "generation": 1,
        "creationTimestamp": "%(time0)s",
        "labels": {
            "app": "%(workload)s",
            "pod-template-hash": "%(hash)s",
            "app.kubernetes.io/name": "%(workload)s",
            labels.VERSION: "%(of_set)s",
            **own,
        },
        "annotations": {"example.com/config": "%(annotation)s", "deployment.kubernetes.io/revision": "11"},
        "managedFields": [managed | {"fieldsV1": {"f:spec": fields}}],
    }
    if owner:
        version, kind, name, uid = owner
        reference = {"apiVersion": version, "kind": kind, "name": name, "uid": uid}
        metadata["ownerReferences"] = [reference | {"controller": True, "blockOwnerDeletion": True}]
    return metadata


def _made(type_: type[T], **fields: Any) -> T:
    """An object of a type, with placeholders instead of numbers."""
    return type_(**fields)


def condition(type_: str, reason: str, message: str, since: str = CREATED) -> Condition:
    return Condition(type_, "True", reason, message, last_transition_time=since, observed_generation=1)


def templates(replicas: int) -> dict[str, dict[str, Any]]:
    """The template of each resource, for a workload with this number of pods."""
    env = [{"name": f"SETTING_{each}", "value": "v" * 40} for each in range(20)]
    container: dict[str, Any] = {"name": "web", "image": "registry.example.com/shop/web:1.2.3", "env": env}
    own = {"app": "%(workload)s", labels.VERSION: "%(of_set)s"}
    containers: dict[str, Any] = {"containers": [container]}
    template = {"metadata": {"labels": own}, "spec": containers}
    selector = {"matchLabels": {"app": "%(workload)s"}}
    sets = {"replicas": replicas, "selector": selector, "template": template}
    counted = {"replicas": replicas, "readyReplicas": replicas, "availableReplicas": replicas, "observedGeneration": 1}
    deployment = ("apps/v1", "Deployment", "%(workload)s", "%(workload_uid)s")
    processed = {labels.DEFENSE_STATUS: labels.PROCESSED}
    times = {"create_time": "%(plain0)s", "create_time_unix": "%(unix0)s"}
    return {
        "namespaces": {
            "metadata": {
                "name": "%(own)s",
                "uid": "%(uid)s",
                "resourceVersion": "%(rv)s",
                "labels": {labels.GOVERNED: labels.GOVERNED_VALUE},
                "creationTimestamp": CREATED,
            }
        },
        "nodes": {
            "metadata": {"name": "%(own)s", "uid": "%(uid)s", "resourceVersion": "%(rv)s"},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        },
        "deployments": {"metadata": _metadata(None, processed), "spec": sets, "status": counted},
        "podunavailablebudgets": {
            "metadata": _metadata(None, {}),
            "spec": {"selector": selector, "maxUnavailable": 1},
            "status": _budget_status(replicas),
        },
        "replicasets": {
            "metadata": _metadata(deployment, {}),
            "spec": sets | {"replicas": "%(replicas)s"},
            "status": counted | {"replicas": "%(replicas)s"},
        },
        "pods": {
            "metadata": _metadata(
                ("apps/v1", "ReplicaSet", "%(set)s", "%(set_uid)s"), {labels.OPERATE_FINISHED: "%(mark)s"}
            ),
            "spec": containers | {"nodeName": "%(node)s"},
            "status": _pod_status(container["image"]),
        },
        "changeworkloads": _release(replicas, times)
        | {"metadata": _metadata(deployment, {}) | {"name": "%(release)s"}},
        "changepods": _batch(times)
        | {
            "metadata": _metadata(
                (CHANGE_WORKLOADS.api_version, CHANGE_WORKLOADS.kind, "%(release)s", "%(release_uid)s"), {}
            )
            | {"name": names.change_pod_name("%(release)s", "%(index)s")}
        },
    }


def _pod_status(image: str) -> dict[str, Any]:
    ready = [
        {"type": kind, "status": "True", "lastTransitionTime": "%(time30)s", "lastProbeTime": None}
        for kind in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    ]
    running = {"name": "web", "ready": True, "restartCount": 0, "started": True, "image": image}
    return {
        "phase": "Running",
        "podIP": "%(ip)s",
        "startTime": "%(time0)s",
        "conditions": ready,
        "containerStatuses": [running | {"state": {"running": {"startedAt": "%(time0)s"}}, "lastState": {}}],
    }


def _info(pod: str, uid: str, ip: str = "10.0.0.1") -> PodInfo:
    return PodInfo(
        pod=pod, uid=uid, app="%(workload)s", host_name=pod, namespace="%(namespace)s", work_space="default", ip=ip
    )


def _release(replicas: int, times: Mapping[str, Any]) -> dict[str, Any]:
    source = SourceRef(REPLICA_SETS.kind, "%(set)s", "%(set_uid)s", "%(version)s", "%(version)s")
    before = SourceRef(REPLICA_SETS.kind, "%(workload)s-7f6c9d5b84", "%(old_uid)s", "9" * 32)
    spec = _made(
        ChangeWorkloadSpec,
        change_workload_id="%(release)s",
        service_name="%(workload)s",
        app_name="%(workload)s",
        reversion="%(version)s",
        count_threshold=1,
        wait_time_threshold=60,
        workload_ref=WorkloadRef(DEPLOYMENTS.api_version, DEPLOYMENTS.kind, "%(workload)s", "%(workload_uid)s"),
        workload_generation=1,
        **times,
    )
    settled = "all pods stayed up for the start timeout after they passed; pods that break now do not end the release"
    status = _made(
        ChangeWorkloadStatus,
        status=WorkloadState.SUCCESS,
        defense_check_pass_pods=tuple(
            _info(f"%(pod{each})s", f"%(pod_uid{each})s") for each in range(min(replicas, LISTED))
        ),
        entry_time="%(plain30)s",
        entry_time_unix="%(unix30)s",
        update_time="%(plain150)s",
        update_time_unix="%(unix150)s",
        settle_time_unix="%(unix150)s",
        source=source,
        previous=before,
        conditions=(
            condition(ConditionType.VERIFIED, "PodsPassed", f"{replicas} of {replicas} pods passed", "%(time30)s"),
            condition(ConditionType.SETTLED, "StayedUp", settled, "%(time150)s"),
        ),
        observed_generation=1,
    )
    found: dict[str, Any] = msgspec.to_builtins(ChangeWorkload(metadata=ObjectMeta(), spec=spec, status=status))
    return found


def _budget_status(replicas: int) -> dict[str, Any]:
    condition = {
        "status": "True",
        "observedGeneration": 1,
        "lastTransitionTime": "%(time30)s",
        "message": "as it should be",
    }
    return {
        "observedGeneration": 1,
        "totalReplicas": replicas,
        "desiredAvailable": replicas - 1,
        "currentAvailable": replicas,
        "unavailableAllowed": 1,
        "podsResourceVersion": "100000000",
        "conditions": [condition | {"type": each, "reason": each} for each in ("Accepted", "Satisfied")],
    }


def _batch(times: Mapping[str, Any]) -> dict[str, Any]:
    spec = _made(
        ChangePodSpec, change_workload_id="%(release)s", pod_infos=(_info("%(own)s", "%(pod_uid)s", "%(ip)s"),), **times
    )
    status = _made(
        ChangePodStatus,
        status=PodState.EXECUTE_DONE,
        message=PodState.PRE_FAILED,
        update_time="%(plain30)s",
        update_time_unix="%(unix30)s",
        conditions=(
            condition(
                ConditionType.VERIFIED,
                "NotChecked",
                "not all pods got a verdict; a pod without a verdict counts as passed",
                "%(time30)s",
            ),
        ),
        observed_generation=1,
    )
    found: dict[str, Any] = msgspec.to_builtins(ChangePod(metadata=ObjectMeta(), spec=spec, status=status))
    return found
