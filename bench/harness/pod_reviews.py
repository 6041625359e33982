"""AdmissionReviews of deletions and evictions of pods, and the objects of a cluster in which a PodUnavailableBudget
refuses them. The pods have the fields of a Deployment's pods."""

from collections.abc import Mapping
from typing import Any

from altershield.api.resources import POD_UNAVAILABLE_BUDGETS
from bench.harness.reviews import managed_fields, review
from kube_base.resources import DEPLOYMENTS, PODS, REPLICA_SETS

FREE = "default"
"""A namespace without budgets."""
FROZEN = "shop"
"""A namespace whose budget allows no disruption."""

_PODS = 20
_LABELS = {"app": "web", "pod-template-hash": "6d4cf56db6"}
_SET = "web-6d4cf56db6"


def deletion(namespace: str) -> Any:
    """Makes the review of a deletion, from its number and a number of environment variables."""

    def make(number: int, variables: int) -> dict[str, Any]:
        pod = _pod(namespace, number % _PODS, variables)
        return review(PODS, "DELETE", namespace, _name(number % _PODS), None, pod, number=number)

    return make


def eviction(namespace: str) -> Any:
    """Makes the review of an eviction. It does not contain the pod, so its size does not depend on the pod's."""

    def make(number: int, variables: int) -> dict[str, Any]:
        name = _name(number % _PODS)
        metadata = {"name": name, "namespace": namespace, "creationTimestamp": None}
        new = {"kind": "Eviction", "apiVersion": "policy/v1", "metadata": metadata}
        kind = {"group": "policy", "version": "v1", "kind": "Eviction"}
        more = {"subResource": "eviction", "requestSubResource": "eviction", "kind": kind, "requestKind": kind}
        return review(PODS, "CREATE", namespace, name, new, None, number=number, **more)

    return make


def cluster() -> Mapping[str, list[dict[str, Any]]]:
    """The objects of the namespace FROZEN, by plural."""
    selector = {"matchLabels": {"app": "web"}}
    workload = {"replicas": _PODS, "selector": selector, "template": {"metadata": {"labels": _LABELS}, "spec": {}}}
    return {
        PODS.plural: [_pod(FROZEN, number, 4) for number in range(_PODS)],
        REPLICA_SETS.plural: [
            {"metadata": _metadata(_SET, 2, [_owner("Deployment", "web", 1)]), "spec": workload, "status": {}}
        ],
        DEPLOYMENTS.plural: [{"metadata": _metadata("web", 1, []), "spec": workload, "status": {}}],
        POD_UNAVAILABLE_BUDGETS.plural: [
            {"metadata": _metadata("web", 3, []), "spec": {"selector": selector, "maxUnavailable": 0}}
        ],
    }


def _name(number: int) -> str:
    return f"{_SET}-{number:05d}"


def _uid(number: int) -> str:
    return f"a9b8b77c-ebaa-48d7-915f-bb8c{number:08x}"


def _owner(kind: str, name: str, uid: int) -> dict[str, Any]:
    return {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": _uid(uid), "controller": True}


def _metadata(name: str, uid: int, owners: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "name": name,
        "namespace": FROZEN,
        "uid": _uid(uid),
        "resourceVersion": "1",
        "generation": 1,
        "creationTimestamp": "2026-05-11T07:46:13Z",
        "labels": _LABELS,
        "ownerReferences": owners,
    }


def _pod(namespace: str, number: int, variables: int) -> dict[str, Any]:
    env = [{"name": f"VARIABLE_{n}", "value": f"the value of variable {n}"} for n in range(variables)]
    mounts = [
        {"name": "kube-api-access", "readOnly": True, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}
    ]
    container = {"name": "web", "image": "registry.example.com/shop/web:1.2.3", "env": env, "volumeMounts": mounts}
    state = {"running": {"startedAt": "2026-05-11T07:46:20Z"}}
    identity = {"image": container["image"], "containerID": f"containerd://{number:064x}"}
    running = {"name": "web", "ready": True, "restartCount": 0, "started": True, "state": state, "lastState": {}}
    kinds = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    ready = {"status": "True", "lastProbeTime": None, "lastTransitionTime": "2026-05-11T07:46:20Z"}
    metadata = _metadata(_name(number), 100 + number, [_owner("ReplicaSet", _SET, 2)])
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": metadata | {"namespace": namespace, "managedFields": managed_fields(variables)},
        "spec": {
            "containers": [container],
            "restartPolicy": "Always",
            "nodeName": "node-1",
            "serviceAccountName": "default",
            "tolerations": [
                {
                    "key": f"node.kubernetes.io/{each}",
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": 300,
                }
                for each in ("not-ready", "unreachable")
            ],
        },
        "status": {
            "phase": "Running",
            "conditions": [ready | {"type": kind} for kind in kinds],
            "hostIP": "10.0.0.1",
            "podIP": "10.1.0.1",
            "startTime": "2026-05-11T07:46:13Z",
            "containerStatuses": [running | identity],
            "qosClass": "BestEffort",
        },
    }
