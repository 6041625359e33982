"""Workloads and pods as the API server sends them."""

from typing import Any

import msgspec

from altershield.api import labels
from altershield.workloads import pods as pod_projections
from altershield.workloads.pods import Pod
from altershield.workloads.workload import Workload
from tests.support import workloads
from tests.support.workloads import BY_NAME

Object = dict[str, Any]
CREATED = "2026-08-21T07:29:49Z"
VERSION = "1" * 32


def template(image: str = "nginx:1.27", **of_labels: str) -> Object:
    """A pod template with the defaults of the API server."""
    container = {
        "imagePullPolicy": "IfNotPresent",
        "resources": {"requests": {"cpu": "100m"}},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    }
    made = workloads.template(
        "web",
        image,
        of_labels,
        container=container,
        dnsPolicy="ClusterFirst",
        restartPolicy="Always",
        schedulerName="default-scheduler",
        securityContext={},
        terminationGracePeriodSeconds=30,
    )
    made["metadata"]["creationTimestamp"] = None
    return made


def manifest(kind: str, *, status: Object | None = None, metadata: Object | None = None, **spec: Any) -> Object:
    own = {labels.VERSION: VERSION, labels.DEFENSE_STATUS: "processed"}
    metadata = {
        "namespace": "shop",
        "uid": "3f1c9a52-0d4e-4a43-8a30-1f6f3a1f0c11",
        "resourceVersion": "4711",
        "generation": 3,
        "creationTimestamp": CREATED,
        "annotations": {"note": "not read"},
        "managedFields": [{"manager": "kubectl", "operation": "Apply"}],
        **(metadata or {}),
    }
    spec = {"template": template(), **spec}
    made = workloads.manifest(kind, "web", "nginx:1.27", labels=own, metadata=metadata, **spec)
    return {**made, "status": {"observedGeneration": 3, **(status or {})}}


def workload(kind: str, **more: Any) -> Workload:
    return BY_NAME[kind].read(msgspec.json.encode(manifest(kind, **more)))


def pod(*, status: Object | None = None, spec: Object | None = None, **metadata: Any) -> Pod:
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "web-5d4f8c7b9-x2x7z",
            "namespace": "shop",
            "uid": "pod-uid",
            "resourceVersion": "5",
            "creationTimestamp": CREATED,
            "labels": {"app": "web", labels.VERSION: VERSION},
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": "web-5d4f8c7b9",
                    "uid": "rs-uid",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
            **metadata,
        },
        "spec": {"nodeName": "node-1", **(spec or {})},
        "status": {"phase": "Running", **(status or {})},
    }
    return pod_projections.read(msgspec.json.encode(body))


def container(*, ready: bool = False, restarts: int = 0, last: Object | None = None, **state: Any) -> Object:
    return {
        "name": "main",
        "ready": ready,
        "started": ready,
        "restartCount": restarts,
        "image": "nginx",
        "imageID": "",
        "state": state,
        "lastState": last or {},
    }


def condition(type_: str, status: bool, **more: str) -> Object:
    return {"type": type_, "status": str(status), "lastProbeTime": None, "lastTransitionTime": CREATED, **more}
