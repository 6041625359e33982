"""The projection of a pod: the fields that decide whether it is up, and the reason if it is not."""

import socket
import sys
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

import msgspec

from altershield.api import labels
from altershield.workloads.meta import Meta, Owner, Packed, recent
from altershield.workloads.wire_pod import (
    WireCondition,
    WireContainerStatus,
    WirePod,
    WireSpec,
    WireStatus,
    WireTerminated,
)
from kube_base.times import unix

_REFUSALS = (
    "Evicted",
    "NodeAffinity",
    "NodePorts",
    "NodeShutdown",
    "TopologyAffinityError",
    "UnexpectedAdmissionError",
)
"""Reasons for which a kubelet does not admit a pod that the scheduler assigned to its node: the state of the node is
the cause. If a resource is missing, the reason begins with `OutOf`: `OutOfcpu`, `OutOfpods` (kubelet/lifecycle, cm,
eviction, nodeshutdown)."""

_FIRST_STATUS = 2  # seconds by which two times in the first status of a pod may differ, because they are rounded
_BEFORE_START = ("ContainerCreating", "PodInitializing", "")
"""Reasons why a container waits that nothing keeps from starting."""
_LOST = ("Unknown", "ContainerStatusUnknown")
"""The reasons of a container that ended while nobody watched it. containerd reports the first one if it finds no
process when it starts, a kubelet the second one if its container runtime does not know the container any more."""
PREEMPTED = "PreemptionByScheduler"
"""The reason of a pod that makes room for another one (condition DisruptionTarget)."""

_TELLS_NOTHING = ("ContainersNotReady", "NotReady", "PodFailed", "PodInitializing", "UnknownContainerStatuses")
"""Reasons of `Trouble` that only say that the pod is not ready."""

_MAX_TEXT = 300  # characters of a kubelet's message; some quote a registry's whole response


class Fault(StrEnum):
    """Why the cluster, not the release, keeps a pod from being up. The values are reasons of the condition Stalled."""

    UNSCHEDULABLE = "Unschedulable"
    NODE_NOT_READY = "NodeNotReady"
    VOLUME = "VolumeNotAttached"
    SANDBOX = "PodSandboxNotCreated"


class Trouble(msgspec.Struct, frozen=True, gc=False):
    """Why a pod is not up, in the kubelet's or the scheduler's words."""

    reason: str
    message: str = ""
    exit_code: int | None = None
    """The exit code of the container that ended last."""
    where: str = ""
    """Which part of the pod: `container app`, `init container migrate`, `sidecar proxy`; empty: the whole pod."""

    def __str__(self) -> str:
        where = f"{self.where}: " if self.where else ""
        code = "" if self.exit_code is None else f" (exit code {self.exit_code})"
        return clip(f"{where}{self.reason}{code}: {self.message}" if self.message else f"{where}{self.reason}{code}")

    @property
    def tells(self) -> bool:
        """Whether it says why the pod is not up. Otherwise it only says that the pod is not ready, and the Events of
        the pod may say why."""
        return self.reason not in _TELLS_NOTHING


class Starting(msgspec.Struct, frozen=True, gc=False):
    """How far the start of a pod has come. Times are seconds since the kubelet accepted the pod, so its clock does not
    matter."""

    since: int = 0
    """When the last init container completed, if none of them ran twice; 0 if none has completed."""
    running_since: int | None = None
    """Since when the containers that the pod waits for have been running; None if one of them does not run."""
    init: str = ""
    """The init container that is running; empty: the init containers have completed."""
    restarted: bool = False
    """Whether one of the containers that the pod waits for runs again."""


class Restarted(msgspec.Struct, frozen=True, gc=False):
    """A container that was restarted at least once: an app container or a sidecar."""

    name: str
    count: int
    """How often it was restarted."""
    ended_at: int
    """When its last run ended, Unix seconds by the kubelet's clock; 0 if it is not known."""
    lost: bool
    """The kubelet does not know how the last run ended: the node or its container runtime was restarted."""
    why: Trouble
    """How the last run ended."""


