"""The lifecycle of one pod on its node: computes its next status from its status and the times since its containers
last changed. Pure functions; `kubelets` writes the result.

    (bound) -> init containers, one after the other -> all containers, each as `containers` decides

All containers that are due change in one step. States shorter than 0.1 s are not written: a pod that starts at once
costs one write, other pods two (accepted, running). Init containers succeed at once; a failing one blocks the pod.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kube_sandbox.cluster.kinds import Container, Object, Pod
from kube_sandbox.cluster.kubelet import containers, images, pod_states, resizing
from kube_sandbox.cluster.kubelet.containers import Life, Occurrence
from kube_sandbox.cluster.kubelet.pod_states import Node
from kube_sandbox.cluster.settings import SimulationSettings

_BRIEF = 0.1  # seconds; shorter states are not written


class Advance(NamedTuple):
    """`status` is a patch of the pod's status, or None. `wait` is the seconds until the next change, or None if the pod
    stays in its state."""

    status: Object | None
    events: list[Occurrence]
    wait: float | None


class _Step(NamedTuple):
    """The result for several containers; those that were due have their next status."""

    statuses: list[Object]
    events: list[Occurrence]
    waits: list[float]
    moved: bool


def states(pod: Pod) -> dict[str, str]:
    """By container: a text that changes whenever the state of the container changes. The age of a state is counted from
    that change. For a container that flaps, readiness is part of the state, so that a late kubelet skips no change."""
    resize = resizing.state(pod)
    flapping = {container.name for container in pod.spec.containers if images.behaviour(container.image).flaps}
    return ({} if resize is None else {resizing.KEY: resize}) | {
        str(status["name"]): f"{pod_states.state_of(status)} {status.get('restartCount', 0)}"
        + (" ready" if status["name"] in flapping and status.get("ready") else "")
        for status in (*pod.status.init_container_statuses, *pod_states.container_statuses(pod))
    }


def advance(pod: Pod, ages: Mapping[str, float], node: Node, settings: SimulationSettings, now: float) -> Advance:
    """The next step. `ages` is the seconds since each container, by name, entered its state."""
    if trouble := _trouble(pod):
        if pod.status.container_statuses:
            return Advance(None, [], None)
        waiting = list(pod_states.container_statuses(pod))
        return Advance(pod_states.pod_status(pod, waiting, node, now, accepted=False), [trouble], None)
    present = _present_init(pod)
    if present is not None:
        return _initialize(pod, present, ages, node, settings, now)
    step = _moved(pod, pod.spec.containers, pod_states.container_statuses(pod), ages, node, settings, now)
    resize = resizing.step(pod, step.statuses, ages.get(resizing.KEY, 0.0), node.shortage, settings)
    if resize is not None:
        return _resized(pod, step, resize, node, now)
    wait = min(step.waits, default=None)
    if not step.moved and not pod.status.container_statuses and wait is not None and wait > _BRIEF:
        return Advance(pod_states.pod_status(pod, step.statuses, node, now, accepted=False), [], wait)
    if not step.moved and not pod_states.readiness_changed(pod, step.statuses):
        return Advance(None, [], wait)
    return Advance(pod_states.pod_status(pod, step.statuses, node, now), step.events, wait)


def _resized(pod: Pod, step: _Step, resize: resizing.Step, node: Node, now: float) -> Advance:
    """The next step of a pod that is being resized."""
    waits = step.waits if resize.wait is None else [*step.waits, resize.wait]
    wait = min(waits, default=None)
    if not step.moved and not resize.changed:
        return Advance(None, [], wait)
    events = [*step.events, *([Occurrence("", *resize.event)] if resize.event else [])]
    return Advance(pod_states.pod_status(pod, resize.statuses, node, now, resize=resize.conditions), events, wait)


def _initialize(
    pod: Pod,
    index: int,
    ages: Mapping[str, float],
    node: Node,
    settings: SimulationSettings,
    now: float,
) -> Advance:
    """A pod whose init container at this index runs or fails: the ones before it have succeeded, the others wait."""
    present = {str(status["name"]): status for status in pod.status.init_container_statuses}
    container = pod.spec.init_containers[index]
    at_first = pod_states.waiting(container, "PodInitializing")
    status = present.get(container.name) or at_first
    step = _moved(pod, (container,), [status], ages, node, settings, now)
    wait = min(step.waits, default=None)
    if not step.moved and pod.status.container_statuses:
        return Advance(None, [], wait)
    init = [
        *(pod_states.completed(pod, one, now) for one in pod.spec.init_containers[:index]),
        *({**status, "ready": _has_completed(status)} for status in step.statuses),
        *(pod_states.waiting(one, "PodInitializing") for one in pod.spec.init_containers[index + 1 :]),
    ]
    waiting = [pod_states.waiting(one, "PodInitializing") for one in pod.spec.containers]
    return Advance(pod_states.pod_status(pod, waiting, node, now, init=init), step.events, wait)


def _moved(
    pod: Pod,
    subjects: Sequence[Container],
    statuses: Sequence[Object],
    ages: Mapping[str, float],
    node: Node,
    settings: SimulationSettings,
    now: float,
) -> _Step:
    present = {str(status["name"]): status for status in statuses}
    step = _Step([], [], [], False)
    for container in subjects:
        status = present.get(container.name) or pod_states.waiting(container, "ContainerCreating")
        age = ages.get(container.name, 0.0)
        move = containers.next_move(Life(pod, container, status, age, node, settings, now))
        if move is None:
            step.statuses.append(status)
        elif (left := move.after - age) <= 0:
            step.statuses.append(move.status)
            step.events.extend(move.events)
            step.waits.append(0)
            step = step._replace(moved=True)
        else:
            step.statuses.append(status)
            step.waits.append(left)
    return step


def _has_completed(status: Object) -> bool:
    return (status["state"].get("terminated") or {}).get("exitCode") == 0


def _present_init(pod: Pod) -> int | None:
    """The index of the first init container that has not completed yet or cannot succeed, or None."""
    statuses = pod.status.init_container_statuses
    restarts = {str(status["name"]): status.get("restartCount", 0) for status in statuses}
    completed = {str(status["name"]) for status in statuses if _has_completed(status)}
    for index, container in enumerate(pod.spec.init_containers):
        image = images.behaviour(container.image)
        ends_badly = image.end is not None and image.end.exit_code != 0
        runs = image.end is not None and image.end.exit_code == 0 and container.name not in completed
        recovered = image.end is not None and image.end.once and restarts.get(container.name, 0) > 0
        if not image.exists or not image.is_configured or image.crashes or runs or (ends_badly and not recovered):
            return index
    return None


def _trouble(pod: Pod) -> Occurrence | None:
    """The Event about a volume or the network without which no container can be started; None if nothing is missing."""
    known = [images.behaviour(container.image) for container in (*pod.spec.init_containers, *pod.spec.containers)]
    own = [volume["name"] for volume in pod.spec.volumes if not str(volume["name"]).startswith("kube-api-access-")]
    volume = own[0] if own else "data"
    if not all(image.attaches for image in known):
        text = f'AttachVolume.Attach failed for volume "{volume}" : timed out waiting for external-attacher'
        return Occurrence("", True, "FailedAttachVolume", text)
    if not all(image.mounts for image in known):
        text = f'MountVolume.SetUp failed for volume "{volume}" : mount failed: exit status 32'
        return Occurrence("", True, "FailedMount", text)
    if not all(image.has_secret for image in known):
        text = f'MountVolume.SetUp failed for volume "{volume}" : secret "sandbox" not found'
        return Occurrence("", True, "FailedMount", text)
    if not all(image.has_network for image in known):
        sandbox = pod.metadata.uid.replace("-", "")
        text = (
            "Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network for sandbox "
            f'"{sandbox}": plugin type="sandbox" failed (add): the network is not configured'
        )
        return Occurrence("", True, "FailedCreatePodSandBox", text)
    return None
