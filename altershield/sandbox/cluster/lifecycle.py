"""The life of one pod on its node: from its status, and how long its containers have been in their states, to its
next status. Pure; the kubelets carry it out.

    (bound) -> ContainerCreating -> running -> ready                      images that work
                     '-> ErrImagePull <-> ImagePullBackOff                images that are not there
                     '-> running -> Error -> CrashLoopBackOff -> ...      images that crash

All containers that are due move in one step, and what passes in an instant is not written: a pod that comes up
at once costs one write, else two (accepted, running).
Reasons and messages are the kubelet's own (pkg/kubelet: images, kuberuntime).
"""

from collections.abc import Mapping
from typing import NamedTuple

from altershield.api.meta import rfc3339, unix
from altershield.sandbox.cluster import images, pod_states
from altershield.sandbox.cluster.pod_states import Node
from altershield.sandbox.cluster.settings import SimulationSettings
from altershield.sandbox.cluster.views import Container, Object, Pod

_IMAGE_SIZE = 2224229  # of every image
_BRIEF = 0.1  # seconds that nobody looks at


class Occurrence(NamedTuple):
    """What an Event is to be written about."""

    container: str
    warning: bool
    reason: str
    message: str


class Advance(NamedTuple):
    """`status` is what to patch the pod's status with, or None. `wait` is when to look again, in seconds, or None
    where nothing will happen by itself."""

    status: Object | None
    events: list[Occurrence]
    wait: float | None


class _Move(NamedTuple):
    """A container's next state and the seconds, counted from its present state, until it takes it."""

    after: float
    status: Object
    events: list[Occurrence]


def states(pod: Pod) -> dict[str, str]:
    """What to measure times by: per container its present state, in a form that changes whenever it does."""
    return {
        str(status["name"]): f"{pod_states.state_of(status)} {status.get('restartCount', 0)}"
        for status in pod_states.container_statuses(pod)
    }


def advance(pod: Pod, ages: Mapping[str, float], node: Node, settings: SimulationSettings, now: float) -> Advance:
    """The next step. `ages` says for how many seconds each container (by name) has been in its state."""
    present = {str(status["name"]): status for status in pod_states.container_statuses(pod)}
    statuses: list[Object] = []
    events: list[Occurrence] = []
    waits: list[float] = []
    moved = False
    for container in pod.spec.containers:
        status = present.get(container.name) or pod_states.waiting(container, "ContainerCreating")
        age = ages.get(container.name, 0.0)
        move = _next(pod, container, status, age, node, settings, now)
        if move is None:
            statuses.append(status)
        elif (left := move.after - age) <= 0:
            moved = True
            statuses.append(move.status)
            events += move.events
            waits.append(0)
        else:
            statuses.append(status)
            waits.append(left)
    wait = min(waits, default=None)
    if not moved and not pod.status.container_statuses and wait is not None and wait > _BRIEF:
        return Advance(pod_states.pod_status(pod, statuses, node, now, accepted=False), [], wait)
    if not moved and not pod_states.readiness_changed(pod, statuses):
        return Advance(None, [], wait)
    return Advance(pod_states.pod_status(pod, statuses, node, now), events, wait)


def _next(
    pod: Pod, container: Container, status: Object, age: float, node: Node, settings: SimulationSettings, now: float
) -> _Move | None:
    image = images.known(container.image)
    match pod_states.state_of(status):
        case "ContainerCreating" | "PodInitializing" if not image.exists:
            return _pull_failed(container, status, settings.image_pull)
        case "ContainerCreating" | "PodInitializing":
            start = settings.slow_start if image.is_slow else settings.container_start
            pulled = container.image in node.images and container.image_pull_policy != "Always"
            events = _pull_events(container, pulled, settings.image_pull)
            after = start if pulled else start + settings.image_pull
            return _started(pod, container, status, 0, settings, now, after, events)
        case "ErrImagePull":
            return _pull_backs_off(container, status, settings.image_pull)
        case "ImagePullBackOff":
            # Attempts are counted nowhere; waiting as long as it has taken so far doubles the wait too.
            so_far = now - age - unix(pod.status.start_time)
            after = min(max(settings.pull_back_off, so_far), settings.pull_back_off_max)
            if not image.exists:
                return _pull_failed(container, status, after)
            events = _pull_events(container, False, settings.image_pull)
            return _started(pod, container, status, 0, settings, now, after, events)
        case "Running" if image.crashes:
            return _Move(settings.crash, _crashed(pod, container, status, now), [])
        case "Running" if not status.get("ready") and image.becomes_ready and container.readiness_probe:
            after = max(settings.ready, container.readiness_probe.initial_delay_seconds)
            return _Move(after, {**status, "ready": True}, [])
        case "Error" if pod.spec.restart_policy == "Never":
            return None
        case "Error" if status["restartCount"] == 0:  # the first restart comes at once
            events = _pull_events(container, True, 0)
            after = settings.container_start
            return _started(pod, container, status, 1, settings, now, after, events)
        case "Error":
            return _crash_backs_off(pod, container, status, settings)
        case "CrashLoopBackOff":
            events = _pull_events(container, True, 0)
            count = status["restartCount"] + 1
            after = _crash_back_off(status["restartCount"], settings)
            return _started(pod, container, status, count, settings, now, after, events)
        case _:
            return None