class Pod(msgspec.Struct, frozen=True, gc=False):
    """The projection of a pod."""

    metadata: Meta
    owner: Owner
    hash: str
    """The label with the hash of the pod's revision, of workloads that control their pods themselves;
    otherwise empty."""
    version: str
    """The version label. Anybody may have written it."""
    finished: str
    """The label `operate-finished`. Anybody may have written it."""
    node: str
    packed_ip: Packed
    """An IPv4 address as an int, which takes half the memory; any other text unchanged."""
    ended: bool
    """The phase is Succeeded or Failed, for example after an eviction."""
    disrupted: bool
    """The cluster ended the pod, or is about to end it: an eviction, a preemption, or a node that shuts down or refuses
    the pod."""
    ready: bool
    ready_at: int
    """When `ready` last changed, Unix seconds by the kubelet's clock; 0 if it is not known."""
    restarts: int
    """The sum over all containers."""
    trouble: Trouble | None
    """Why the pod is not ready; None if it is ready or nothing says why."""
    unscheduled: bool
    """The pod has no node: the scheduler finds no suitable node, or something else prevents the scheduling."""
    scheduled_at: int
    """When the pod got its node, Unix seconds by the API server's clock; 0 if it has none."""
    creating: bool
    """The pod has a node, but no container could be started yet: images, volumes or the network are missing."""
    was_ready: bool = False
    """The pod is ready, or its readiness has changed since its kubelet began to start it, by the kubelet's clock. Also
    true if the kubelet's times are missing."""
    starting: Starting | None = None
    """How far its start has come; None if it is ready, or if nothing has started."""
    restarted: tuple[Restarted, ...] = ()
    """The app containers and sidecars that were restarted. Other init containers do not count: they run again only if
    the whole pod is started again."""

    @property
    def ip(self) -> str:
        found = self.packed_ip
        return socket.inet_ntoa(found.to_bytes(4, "big")) if isinstance(found, int) else found

    @property
    def exists(self) -> bool:
        """Whether the pod counts: it is not terminating and has not ended."""
        return not self.metadata.deleting and not self.ended

    @property
    def lost(self) -> bool:
        """Whether the cluster ended the pod after it had run, and it still exists as an object. A pod that its kubelet
        refused has no condition Ready."""
        return self.ended and self.disrupted and not self.metadata.deleting and self.ready_at > 0


_decode = msgspec.json.Decoder(WirePod).decode


def read(data: bytes | msgspec.Raw) -> Pod:
    """The projection of a pod in JSON. msgspec.DecodeError if it is not a pod."""
    wire = _decode(data)
    status = wire.status
    statuses = (*(status.init_container_statuses or ()), *(status.container_statuses or ()))
    conditions = {condition.type: condition for condition in status.conditions}
    ready = conditions.get("Ready")
    scheduled = conditions.get("PodScheduled")
    is_ready = status.phase == "Running" and ready is not None and ready.status == "True"
    scheduled_at = scheduled.last_transition_time if scheduled is not None and scheduled.status == "True" else None
    unscheduled = not wire.spec.node_name and (scheduled is None or scheduled.status != "True")
    metadata = wire.metadata
    stays_ready = is_ready and metadata.deletion_timestamp is None
    return Pod(
        metadata.projection,
        metadata.owner,
        sys.intern(metadata.label(labels.CONTROLLER_REVISION_HASH)),
        sys.intern(metadata.label(labels.VERSION)),
        recent(metadata.label(labels.OPERATE_FINISHED)),
        sys.intern(wire.spec.node_name),
        _packed_ip(status.pod_ip),
        status.phase in ("Succeeded", "Failed"),
        _disrupted(status, conditions),
        is_ready,
        recent(int(unix(ready.last_transition_time if ready is not None else None))),
        sum(container.restart_count for container in statuses),
        None if stays_ready else _trouble(status, _parts(status, wire.spec), conditions),
        unscheduled,
        recent(int(unix(scheduled_at))),
        bool(wire.spec.node_name) and _creating(statuses),
        is_ready or (ready is not None and _has_changed(ready, status)),
        None if is_ready or not status.start_time else _starting(wire.spec, status, conditions),
        _restarted(wire.spec, status),
    )


