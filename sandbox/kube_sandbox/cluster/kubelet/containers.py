"""The lifecycle of one container: computes its next status from its status and the time since the last change.
Pure functions.

    ContainerCreating -> running -> ready                      images that work
      '-> ErrImagePull <-> ImagePullBackOff                    images that do not exist
      '-> CreateContainerConfigError                           images with an unusable configuration
      '-> running -> Error -> CrashLoopBackOff -> running ...  images that crash, exit or run out of memory

When the image of a container changes, the container is stopped and started with the new image. The same happens when a
resize needs a restart (`resizing`). Reasons and messages are those of the kubelet (pkg/kubelet: images, kuberuntime).
"""

from typing import NamedTuple

from kube_base.times import rfc3339, unix
from kube_sandbox.cluster.kinds import Container, Object, Pod
from kube_sandbox.cluster.kubelet import images, pod_states, resizing
from kube_sandbox.cluster.kubelet.images import End, Image
from kube_sandbox.cluster.kubelet.pod_states import Node
from kube_sandbox.cluster.settings import SimulationSettings

_IMAGE_SIZE = 2224229  # of every image
_UNREADY = "Readiness probe failed: HTTP probe failed with statuscode: 503"
_NOT_CONFIGURED = 'secret "sandbox" not found'


class Occurrence(NamedTuple):
    """The content of an Event."""

    container: str
    warning: bool
    reason: str
    message: str


class Move(NamedTuple):
    """The next status of a container. `after` is in seconds since the container entered its current state."""

    after: float
    status: Object
    events: list[Occurrence]


class Life(NamedTuple):
    """The current state of one container. `age` is the seconds since it entered that state."""

    pod: Pod
    container: Container
    status: Object
    age: float
    node: Node
    settings: SimulationSettings
    now: float

    @property
    def image(self) -> Image:
        return images.behaviour(self.container.image)

    @property
    def restarts(self) -> int:
        return int(self.status["restartCount"])

    @property
    def is_outdated(self) -> bool:
        """Whether the last run used another image than the spec has now, or other resources that need a restart."""
        return self.has_other_image or resizing.needs_restart(self.pod, self.container, self.status)

    @property
    def has_other_image(self) -> bool:
        full = images.full_reference(self.container.image)
        return bool(self.status.get("imageID")) and self.status["image"] not in (self.container.image, full)


def next_move(life: Life) -> Move | None:
    """The next change; None if the container stays in its state."""
    if "terminated" in life.status["state"]:
        return _after_end(life)
    image = life.image
    match pod_states.state_of(life.status):
        case "Running" if life.is_outdated:
            end = End(0, 0, "Completed")
            why = "definition changed, will be restarted" if life.has_other_image else "resize requires restart"
            text = f"Container {life.container.name} {why}"
            events = [Occurrence(life.container.name, False, "Killing", text)]
            return Move(life.settings.termination, _ended(life, life.status, end), events)
        case "Running":
            return _running(life)
        case "ContainerCreating" | "PodInitializing":
            return _begun(life, life.settings.image_pull)
        case "ErrImagePull" | "ImagePullBackOff" if image.exists:  # the image was replaced by one that exists
            return _begun(life, life.settings.image_pull)
        case "ErrImagePull":
            return _pull_backs_off(life)
        case "ImagePullBackOff":
            # The status has no count of attempts. A delay equal to the time since the first attempt doubles as well.
            so_far = life.now - life.age - _pulling_since(life)
            return _pull_failed(life, min(max(life.settings.pull_back_off, so_far), life.settings.pull_back_off_max))
        case "CreateContainerConfigError" if image.is_configured:
            return _started(life, life.settings.container_start, _pull_events(life.container, True, 0))
        case "CrashLoopBackOff" if life.is_outdated:
            return _begun(life, life.settings.image_pull)
        case "CrashLoopBackOff":
            after = _crash_back_off(life.restarts, life.settings)
            return _started(life, after, _pull_events(life.container, True, 0))
        case _:
            return None


