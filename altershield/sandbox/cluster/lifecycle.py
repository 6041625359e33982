"""The life of one pod on its node: from its status, and how long its containers have been in their states, to its
next status. Pure; the kubelets carry it out.

    (bound) -> ContainerCreating -> running -> ready                      images that work
                     '-> ErrImagePull <-> ImagePullBackOff                images that are not there
                     '-> running -> Error -> CrashLoopBackOff -> ...      images that crash

All containers that are due move in one step, so a pod that comes up costs two writes: accepted, and running.
Reasons and messages are the kubelet's own (pkg/kubelet: images, kuberuntime, status).
"""

import hashlib
from collections.abc import Mapping
from typing import NamedTuple

from altershield.api.meta import rfc3339, unix
from altershield.sandbox.cluster import images
from altershield.sandbox.cluster.settings import SimulationSettings
from altershield.sandbox.cluster.views import Condition, Container, Object, Pod, find

_IMAGE_SIZE = 2224229  # of every image


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


class Node(NamedTuple):
    """What a pod's status takes from where it runs."""

    ip: str
    pod_ip: str
    images: frozenset[str] | set[str]
    """Those already pulled."""


class _Move(NamedTuple):
    """A container's next state and the seconds, counted from its present state, until it takes it."""

    after: float
    status: Object
    events: list[Occurrence]


def states(pod: Pod) -> dict[str, str]:
    """What to measure times by: per container its present state, in a form that changes whenever it does."""
    return {
        str(status["name"]): f"{_reason(status)} {status.get('restartCount', 0)}"
        for status in pod.status.container_statuses
    }


def advance(pod: Pod, ages: Mapping[str, float], node: Node, settings: SimulationSettings, now: float) -> Advance:
    """The next step. `ages` says for how many seconds each container (by name) has been in its state."""
    if not pod.status.container_statuses:
        return Advance(_status(pod, _created(pod), _init(pod, done=False), node, now, accepted=False), [], 0)
    present = {str(status["name"]): status for status in pod.status.container_statuses}
    statuses: list[Object] = []
    events: list[Occurrence] = []
    waits: list[float] = []
    moved = False
    for container in pod.spec.containers:
        status = present.get(container.name) or _waiting(container, "ContainerCreating")
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
    gates_moved = _ready(pod, statuses).status != _status_of(pod, "Ready")
    if not moved and not gates_moved:
        return Advance(None, [], wait)
    return Advance(_status(pod, statuses, _init(pod, done=True), node, now), events, wait)


def _next(
    pod: Pod, container: Container, status: Object, age: float, node: Node, settings: SimulationSettings, now: float
) -> _Move | None:
    image = images.known(container.image)
    match _reason(status):
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
        "containerID": _container_id(pod, container, restarts),
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
        "containerID": status.get("containerID") or _container_id(pod, container, status["restartCount"]),
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
    return _Move(after, {**status, **_waiting(container, "ErrImagePull", error)}, events)


def _pull_backs_off(container: Container, status: Object, after: float) -> _Move:
    text = f'Back-off pulling image "{container.image}"'
    events = [
        Occurrence(container.name, False, "BackOff", text),
        Occurrence(container.name, True, "Failed", "Error: ImagePullBackOff"),
    ]
    message = f"{text}: ErrImagePull: {images.pull_error(container.image)}"
    return _Move(after, {**status, **_waiting(container, "ImagePullBackOff", message)}, events)


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


def _created(pod: Pod) -> list[Object]:
    reason = "PodInitializing" if pod.spec.init_containers else "ContainerCreating"
    return [_waiting(container, reason) for container in pod.spec.containers]


def _waiting(container: Container, reason: str, message: str = "") -> Object:
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