def _packed_ip(ip: str) -> Packed:
    try:
        found = socket.inet_aton(ip)
    except (OSError, ValueError):  # ValueError: a text with a null character
        return ip
    return int.from_bytes(found, "big") if socket.inet_ntoa(found) == ip else ip


def _has_changed(ready: WireCondition, status: WireStatus) -> bool:
    """Whether the condition has changed since the kubelet began to start the pod. The first status has both times."""
    if not ready.last_transition_time or not status.start_time:
        return True
    return unix(ready.last_transition_time) > unix(status.start_time) + _FIRST_STATUS


def _restarted(spec: WireSpec, status: WireStatus) -> tuple[Restarted, ...]:
    """The app containers and sidecars that were restarted."""
    found = [each for each in status.container_statuses or () if each.restart_count]
    again = [each for each in status.init_container_statuses or () if each.restart_count]
    if again:
        sidecars = {each.name for each in spec.init_containers or () if each.is_sidecar}
        found += [each for each in again if each.name in sidecars]
    return tuple(_as_restarted(each, each.last_state.terminated or WireTerminated()) for each in found)


def _as_restarted(container: WireContainerStatus, last: WireTerminated) -> Restarted:
    why = _as_trouble(last.reason or "Error", last.message, last.exit_code)
    ended_at = int(unix(last.finished_at))
    return Restarted(sys.intern(container.name), container.restart_count, ended_at, last.reason in _LOST, why)


def _disrupted(status: WireStatus, conditions: dict[str, WireCondition]) -> bool:
    """Whether the cluster ended the pod or is about to.

    A pod that its kubelet refuses has no conditions. Other disrupted pods have the condition DisruptionTarget. The
    kubelet also sets this condition if a pod exceeds its own limit of local storage (kubelet/eviction: `exceeds the
    limit`, `exceeded its local ephemeral storage limit`). In that case, the pod is the cause.
    """
    if status.message.startswith("Pod was rejected: "):
        return status.reason in _REFUSALS or status.reason.startswith("OutOf")
    disruption = conditions.get("DisruptionTarget")
    if disruption is None or disruption.status != "True":
        return False
    own_limit = "limit" in status.message and ("exceeds" in status.message or "exceeded" in status.message)
    return not (status.reason == "Evicted" and own_limit)


def _creating(statuses: tuple[WireContainerStatus, ...]) -> bool:
    """Whether all containers wait to be started for the first time."""
    return all(each.state.waiting is not None and each.state.waiting.reason in _BEFORE_START for each in statuses)


def _starting(spec: WireSpec, status: WireStatus, conditions: dict[str, WireCondition]) -> Starting | None:
    """How far the start has come. Of the init containers, the pod waits for the first one that has not completed, or
    that keeps running (a sidecar) and has not started; afterwards for all containers that are not ready."""
    accepted, init, since = unix(status.start_time), status.init_container_statuses or (), 0.0
    sidecars = {each.name for each in spec.init_containers or () if each.is_sidecar}
    waits_for = next((each for each in init if not _has_initialized(each, each.name in sidecars)), None)
    for each in init:
        if each is waits_for:
            break
        ended = each.state.terminated
        since = max(since, unix(ended.finished_at) - accepted if ended is not None else 0.0)
    initialized = conditions.get("Initialized")
    if init and waits_for is None and initialized is not None and initialized.status == "True":
        since = max(since, unix(initialized.last_transition_time) - accepted)  # a sidecar does not complete
    if any(each.restart_count for each in init if each.name not in sidecars):
        since = 0.0
    waiting = (waits_for,) if waits_for is not None else _not_ready(status.container_statuses or ())
    began = [unix(each.state.running.started_at) - accepted for each in waiting if each.state.running is not None]
    runs = bool(waiting) and len(began) == len(waiting)
    if not runs and since < 1:
        return None
    return Starting(
        int(since),
        max(0, int(max(began))) if runs else None,
        sys.intern(waits_for.name) if waits_for is not None else "",
        any(each.restart_count for each in waiting),
    )


