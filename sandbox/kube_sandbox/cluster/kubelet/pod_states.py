"""The status of a pod, computed from the states of its containers: phase, conditions, addresses. Pure functions.

Reasons and messages are those of the kubelet (pkg/kubelet/status, pkg/kubelet/kubelet_pods.go).
"""

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

from kube_base.times import rfc3339
from kube_sandbox.cluster.kinds import Condition, Container, Object, Pod, find
from kube_sandbox.cluster.kubelet import images, resizing


class Node(NamedTuple):
    """The values of a pod's status that come from its node."""

    ip: str
    pod_ip: str
    images: frozenset[str] | set[str]
    """The images that the node has pulled."""
    shortage: str = ""
    """The message of `resizing.shortage` about a resize of the pod; empty if the node has enough resources."""


def container_statuses(pod: Pod) -> Sequence[Object]:
    """The statuses of the pod's containers. Without any, those of a pod that was just bound."""
    if pod.status.container_statuses:
        return pod.status.container_statuses
    reason = "PodInitializing" if pod.spec.init_containers else "ContainerCreating"
    return [waiting(container, reason) for container in pod.spec.containers]


def waiting(container: Container, reason: str, message: str = "") -> Object:
    waiting = {"reason": reason, "message": message} if message else {"reason": reason}
    return {
        "name": container.name,
        "state": {"waiting": waiting},
        "lastState": {},
        "ready": False,
        "started": False,
        "restartCount": 0,
        "image": container.image,
        "imageID": "",
    }


def completed(pod: Pod, container: Container, now: float) -> Object:
    """The status of an init container that has succeeded."""
    present = {status["name"]: status for status in pod.status.init_container_statuses}
    if container.name in present and present[container.name].get("ready"):
        return dict(present[container.name])
    since = pod.status.start_time or rfc3339(now)
    ended = {
        "exitCode": 0,
        "reason": "Completed",
        "startedAt": since,
        "finishedAt": since,
        "containerID": container_id(pod, container, 0),
    }
    return {
        **waiting(container, ""),
        "state": {"terminated": ended},
        "ready": True,
        "image": images.full_reference(container.image),
        "imageID": images.image_id(container.image),
        "containerID": container_id(pod, container, 0),
    }


def pod_status(
    pod: Pod,
    statuses: Sequence[Object],
    node: Node,
    now: float,
    *,
    accepted: bool = True,
    init: Sequence[Object] | None = None,
    resize: Sequence[Condition] | None = None,
) -> Object:
    """A patch of the pod's status. Without `accepted`, the kubelet has seen the pod but not started it. `init` has the
    statuses of the init containers; by default all have succeeded. `resize` has the conditions of a resize; by default
    they stay."""
    since = pod.status.start_time or rfc3339(now)
    if init is None:
        init = [
            completed(pod, container, now) if accepted else waiting(container, "PodInitializing")
            for container in pod.spec.init_containers
        ]
    status: Object = {
        "phase": _phase(pod, statuses, init),
        "startTime": since,
        "hostIP": node.ip,
        "hostIPs": [{"ip": node.ip}],
        "conditions": _conditions(pod, statuses, init, now, accepted),
        "containerStatuses": list(statuses),
    }
    if pod.metadata.generation:
        status["observedGeneration"] = pod.metadata.generation
    if pod.spec.init_containers:
        status["initContainerStatuses"] = list(init)
    if accepted:
        status |= {"podIP": node.pod_ip, "podIPs": [{"ip": node.pod_ip}]}
    if resize is not None:
        kept = {condition.type for condition in resize}
        gone = {one.type for one in pod.status.conditions} & {resizing.PENDING, resizing.IN_PROGRESS} - kept
        status["conditions"] += [_written(pod, condition, now) for condition in resize]
        status["conditions"] += [{"type": type_, "$patch": "delete"} for type_ in sorted(gone)]
    return status


