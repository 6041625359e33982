"""Resizes of running pods: which containers have other resources than their spec, and the next step. Pure functions.

    spec changed -> PodResizePending (while the node lacks resources) -> PodResizeInProgress -> resources applied

A container is restarted if a changed resource has the policy RestartContainer. Conditions and texts are those of the
kubelet (pkg/kubelet/allocation, pkg/kubelet/status).
"""

import json
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple

from kube_sandbox import quantities
from kube_sandbox.cluster.kinds import Condition, Container, Object, Pod, find
from kube_sandbox.cluster.scheduler import placement
from kube_sandbox.cluster.settings import SimulationSettings

KEY = "/resize"
"""The key of a resize among the states and ages of a pod's containers."""
PENDING, IN_PROGRESS = "PodResizePending", "PodResizeInProgress"
_RETRY = 1.0
"""Seconds until the node checks its resources again."""


class Step(NamedTuple):
    """The statuses and resize conditions of a pod. A condition that is not in `conditions` is to be removed."""

    statuses: list[Object]
    conditions: list[Condition]
    event: tuple[bool, str, str] | None
    """Whether it is a warning, the reason and the message."""
    wait: float | None
    changed: bool


def resources(container: Container) -> Object:
    """The resources of the spec, as a container status reports them."""
    wire: Object = {}
    if container.resources.limits:
        wire["limits"] = container.resources.limits
    if container.resources.requests:
        wire["requests"] = container.resources.requests
    return wire


def is_outdated(container: Container, status: Object) -> bool:
    """Whether a running container has other resources than its spec."""
    return "resources" in status and "running" in status["state"] and status["resources"] != resources(container)


def needs_restart(pod: Pod, container: Container, status: Object) -> bool:
    """Whether a resize in progress restarts the container: a changed resource has the policy RestartContainer."""
    if find(pod.status.conditions, IN_PROGRESS) is None or not is_outdated(container, status):
        return False
    restarting = {one.resource_name for one in container.resize_policy if one.restart_policy == "RestartContainer"}
    wanted, present = resources(container), status["resources"]
    return any(
        (wanted.get(field) or {}).get(name) != (present.get(field) or {}).get(name)
        for field in ("limits", "requests")
        for name in restarting
    )


def pending(pod: Pod) -> bool:
    """Whether a container of the pod is to be resized."""
    statuses = {status["name"]: status for status in pod.status.container_statuses}
    return any(
        container.name in statuses and is_outdated(container, statuses[container.name])
        for container in pod.spec.containers
    )


def state(pod: Pod) -> str | None:
    """A text that changes with each step of a resize; None without a resize."""
    if not pending(pod):
        return None
    progress = find(pod.status.conditions, IN_PROGRESS)
    return f"{pod.metadata.generation} {progress is not None}"


def shortage(pod: Pod, others: Iterable[Pod], allocatable: dict[str, str | int]) -> str:
    """The message about the first resource of the node that the new requests of the pod exceed, beside the other pods;
    empty if the node has enough."""
    loads = [placement.requests(other) for other in others if not other.ended]
    for name, wanted in placement.requests(pod).items():
        used = sum((load.get(name, Fraction(0)) for load in loads), Fraction(0))
        capacity = quantities.parse(str(allocatable.get(name, "0")))
        if name != "pods" and used + wanted > capacity:
            unit = 1000 if name == "cpu" else 1
            figures = f"requested: {int(wanted * unit)}, used: {int(used * unit)}, capacity: {int(capacity * unit)}"
            return f"Node didn't have enough resource: {name}, {figures}"
    return ""


def step(pod: Pod, statuses: Sequence[Object], age: float, missing: str, settings: SimulationSettings) -> Step | None:
    """The next step of a resize; None if the pod neither is resized nor has a condition of an earlier resize.

    `statuses` are those after the steps of the containers. `age` is the seconds since the last step. `missing` is
    the message of `shortage`.
    """
    by_name = {container.name: container for container in pod.spec.containers}
    outdated = [status for status in statuses if is_outdated(by_name[status["name"]], status)]
    present = [one for one in pod.status.conditions if one.type in (PENDING, IN_PROGRESS)]
    progress = find(pod.status.conditions, IN_PROGRESS)
    if not outdated and not present:
        return None
    if not outdated:
        restarting = any("running" not in status["state"] and status.get("imageID") for status in statuses)
        if progress is not None and restarting:
            return Step(list(statuses), [progress], None, None, False)
        event = (False, "ResizeCompleted", _message("Pod resize completed", pod)) if progress else None
        return Step(list(statuses), [], event, None, True)
    if missing and progress is None:
        waiting = Condition(PENDING, "True", "Deferred", missing)
        same = find(pod.status.conditions, PENDING)
        changed = same is None or same.message != missing
        event = (True, "ResizeDeferred", _message("Pod resize Deferred", pod, missing)) if changed else None
        return Step(list(statuses), [waiting], event, _RETRY, changed)
    if progress is None:
        event = (False, "ResizeStarted", _message("Pod resize started", pod))
        return Step(list(statuses), [Condition(IN_PROGRESS, "True")], event, settings.resize, True)
    if (left := settings.resize - age) > 0:
        return Step(list(statuses), [progress], None, left, False)
    applied, left_over = [], False
    for status in statuses:
        container = by_name[status["name"]]
        if is_outdated(container, status) and not needs_restart(pod, container, status):
            status = status | reported(container)
        left_over = left_over or is_outdated(container, status)
        applied.append(status)
    if left_over:
        return Step(applied, [progress], None, None, applied != list(statuses))
    return Step(applied, [], (False, "ResizeCompleted", _message("Pod resize completed", pod)), None, True)


def reported(container: Container) -> Object:
    """The fields of a container status that report its resources."""
    found: Object = {"resources": resources(container)}
    if container.resources.requests:
        found["allocatedResources"] = container.resources.requests
    return found


def _message(text: str, pod: Pod, error: str = "") -> str:
    listed = [{"name": one.name, "resources": resources(one)} for one in pod.spec.containers]
    summary = {"containers": listed, "generation": pod.metadata.generation, **({"error": error} if error else {})}
    return f"{text}: {json.dumps(summary, separators=(',', ':'))}"
