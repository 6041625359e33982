"""Node-pressure eviction: the kubelet ends a pod because its node lacks a resource. Pure functions.

No budget and no webhook for deletions can refuse such an eviction: the kubelet only writes the status of the pod. The
pod is not deleted; its phase is Failed. Reasons and messages are those of pkg/kubelet/eviction.
"""

from kube_base.times import rfc3339
from kube_sandbox.cluster.kinds import Object, Pod

EVICT = "sandbox.altershield.io/evict"
"""Annotation of a Pod: the resource that its node lacks, for example `memory` or `ephemeral-storage`."""
REASON = "Evicted"
_KILLED = 137


def resource_pressure(pod: Pod) -> str:
    """The resource for which the pod is to be evicted; empty if it is not."""
    return "" if pod.ended else pod.metadata.annotations.get(EVICT, "")


def message(resource: str) -> str:
    return f"The node was low on resource: {resource}. "


def status(pod: Pod, resource: str, now: float) -> Object:
    """A patch of the status of the evicted pod."""
    at = rfc3339(now)

    def condition(type_: str, value: str, reason: str | None, text: str | None = None) -> Object:
        return {"type": type_, "status": value, "reason": reason, "message": text, "lastTransitionTime": at}

    return {
        "phase": "Failed",
        "reason": REASON,
        "message": message(resource),
        "conditions": [
            condition("DisruptionTarget", "True", "TerminationByKubelet", message(resource)),
            condition("Ready", "False", "PodFailed"),
            condition("ContainersReady", "False", "PodFailed"),
        ],
        "containerStatuses": [_ended(container, at) for container in pod.status.container_statuses],
    }


def _ended(container: Object, at: str) -> Object:
    running = container["state"].get("running")
    if running is None:
        return container
    terminated = {
        "exitCode": _KILLED,
        "reason": "Error",
        "startedAt": running["startedAt"],
        "finishedAt": at,
        "containerID": container["containerID"],
    }
    return {**container, "state": {"terminated": terminated}, "ready": False, "started": False}