def _init(pod: Pod, *, done: bool) -> list[Object]:
    """Init containers simply succeed."""
    if not done:
        return [_waiting(container, "PodInitializing") for container in pod.spec.init_containers]
    if all(status.get("ready") for status in pod.status.init_container_statuses):
        return list(pod.status.init_container_statuses)
    since = pod.status.start_time
    return [
        {
            **_waiting(container, ""),
            "state": {
                "terminated": {
                    "exitCode": 0,
                    "reason": "Completed",
                    "startedAt": since,
                    "finishedAt": since,
                    "containerID": _container_id(pod, container, 0),
                }
            },
            "ready": True,
            "image": images.full_reference(container.image),
            "imageID": images.image_id(container.image),
            "containerID": _container_id(pod, container, 0),
        }
        for container in pod.spec.init_containers
    ]


def _status(
    pod: Pod, statuses: list[Object], init: list[Object], node: Node, now: float, *, accepted: bool = True
) -> Object:
    since = pod.status.start_time or rfc3339(now)
    status: Object = {
        "phase": _phase(pod, statuses),
        "startTime": since,
        "hostIP": node.ip,
        "hostIPs": [{"ip": node.ip}],
        "conditions": _conditions(pod, statuses, now, accepted),
        "containerStatuses": statuses,
    }
    if pod.metadata.generation:
        status["observedGeneration"] = pod.metadata.generation
    if init:
        status["initContainerStatuses"] = init
    if accepted:
        status |= {"podIP": node.pod_ip, "podIPs": [{"ip": node.pod_ip}]}
    return status


def _phase(pod: Pod, statuses: list[Object]) -> str:
    reasons = [_reason(status) for status in statuses]
    if all(reason == "Error" for reason in reasons) and pod.spec.restart_policy == "Never":
        return "Failed"
    has_started = [reason in ("Running", "Error", "CrashLoopBackOff") for reason in reasons]
    return "Running" if all(has_started) else "Pending"


def _conditions(pod: Pod, statuses: list[Object], now: float, accepted: bool) -> list[Object]:
    initializing = [] if accepted else [container.name for container in pod.spec.init_containers]
    initialized = Condition("Initialized", "True")
    if initializing:
        message = f"containers with incomplete status: [{' '.join(initializing)}]"
        initialized = Condition("Initialized", "False", "ContainersNotInitialized", message)
    wanted = [
        Condition("PodReadyToStartContainers", "True" if accepted else "False"),
        initialized,
        _ready(pod, statuses),
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
        "reason": condition.reason or None,  # None takes a former reason away
        "message": condition.message or None,
        "lastTransitionTime": old.last_transition_time if old and unchanged else rfc3339(now),
    }
    if pod.metadata.generation:
        written["observedGeneration"] = pod.metadata.generation
    return written


def _containers_ready(pod: Pod, statuses: list[Object]) -> Condition:
    if _phase(pod, statuses) == "Failed":
        return Condition("ContainersReady", "False", "PodFailed")
    unready = [str(status["name"]) for status in statuses if not status.get("ready")]
    if unready:
        message = f"containers with unready status: [{' '.join(unready)}]"
        return Condition("ContainersReady", "False", "ContainersNotReady", message)
    return Condition("ContainersReady", "True")


def _ready(pod: Pod, statuses: list[Object]) -> Condition:
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


def _status_of(pod: Pod, type_: str) -> str:
    condition = find(pod.status.conditions, type_)
    return condition.status if condition else ""


def _reason(status: Object) -> str:
    """A container's state in one word: Running, or why it waits or ended."""
    state = status.get("state") or {}
    if "running" in state:
        return "Running"
    detail = state.get("waiting") or state.get("terminated") or {}
    return str(detail.get("reason", ""))


def _last_state(status: Object) -> Object:
    terminated = (status.get("state") or {}).get("terminated")
    return {"terminated": terminated} if terminated else status.get("lastState") or {}


def _container_id(pod: Pod, container: Container, restarts: int) -> str:
    identity = f"{pod.metadata.uid}/{container.name}/{restarts}"
    return f"containerd://{hashlib.sha256(identity.encode()).hexdigest()}"


def go_duration(seconds: float) -> str:
    """As Go prints durations: 20ms, 1.5s, 10s, 2m40s."""
    if seconds < 1:
        return f"{round(seconds * 1000)}ms"
    minutes, rest = divmod(round(seconds, 3), 60)
    text = f"{rest:g}s"
    return f"{int(minutes)}m{text}" if minutes else text