def _started(
    pod: Pod,
    container: Container,
    status: Object,
    restarts: int,
    settings: SimulationSettings,
    now: float,
    after: float,
    events: list[Occurrence],
) -> _Move:
    image = images.known(container.image)
    events = [*events, *_start_events(container)]
    running = {
        "name": container.name,
        "state": {"running": {"startedAt": rfc3339(now)}},
        "lastState": _last_state(status),
        "ready": container.readiness_probe is None and image.becomes_ready,
        "started": True,
        "restartCount": restarts,
        "image": images.full_reference(container.image),
        "imageID": images.image_id(container.image),
        "containerID": pod_states.container_id(pod, container, restarts),
    }
    if not image.crashes:
        return _Move(after, running, events)
    if settings.crash > 0:
        return _Move(after, running, events)
    crashed = _crashed(pod, container, running, now)
    if restarts == 0 or pod.spec.restart_policy == "Never":
        return _Move(after, crashed, events)
    backing_off = _crash_backs_off(pod, container, crashed, settings)
    return _Move(after, backing_off.status, [*events, *backing_off.events])


def _crashed(pod: Pod, container: Container, status: Object, now: float) -> Object:
    started = (status["state"].get("running") or {}).get("startedAt") or rfc3339(now)
    ended = {
        "exitCode": 1,
        "reason": "Error",
        "startedAt": started,
        "finishedAt": rfc3339(now),
        "containerID": status.get("containerID") or pod_states.container_id(pod, container, status["restartCount"]),
    }
    return {**status, "state": {"terminated": ended}, "ready": False, "started": False}


def _crash_backs_off(pod: Pod, container: Container, status: Object, settings: SimulationSettings) -> _Move:
    full_name = f"{pod.metadata.name}_{pod.metadata.namespace}({pod.metadata.uid})"
    wait = go_duration(_crash_back_off(status["restartCount"], settings))
    message = f"back-off {wait} restarting failed container={container.name} pod={full_name}"
    text = f"Back-off restarting failed container {container.name} in pod {full_name}"
    waiting = {
        **status,
        "state": {"waiting": {"reason": "CrashLoopBackOff", "message": message}},
        "lastState": _last_state(status),
    }
    return _Move(0, waiting, [Occurrence(container.name, True, "BackOff", text)])


def _crash_back_off(restarts: int, settings: SimulationSettings) -> float:
    doublings = min(max(restarts - 1, 0), 30)
    return min(settings.crash_back_off * 2.0**doublings, settings.crash_back_off_max)


def _pull_failed(container: Container, status: Object, after: float) -> _Move:
    error = images.pull_error(container.image)
    said = f'Failed to pull image "{container.image}": {error}'
    events = [
        Occurrence(container.name, False, "Pulling", f'Pulling image "{container.image}"'),
        Occurrence(container.name, True, "Failed", said),
        Occurrence(container.name, True, "Failed", "Error: ErrImagePull"),
    ]
    return _Move(after, {**status, **pod_states.waiting(container, "ErrImagePull", error)}, events)


def _pull_backs_off(container: Container, status: Object, after: float) -> _Move:
    text = f'Back-off pulling image "{container.image}"'
    events = [
        Occurrence(container.name, False, "BackOff", text),
        Occurrence(container.name, True, "Failed", "Error: ImagePullBackOff"),
    ]
    message = f"{text}: ErrImagePull: {images.pull_error(container.image)}"
    return _Move(after, {**status, **pod_states.waiting(container, "ImagePullBackOff", message)}, events)


def _pull_events(container: Container, pulled: bool, seconds: float) -> list[Occurrence]:
    if pulled:
        text = f'Container image "{container.image}" already present on machine and can be accessed by the pod'
        return [Occurrence(container.name, False, "Pulled", text)]
    took = go_duration(seconds)
    done = f'Successfully pulled image "{container.image}" in {took} ({took} including waiting).'
    return [
        Occurrence(container.name, False, "Pulling", f'Pulling image "{container.image}"'),
        Occurrence(container.name, False, "Pulled", f"{done} Image size: {_IMAGE_SIZE} bytes."),
    ]


def _start_events(container: Container) -> list[Occurrence]:
    return [
        Occurrence(container.name, False, "Created", "Container created"),
        Occurrence(container.name, False, "Started", "Container started"),
    ]


def _last_state(status: Object) -> Object:
    terminated = (status.get("state") or {}).get("terminated")
    return {"terminated": terminated} if terminated else status.get("lastState") or {}


def go_duration(seconds: float) -> str:
    """As Go prints durations: 20ms, 1.5s, 10s, 2m40s."""
    if seconds < 1:
        return f"{round(seconds * 1000)}ms"
    minutes, rest = divmod(round(seconds, 3), 60)
    text = f"{rest:g}s"
    return f"{int(minutes)}m{text}" if minutes else text