def _begun(life: Life, pull: float) -> Move:
    """Start the container, after a pull if the node does not have the image."""
    container, image = life.container, life.image
    if not image.exists:
        return _pull_failed(life, pull)
    pulled = container.image in life.node.images and container.image_pull_policy != "Always"
    start = life.settings.slow_start if image.is_slow else life.settings.container_start
    events = _pull_events(container, pulled, pull)
    after = start if pulled else start + pull
    if image.is_configured:
        return _started(life, after, events)
    failed = Occurrence(container.name, True, "Failed", f"Error: {_NOT_CONFIGURED}")
    waiting = _waiting(life, "CreateContainerConfigError", _NOT_CONFIGURED)
    return Move(after, waiting, [*events, failed])


def _started(life: Life, after: float, events: list[Occurrence]) -> Move:
    container = life.container
    last = _last_state(life.status)
    restarts = life.restarts + bool(last)
    running = {
        "name": container.name,
        "state": {"running": {"startedAt": rfc3339(life.now)}},
        "lastState": last,
        "ready": _readiness(life, 0)[0],
        "started": _has_started(life, 0),
        "restartCount": restarts,
        "image": images.full_reference(container.image),
        "imageID": images.image_id(container.image),
        "containerID": pod_states.container_id(life.pod, container, restarts),
        **resizing.reported(container),
    }
    events = [
        *events,
        Occurrence(container.name, False, "Created", "Container created"),
        Occurrence(container.name, False, "Started", "Container started"),
    ]
    end = _end(life.container, restarts, life.settings)
    if end is None or end.after > 0:
        return Move(after, running, events if life.image.becomes_ready else [*events, _unhealthy(life)])
    ended = _ended(life, running, end)
    if restarts == 0 or not _restarts(life.pod, end.exit_code):
        return Move(after, ended, events)
    backing_off = _crash_backs_off(life._replace(status=ended))
    return Move(after, backing_off.status, [*events, *backing_off.events])


def _running(life: Life) -> Move | None:
    end = _end(life.container, life.restarts, life.settings)
    if end is not None and end.after <= life.age:
        return Move(end.after, _ended(life, life.status, end), [])
    if life.image.flaps and life.status.get("ready"):
        return Move(life.image.flaps, {**life.status, "ready": False}, [_unhealthy(life)])
    if life.image.flaps:
        return Move(life.image.flaps, {**life.status, "ready": True}, [])
    ready, change = _readiness(life, life.age)
    if bool(life.status.get("ready")) != ready:
        started = _has_started(life, life.age)
        return Move(0, {**life.status, "ready": ready, "started": started}, [] if ready else [_unhealthy(life)])
    if end is not None and (change is None or end.after <= change):
        return Move(end.after, _ended(life, life.status, end), [])
    if change is None:
        return None
    started = _has_started(life, change)
    return Move(change, {**life.status, "ready": not ready, "started": started}, [_unhealthy(life)] if ready else [])


def _readiness(life: Life, age: float) -> tuple[bool, float | None]:
    """Whether a container that has run for `age` seconds is ready, and the age at which this changes."""
    if life.container in life.pod.spec.init_containers:
        return False, None  # it is ready when it has completed
    image, probe = life.image, life.container.readiness_probe
    begin = max(life.settings.ready, probe.initial_delay_seconds) if probe else 0.0
    if probe or life.container.startup_probe:
        begin = max(begin, image.ready_after)
    if not image.becomes_ready:
        return False, None
    if age < begin:
        return False, begin
    if image.unready_after is not None:
        lost = begin + image.unready_after
        return (True, lost) if age < lost else (False, None)
    return True, None


def _has_started(life: Life, age: float) -> bool:
    """Whether the startup probe of a container that has run for `age` seconds has passed. It is written together with
    the readiness."""
    return life.container.startup_probe is None or age >= life.image.ready_after


def _end(container: Container, restarts: int, settings: SimulationSettings) -> End | None:
    image, startup = images.behaviour(container.image), container.startup_probe
    if startup is not None:
        gives_up = startup.initial_delay_seconds + startup.period_seconds * startup.failure_threshold
        if gives_up < image.ready_after:
            return End(gives_up, 137)
    if image.crashes:
        return End(settings.crash)
    return None if image.end is None or (image.end.once and restarts > 0) else image.end


def _after_end(life: Life) -> Move | None:
    if not _restarts(life.pod, int(life.status["state"]["terminated"]["exitCode"])):
        return None
    if life.is_outdated:
        return _begun(life, life.settings.image_pull)
    if life.restarts == 0:  # the first restart has no delay
        return _started(life, life.settings.container_start, _pull_events(life.container, True, 0))
    return _crash_backs_off(life)


