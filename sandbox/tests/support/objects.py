"""Builders of objects in the form that the API server returns."""

from typing import Any

import msgspec

from kube_sandbox.cluster.deployments import rollout
from kube_sandbox.cluster.kinds import Deployment, Node, Pod, ReplicaSet

CREATED = "2026-01-01T00:00:00Z"
T0 = 1767225600.0  # CREATED in Unix seconds


def template(image: str = "busybox", **labels: str) -> dict[str, Any]:
    return {
        "metadata": {"labels": {"app": "sleep", **labels}},
        "spec": {"containers": [{"name": "sleep", "image": image}]},
    }


def deployment(
    replicas: int = 5,
    *,
    surge: int | str = "25%",
    unavailable: int | str = "25%",
    image: str = "busybox",
    status: dict[str, Any] | None = None,
    annotations: dict[str, str] | None = None,
    recreate: bool = False,
    **spec: Any,
) -> Deployment:
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}
    return msgspec.convert(
        {
            "metadata": {
                "name": "sleep",
                "namespace": "default",
                "uid": "deployment",
                "generation": 1,
                "annotations": annotations or {},
            },
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": {"app": "sleep"}},
                "template": template(image),
                "strategy": {"type": "Recreate"} if recreate else rolling,
                "progressDeadlineSeconds": 600,
                **spec,
            },
            "status": status or {},
        },
        Deployment,
    )


def replica_set(
    name: str,
    replicas: int,
    *,
    available: int | None = None,
    of: Deployment | None = None,
    image: str = "busybox",
    revision: int = 0,
    status: dict[str, Any] | None = None,
    created: str = CREATED,
    **spec: Any,
) -> ReplicaSet:
    """A ReplicaSet; by default, all its pods are available. `of` is the Deployment for which it was last scaled."""
    up = replicas if available is None else available
    annotations = rollout.replica_annotations(of) if of else {}
    if revision:
        annotations["deployment.kubernetes.io/revision"] = str(revision)
    return msgspec.convert(
        {
            "metadata": {
                "name": name,
                "namespace": "default",
                "uid": f"uid of {name}",
                "creationTimestamp": created,
                "generation": 1,
                "labels": {"app": "sleep"},
                "annotations": annotations,
            },
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": {"app": "sleep"}},
                "template": template(image, **{"pod-template-hash": name}),
                **spec,
            },
            "status": {
                "replicas": replicas,
                "readyReplicas": up,
                "availableReplicas": up,
                "observedGeneration": 1,
                **(status or {}),
            },
        },
        ReplicaSet,
    )


def pod(
    name: str = "sleep-1",
    *,
    image: str = "busybox",
    node: str = "sandbox-1",
    phase: str = "Pending",
    ready_since: str | None = None,
    status: dict[str, Any] | None = None,
    metadata: dict[str, Any] | None = None,
    **spec: Any,
) -> Pod:
    conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": ready_since}] if ready_since else []
    return msgspec.convert(
        {
            "metadata": {
                "name": name,
                "namespace": "default",
                "uid": f"uid of {name}",
                "creationTimestamp": CREATED,
                "labels": {"app": "sleep"},
                **(metadata or {}),
            },
            "spec": {"nodeName": node, "containers": [{"name": "sleep", "image": image}], **spec},
            "status": {"phase": phase, "conditions": conditions, **(status or {})},
        },
        Pod,
    )


def node(name: str = "sandbox-1", *, labels: dict[str, str] | None = None, **spec: Any) -> Node:
    return msgspec.convert(
        {
            "metadata": {"name": name, "labels": labels or {}},
            "spec": spec,
            "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
        },
        Node,
    )
