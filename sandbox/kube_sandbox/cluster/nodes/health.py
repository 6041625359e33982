"""Conditions, taints and evictions that follow from the state of a node's kubelet. Pure functions.

The rules are those of pkg/controller/nodelifecycle and pkg/controller/tainteviction.
"""

from collections.abc import Iterable
from typing import NamedTuple

from kube_base.times import rfc3339, unix
from kube_sandbox.cluster.kinds import Node, Object, Pod, Taint, find
from kube_sandbox.cluster.scheduler import placement

KUBELET = "sandbox.altershield.io/kubelet"
"""Annotation of a Node. `down`: the kubelet or the machine does not respond. `not-ready`: the kubelet reports that it
is not ready. Any other value: the node is simulated and healthy."""
DOWN, NOT_READY = "down", "not-ready"

UNREACHABLE_TAINT = "node.kubernetes.io/unreachable"
NOT_READY_TAINT = "node.kubernetes.io/not-ready"
_SILENT = ("NodeStatusUnknown", "Kubelet stopped posting node status.")
_OWN_TAINTS = frozenset({UNREACHABLE_TAINT, NOT_READY_TAINT, placement.UNSCHEDULABLE.key})
_OUT_OF_ORDER = ("KubeletNotReady", "container runtime is down")


class Eviction(NamedTuple):
    pod: Pod
    at: float
    """Unix seconds."""


def kubelet(node: Node | None) -> str:
    return node.metadata.annotations.get(KUBELET, "") if node else ""


def works(node: Node | None) -> bool:
    """Whether the kubelet of the node works."""
    return kubelet(node) not in (DOWN, NOT_READY)


def is_ready(node: Node) -> bool:
    ready = find(node.status.conditions, "Ready")
    return ready is not None and ready.status == "True"


def silent_conditions(node: Node, now: float) -> list[Object]:
    """The conditions of a node whose kubelet does not respond: all Unknown. Only those that differ now."""
    reason, message = _SILENT
    return [
        _condition(condition.type, "Unknown", reason, message, now)
        for condition in node.status.conditions
        if condition.status != "Unknown"
    ]


def broken_conditions(node: Node, now: float) -> list[Object]:
    """The conditions that a kubelet in state `not-ready` reports; empty if the node has them."""
    ready = find(node.status.conditions, "Ready")
    if ready is not None and ready.status == "False":
        return []
    return [_condition("Ready", "False", *_OUT_OF_ORDER, now)]


def taints(node: Node, now: float) -> tuple[Taint, ...]:
    """The taints that the node should have. Taints of other owners stay; existing taints keep their time."""
    ready = find(node.status.conditions, "Ready")
    wanted: list[Taint] = []
    if ready is not None and ready.status != "True":
        key = UNREACHABLE_TAINT if ready.status == "Unknown" else NOT_READY_TAINT
        wanted += [Taint(key, "NoSchedule"), Taint(key, "NoExecute")]
    if node.spec.unschedulable:
        wanted.append(placement.UNSCHEDULABLE)
    present = {(taint.key, taint.effect): taint for taint in node.spec.taints}
    kept = [taint for taint in node.spec.taints if taint.key not in _OWN_TAINTS]
    since = rfc3339(now)
    own = [present.get((one.key, one.effect)) or Taint(one.key, one.effect, "", since) for one in wanted]
    return (*kept, *own)


def to_mark(pods: Iterable[Pod]) -> list[Pod]:
    """The ready pods: on a node whose kubelet fails, they are marked as not ready."""
    return [pod for pod in pods if pod.ready_since is not None]


def unready_patch(pod: Pod, now: float) -> Object:
    """A status patch that sets Ready to False. As in Kubernetes, only the Event has the reason."""
    condition = {"type": "Ready", "status": "False", "lastTransitionTime": rfc3339(now)}
    return {"metadata": {"uid": pod.metadata.uid}, "status": {"conditions": [condition]}}


def evicted_patch(pod: Pod, now: float) -> Object:
    """A status patch for a pod that a taint evicts: it sets the condition DisruptionTarget."""
    text = "Taint manager: deleting due to NoExecute taint"
    condition = _target("DeletionByTaintManager", text, now)
    return {"metadata": {"uid": pod.metadata.uid}, "status": {"conditions": [condition]}}


def collected_patch(pod: Pod, now: float) -> Object:
    """A status patch for a pod whose node does not exist: it sets the condition DisruptionTarget and ends the pod."""
    status: Object = {"conditions": [_target("DeletionByPodGC", "PodGC: node no longer exists", now)]}
    if not pod.ended:
        status["phase"] = "Failed"
    return {"metadata": {"uid": pod.metadata.uid}, "status": status}


def eviction_cause(node: Node, pod: Pod) -> Object:
    """The taints and tolerations that cause the eviction of a pod. A refused eviction is repeated when they change."""
    return {"taints": [taint for taint in node.spec.taints if taint.effect == "NoExecute"], "by": pod.spec.tolerations}


def _target(reason: str, message: str, now: float) -> Object:
    return _condition("DisruptionTarget", "True", reason, message, now)


def repels(node: Node) -> bool:
    """Whether a taint of the node evicts pods that do not tolerate it."""
    return any(taint.effect == "NoExecute" for taint in node.spec.taints)


def evictions(node: Node, pods: Iterable[Pod], longest: float) -> list[Eviction]:
    """The pods to evict, and when: those that do not tolerate the taints, or tolerate them for a limited time. That
    time is cut to `longest` seconds."""
    if not repels(node):
        return []
    repelling = [taint for taint in node.spec.taints if taint.effect == "NoExecute"]
    since = max(unix(taint.time_added) for taint in repelling)
    found = []
    for pod in pods:
        if pod.metadata.deletion_timestamp is not None or pod.ended:
            continue
        allowed = _tolerated_seconds(pod, repelling)
        if allowed is not None:
            found.append(Eviction(pod, since + min(allowed, longest)))
    return found


def _tolerated_seconds(pod: Pod, repelling: Iterable[Taint]) -> float | None:
    """The seconds for which the pod tolerates all the taints; None without limit."""
    used = []
    for taint in repelling:
        tolerating = [one for one in pod.spec.tolerations if placement.tolerates(one, taint)]
        if not tolerating:
            return 0
        used += tolerating
    limits = [max(0, one.toleration_seconds) for one in used if one.toleration_seconds is not None]
    return min(limits, default=None)


def _condition(type_: str, status: str, reason: str, message: str, now: float) -> Object:
    return {
        "type": type_,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": rfc3339(now),
    }