def _restarts(pod: Pod, exit_code: int) -> bool:
    policy = pod.spec.restart_policy
    return policy == "Always" or (policy == "OnFailure" and exit_code != 0)


def _ended(life: Life, status: Object, end: End) -> Object:
    started = (status["state"].get("running") or {}).get("startedAt") or rfc3339(life.now)
    identity = pod_states.container_id(life.pod, life.container, status["restartCount"])
    terminated = {
        "exitCode": end.exit_code,
        "reason": end.reason,
        "startedAt": started,
        "finishedAt": rfc3339(life.now),
        "containerID": status.get("containerID") or identity,
    }
    if end.exit_code and life.container.termination_message_policy == "FallbackToLogsOnError":
        terminated["message"] = f"{life.container.image} exits with {end.exit_code}\n"  # the whole log
    return {**status, "state": {"terminated": terminated}, "ready": False, "started": False}


def _crash_backs_off(life: Life) -> Move:
    pod, name = life.pod, life.container.name
    full_name = f"{pod.metadata.name}_{pod.metadata.namespace}({pod.metadata.uid})"
    wait = go_duration(_crash_back_off(life.restarts, life.settings))
    message = f"back-off {wait} restarting failed container={name} pod={full_name}"
    text = f"Back-off restarting failed container {name} in pod {full_name}"
    waiting = {
        **life.status,
        "state": {"waiting": {"reason": "CrashLoopBackOff", "message": message}},
        "lastState": _last_state(life.status),
    }
    return Move(0, waiting, [Occurrence(name, True, "BackOff", text)])


def _crash_back_off(restarts: int, settings: SimulationSettings) -> float:
    doublings = min(max(restarts - 1, 0), 30)
    return min(settings.crash_back_off * 2.0**doublings, settings.crash_back_off_max)


def _pull_failed(life: Life, after: float) -> Move:
    name, image = life.container.name, life.container.image
    error = images.pull_error(image)
    events = [
        Occurrence(name, False, "Pulling", f'Pulling image "{image}"'),
        Occurrence(name, True, "Failed", f'Failed to pull image "{image}": {error}'),
        Occurrence(name, True, "Failed", "Error: ErrImagePull"),
    ]
    return Move(after, _waiting(life, "ErrImagePull", error), events)


def _pulling_since(life: Life) -> float:
    """The Unix time of the first attempt to pull the image."""
    ended = _last_state(life.status).get("terminated") or {}
    return max(unix(life.pod.status.start_time), unix(ended.get("finishedAt")))


def _pull_backs_off(life: Life) -> Move:
    name, image = life.container.name, life.container.image
    text = f'Back-off pulling image "{image}"'
    events = [
        Occurrence(name, False, "BackOff", text),
        Occurrence(name, True, "Failed", "Error: ImagePullBackOff"),
    ]
    message = f"{text}: ErrImagePull: {images.pull_error(image)}"
    return Move(life.settings.image_pull, _waiting(life, "ImagePullBackOff", message), events)


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


def _unhealthy(life: Life) -> Occurrence:
    return Occurrence(life.container.name, True, "Unhealthy", _UNREADY)


def _waiting(life: Life, reason: str, message: str) -> Object:
    """The status of a container that waits to start or restart."""
    waiting = pod_states.waiting(life.container, reason, message)
    if life.status.get("imageID"):  # keep the values of the last run
        waiting |= {key: life.status[key] for key in ("image", "imageID", "containerID")}
    return {**waiting, "restartCount": life.restarts, "lastState": _last_state(life.status)}


def _last_state(status: Object) -> Object:
    terminated = (status.get("state") or {}).get("terminated")
    return {"terminated": terminated} if terminated else status.get("lastState") or {}


def go_duration(seconds: float) -> str:
    """A duration in the format of Go: 20ms, 1.5s, 10s, 2m40s."""
    if seconds < 1:
        return f"{round(seconds * 1000)}ms"
    minutes, rest = divmod(round(seconds, 3), 60)
    text = f"{rest:g}s"
    return f"{int(minutes)}m{text}" if minutes else text