def _phase(pod: Pod, statuses: Sequence[Object], init: Sequence[Object] = ()) -> str:
    policy = pod.spec.restart_policy
    if any(not status.get("ready") for status in init):
        has_failed = policy == "Never" and any(_exit_code(status) not in (None, 0) for status in init)
        return "Failed" if has_failed else "Pending"
    running = [status for status in statuses if "running" in status["state"]]
    stopped = [status for status in statuses if _exit_code(status) is not None or status.get("lastState")]
    if any(status not in running and status not in stopped for status in statuses):
        return "Pending"
    if running or policy == "Always":
        return "Running"
    if all(_exit_code(status) == 0 for status in stopped):
        return "Succeeded"
    return "Failed" if policy == "Never" else "Running"


def _exit_code(status: Object) -> int | None:
    """The exit code; None for a container that is not terminated."""
    terminated = status["state"].get("terminated")
    return int(terminated["exitCode"]) if terminated else None


def _conditions(
    pod: Pod, statuses: Sequence[Object], init: Sequence[Object], now: float, accepted: bool
) -> list[Object]:
    initializing = [str(status["name"]) for status in init if not status.get("ready")]
    initialized = Condition("Initialized", "True")
    if _phase(pod, statuses, init) == "Succeeded":
        initialized = Condition("Initialized", "True", "PodCompleted")
    elif initializing:
        message = f"containers with incomplete status: [{' '.join(initializing)}]"
        initialized = Condition("Initialized", "False", "ContainersNotInitialized", message)
    wanted = [
        Condition("PodReadyToStartContainers", "True" if accepted else "False"),
        initialized,
        ready(pod, statuses),
        _containers_ready(pod, statuses),
        Condition("PodScheduled", "True"),
    ]
    return [_written(pod, condition, now) for condition in wanted]


def _written(pod: Pod, condition: Condition, now: float) -> Object:
    old = find(pod.status.conditions, condition.type)
    unchanged = old is not None and old.status == condition.status and old.last_transition_time
    written: Object = {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason or None,  # None removes a former reason
        "message": condition.message or None,
        "lastTransitionTime": old.last_transition_time if old and unchanged else rfc3339(now),
    }
    if pod.metadata.generation:
        written["observedGeneration"] = pod.metadata.generation
    return written


def _containers_ready(pod: Pod, statuses: Sequence[Object]) -> Condition:
    phase = _phase(pod, statuses)
    if phase in ("Succeeded", "Failed"):
        return Condition("ContainersReady", "False", "PodCompleted" if phase == "Succeeded" else "PodFailed")
    unready = [str(status["name"]) for status in statuses if not status.get("ready")]
    if unready:
        message = f"containers with unready status: [{' '.join(unready)}]"
        return Condition("ContainersReady", "False", "ContainersNotReady", message)
    return Condition("ContainersReady", "True")


def ready(pod: Pod, statuses: Sequence[Object]) -> Condition:
    containers = _containers_ready(pod, statuses)
    if containers.status != "True":
        return Condition("Ready", "False", containers.reason, containers.message)
    missing = []
    for gate in pod.spec.readiness_gates:
        condition = find(pod.status.conditions, gate.condition_type)
        name = f'pod readiness gate "{gate.condition_type}"'
        if condition is None:
            missing.append(f"corresponding condition of {name} does not exist.")
        elif condition.status != "True":
            missing.append(f'the status of {name} is not "True", but {condition.status}')
    if missing:
        return Condition("Ready", "False", "ReadinessGatesNotReady", ", ".join(missing))
    return Condition("Ready", "True")


def readiness_changed(pod: Pod, statuses: Sequence[Object]) -> bool:
    """Whether the condition Ready changes without a change of the containers, because of a readiness gate."""
    written = find(pod.status.conditions, "Ready")
    return written is not None and written.status != ready(pod, statuses).status


def state_of(status: Object) -> str:
    """The state of a container in one word: Running, or the reason why it waits or ended."""
    state = status.get("state") or {}
    if "running" in state:
        return "Running"
    detail = state.get("waiting") or state.get("terminated") or {}
    return str(detail.get("reason", ""))


def container_id(pod: Pod, container: Container, restarts: int) -> str:
    identity = f"{pod.metadata.uid}/{container.name}/{restarts}"
    return f"containerd://{hashlib.sha256(identity.encode()).hexdigest()}"