def _has_initialized(container: WireContainerStatus, is_sidecar: bool) -> bool:
    """Whether the next container may start. A running init container that is no sidecar is `started`, too."""
    ended = container.state.terminated
    return bool(container.started) if is_sidecar else ended is not None and ended.exit_code == 0


def _not_ready(containers: tuple[WireContainerStatus, ...]) -> tuple[WireContainerStatus, ...]:
    """The containers for which a pod waits that is not ready; all of them if it waits for a readiness gate. A container
    whose turn to start has not come does not count while another one runs."""
    found = tuple(each for each in containers if not each.ready) or containers
    started = tuple(
        each for each in found if each.state.waiting is None or each.state.waiting.reason not in _BEFORE_START
    )
    return started or found


class _Part(NamedTuple):
    """One container of a pod."""

    name: str
    """As `Trouble.where` has it."""
    status: WireContainerStatus
    ends: bool
    """Whether the pod waits until the container has ended."""


def _parts(status: WireStatus, spec: WireSpec) -> list[_Part]:
    """The containers of a pod, in the order in which they are started."""
    sidecars = {each.name for each in spec.init_containers or () if each.is_sidecar}
    return [
        *(
            _Part(f"sidecar {each.name}", each, ends=False)
            if each.name in sidecars
            else _Part(f"init container {each.name}", each, ends=True)
            for each in status.init_container_statuses or ()
        ),
        *(_Part(f"container {each.name}", each, ends=False) for each in status.container_statuses or ()),
    ]


def _trouble(status: WireStatus, parts: Sequence[_Part], conditions: dict[str, WireCondition]) -> Trouble | None:
    """The most useful reason: that of the container that failed, else that of the scheduler or of the kubelet for the
    whole pod. None: there is no reason."""
    if status.reason:
        return _as_trouble(status.reason, status.message)
    disruption = conditions.get("DisruptionTarget")
    if disruption is not None and disruption.status == "True" and disruption.reason == PREEMPTED:
        return _as_trouble(disruption.reason, disruption.message)
    for part in parts:
        failure = _failure(part)
        if failure is not None:
            return failure
    scheduled = conditions.get("PodScheduled")
    if scheduled is not None and scheduled.status == "False":
        return _as_trouble(scheduled.reason or Fault.UNSCHEDULABLE, scheduled.message)
    for part in parts:
        last = part.status.last_state.terminated
        if last is not None and part.status.restart_count and not part.status.ready:
            return _as_trouble(last.reason or "Error", last.message, last.exit_code, part.name)
    running = next((part for part in parts if part.ends and part.status.state.running is not None), None)
    if running is not None:
        return _as_trouble("PodInitializing", "it has not ended", where=running.name)
    ready = conditions.get("Ready")
    if ready is not None and ready.status == "False" and (ready.reason or ready.message):
        return _as_trouble(ready.reason or "NotReady", ready.message)
    return None


def _failure(part: _Part) -> Trouble | None:
    """Why the container failed; None if it did not, or if it runs again."""
    state, last = part.status.state, part.status.last_state.terminated
    if state.waiting is not None and state.waiting.reason not in _BEFORE_START:
        if last is None:
            return _as_trouble(state.waiting.reason, state.waiting.message, where=part.name)
        why = last.reason if last.reason not in ("", "Error") else ""
        text = ", ".join(filter(None, (why, state.waiting.message or last.message)))
        return _as_trouble(state.waiting.reason, text, last.exit_code, part.name)
    ended = state.terminated
    if ended is None or (ended.exit_code == 0 and (part.status.ready or part.ends)):
        return None
    return _as_trouble(ended.reason or "Terminated", ended.message, ended.exit_code, part.name)


def _as_trouble(reason: str, message: str, exit_code: int | None = None, where: str = "") -> Trouble:
    return Trouble(sys.intern(reason[:64]), clip(message), exit_code, sys.intern(where))


def clip(text: str, limit: int = _MAX_TEXT) -> str:
    """The text on one line, cut to `limit` characters."""
    text = " ".join(text.split())
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
