"""What is kept of a pod: what decides whether it is up, and what is said where it is not."""

import sys
from enum import StrEnum

import msgspec

from altershield.api import labels
from altershield.api.meta import unix
from altershield.workloads.meta import Meta, Owner, WireMeta

_MAX_TEXT = 300  # characters of a kubelet's message; some quote whole registries' answers


class Fault(StrEnum):
    """Why a pod is not up where that is the cluster's fault; these are reasons of the condition Stalled."""

    UNSCHEDULABLE = "Unschedulable"
    NODE_NOT_READY = "NodeNotReady"
    VOLUME = "VolumeNotAttached"
    SANDBOX = "PodSandboxNotCreated"


class Trouble(msgspec.Struct, frozen=True, gc=False):
    """Why a pod is not up, in the kubelet's or the scheduler's words."""

    reason: str
    message: str = ""
    exit_code: int | None = None
    """Of the container that ended last."""

    def __str__(self) -> str:
        code = "" if self.exit_code is None else f" (exit code {self.exit_code})"
        return clip(f"{self.reason}{code}: {self.message}" if self.message else f"{self.reason}{code}")


class Pod(msgspec.Struct, frozen=True, gc=False):
    metadata: Meta
    owner: Owner
    hash: str
    """Of the revision it was made of, where its workload makes it without an object in between; else empty."""
    version: str
    """The version label; anybody may have written it."""
    finished: str
    """The label that marks a pod which came up; anybody may have written it."""
    node: str
    ip: str
    ended: bool
    """Succeeded or Failed, as evicted pods are."""
    disrupted: bool
    """The cluster ended it, or is about to: an eviction, a preemption, a node that shuts down."""
    ready: bool
    ready_at: int
    """Since when it is ready or not, in Unix seconds by the kubelet's clock; 0 where nobody says."""
    restarts: int
    """Of all its containers together."""
    trouble: Trouble | None
    unscheduled: bool
    """The scheduler finds no node for it, or something keeps it from being scheduled."""
    scheduled_at: int
    """When it got its node, Unix seconds by the API server's clock; 0 where it has none."""
    creating: bool
    """It has a node, and no container of it could be started yet: images, volumes or the network are missing."""

    @property
    def exists(self) -> bool:
        """Whether the pod counts: not terminating, and not ended."""
        return not self.metadata.deleting and not self.ended


class _Waiting(msgspec.Struct, frozen=True, gc=False):
    reason: str = ""
    message: str = ""


class _Terminated(msgspec.Struct, frozen=True, rename="camel", gc=False):
    exit_code: int = 0
    reason: str = ""
    message: str = ""


class _State(msgspec.Struct, frozen=True, gc=False):
    waiting: _Waiting | None = None
    terminated: _Terminated | None = None


class _ContainerStatus(msgspec.Struct, frozen=True, rename="camel", gc=False):
    name: str = ""
    ready: bool = False
    restart_count: int = 0
    state: _State = _State()
    last_state: _State = _State()


class _Condition(msgspec.Struct, frozen=True, rename="camel", gc=False):
    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class _Status(msgspec.Struct, frozen=True, rename="camel", gc=False):
    phase: str = "Pending"
    reason: str = ""
    message: str = ""
    pod_ip: str = msgspec.field(default="", name="podIP")
    conditions: tuple[_Condition, ...] = ()
    container_statuses: tuple[_ContainerStatus, ...] | None = None
    init_container_statuses: tuple[_ContainerStatus, ...] | None = None


class _Spec(msgspec.Struct, frozen=True, rename="camel", gc=False):
    node_name: str = ""


class _Wire(msgspec.Struct, frozen=True, gc=False):
    metadata: WireMeta
    spec: _Spec = _Spec()
    status: _Status = _Status()


_decode = msgspec.json.Decoder(_Wire).decode


