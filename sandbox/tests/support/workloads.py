"""Builders of StatefulSets, DaemonSets, CloneSets and their pods."""

from typing import Any

import msgspec

from kube_sandbox.cluster.history import REVISION_LABEL
from kube_sandbox.cluster.kinds import Node, Pod
from kube_sandbox.cluster.workload_kinds import CloneSet, DaemonSet, StatefulSet
from support.objects import CREATED, node, pod, template

Object = dict[str, Any]


def stateful_set(replicas: int = 3, *, partition: int = 0, parallel: bool = False, **spec: Any) -> StatefulSet:
    rolling: Object = {"partition": partition}
    if (some := spec.pop("max_unavailable", None)) is not None:
        rolling["maxUnavailable"] = some
    body = {
        "metadata": _metadata("web"),
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "sleep"}},
            "template": template(),
            "podManagementPolicy": "Parallel" if parallel else "OrderedReady",
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling},
            **spec,
        },
    }
    return msgspec.convert(body, StatefulSet)


def member(number: int, revision: str = "old", *, up: bool = True, leaving: bool = False, **status: Any) -> Pod:
    """A pod of the StatefulSet `web`."""
    name = f"web-{number}"
    labels = {"apps.kubernetes.io/pod-index": str(number), "statefulset.kubernetes.io/pod-name": name}
    return replica(name, revision, up=up, leaving=leaving, labels=labels, **status)


def daemon_set(*, unavailable: int | str = 1, surge: int | str = 0, **spec: Any) -> DaemonSet:
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": unavailable, "maxSurge": surge}}
    body = {
        "metadata": _metadata("agent"),
        "spec": {
            "selector": {"matchLabels": {"app": "sleep"}},
            "template": template(),
            "updateStrategy": rolling,
            **spec,
        },
    }
    return msgspec.convert(body, DaemonSet)


def clone_set(replicas: int = 5, *, scale: Object | None = None, **strategy: Any) -> CloneSet:
    body = {
        "metadata": _metadata("web"),
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "sleep"}},
            "template": template(),
            "scaleStrategy": scale or {},
            "updateStrategy": strategy,
        },
    }
    return msgspec.convert(body, CloneSet)


def replica(
    name: str,
    revision: str = "old",
    *,
    up: bool = True,
    leaving: bool = False,
    node: str = "sandbox-1",
    labels: dict[str, str] | None = None,
    ready_since: str = CREATED,
    **status: Any,
) -> Pod:
    metadata: Object = {"labels": {"app": "sleep", REVISION_LABEL: revision, **(labels or {})}}
    if leaving:
        metadata["deletionTimestamp"] = CREATED
    return pod(
        name,
        phase="Running",
        node=node,
        ready_since=ready_since if up else None,
        metadata=metadata,
        status=status or None,
    )


def nodes(*names: str) -> list[Node]:
    return [node(name) for name in names]


def _metadata(name: str) -> Object:
    return {"name": name, "namespace": "default", "uid": f"uid of {name}", "generation": 1}