def read(data: bytes | msgspec.Raw) -> Pod:
    """A pod as the API server sent it; msgspec.DecodeError where it is none."""
    wire = _decode(data)
    status = wire.status
    statuses = (*(status.init_container_statuses or ()), *(status.container_statuses or ()))
    conditions = {condition.type: condition for condition in status.conditions}
    ready = conditions.get("Ready")
    scheduled = conditions.get("PodScheduled")
    is_ready = status.phase == "Running" and ready is not None and ready.status == "True"
    unscheduled = not wire.spec.node_name and (scheduled is None or scheduled.status != "True")
    metadata = wire.metadata
    return Pod(
        metadata.projection,
        metadata.owner,
        sys.intern(metadata.label(labels.CONTROLLER_REVISION_HASH)),
        sys.intern(metadata.label(labels.VERSION)),
        metadata.label(labels.OPERATE_FINISHED),
        sys.intern(wire.spec.node_name),
        status.pod_ip,
        status.phase in ("Succeeded", "Failed"),
        _disrupted(status, conditions),
        is_ready,
        int(unix(ready.last_transition_time)) if ready is not None else 0,
        sum(container.restart_count for container in statuses),
        None if is_ready else _trouble(status, statuses, conditions),
        unscheduled,
        int(unix(scheduled.last_transition_time)) if scheduled is not None and scheduled.status == "True" else 0,
        bool(wire.spec.node_name) and _creating(statuses),
    )


def _disrupted(status: _Status, conditions: dict[str, _Condition]) -> bool:
    """The kubelet also sets DisruptionTarget where a pod used more local storage than its own limits allow
    (kubelet/eviction: `exceeds the limit`, `exceeded its local ephemeral storage limit`): that is the pod's doing."""
    target = conditions.get("DisruptionTarget")
    if target is None or target.status != "True":
        return False
    own_limit = "limit" in status.message and ("exceeds" in status.message or "exceeded" in status.message)
    return not (status.reason == "Evicted" and own_limit)


def _creating(statuses: tuple[_ContainerStatus, ...]) -> bool:
    return all(
        each.state.waiting is not None and each.state.waiting.reason in ("ContainerCreating", "PodInitializing", "")
        for each in statuses
    )


def _trouble(
    status: _Status, statuses: tuple[_ContainerStatus, ...], conditions: dict[str, _Condition]
) -> Trouble | None:
    """What somebody who looks at the pod wants to know first: the container that failed, else the scheduler's or the
    kubelet's word for the whole pod."""
    if status.reason:
        return _made(status.reason, status.message)
    for container in statuses:
        state, last = container.state, container.last_state.terminated
        if state.waiting is not None and state.waiting.reason not in ("ContainerCreating", "PodInitializing", ""):
            if last is None:
                return _made(state.waiting.reason, state.waiting.message)
            why = last.reason if last.reason not in ("", "Error") else ""
            text = ", ".join(filter(None, (why, state.waiting.message or last.message)))
            return _made(state.waiting.reason, text, last.exit_code)
        if state.terminated is not None and (state.terminated.exit_code or not container.ready):
            ended = state.terminated
            if ended.exit_code == 0 and container in (status.init_container_statuses or ()):
                continue  # as init containers do
            return _made(ended.reason or "Terminated", ended.message, ended.exit_code)
    scheduled = conditions.get("PodScheduled")
    if scheduled is not None and scheduled.status == "False":
        return _made(scheduled.reason or Fault.UNSCHEDULABLE, scheduled.message)
    for container in statuses:
        last = container.last_state.terminated
        if last is not None and container.restart_count and not container.ready:
            return _made(last.reason or "Error", last.message, last.exit_code)
    ready = conditions.get("Ready")
    if ready is not None and ready.status == "False" and (ready.reason or ready.message):
        return _made(ready.reason or "NotReady", ready.message)
    return None


def _made(reason: str, message: str, exit_code: int | None = None) -> Trouble:
    return Trouble(sys.intern(reason[:64]), clip(message), exit_code)


def clip(text: str, limit: int = _MAX_TEXT) -> str:
    """As one line of bounded length."""
    text = " ".join(text.split())
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
