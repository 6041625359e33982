"""The projection of a pod: the fields that decide whether a budget covers it and whether it is available.

A gatekeeper keeps all pods of a cluster, so the projection is small. Pods with the same labels share them.
"""

import enum
import sys
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import msgspec

from altershield.api.budgets import NO_PROTECT, SPECIFIED_DELETE_LABEL, UNAVAILABLE_LABEL_PREFIX
from altershield.workloads.meta import NO_OWNER, Flat, Owner, packed, packed_version, shared
from kube_base.meta import OwnerReference
from kube_base.times import unix

Labels = Mapping[str, str]

MIRROR = "kubernetes.io/config.mirror"
"""The annotation of a pod that a kubelet runs from a file. Its deletion in the API stops nothing."""

_IN_PLACE_READY = "InPlaceUpdateReady"  # a condition of OpenKruise: False while a pod is updated in place
_RESIZE_CONDITIONS = ("PodResizePending", "PodResizeInProgress")
_TRUE = ("1", "t", "T", "TRUE", "true", "True")  # Go's strconv.ParseBool
_DISRUPTED = "DisruptionTarget"
_TAKEN_BY = ("TerminationByKubelet", "DeletionByTaintManager", "DeletionByPodGC")
"""Reasons of the condition DisruptionTarget: a kubelet, or the end of a node, takes the pod."""
_FAILED_BY_KUBELET = ("Evicted", "NodeLost", "NodeShutdown", "Preempting", "Shutdown", "Terminated")
"""Reasons of the phase Failed that do not come from the pod's containers."""
_ID_DIGITS = 12  # of a container's id: enough to tell two containers of one pod apart


class Flag(enum.IntFlag):
    """The state of a pod, from its metadata and its status."""

    TERMINATING = 1
    ENDED = 2
    """The phase is Succeeded or Failed."""
    PENDING = 4
    READY = 8
    """The phase is Running, and the condition Ready is True."""
    MIRROR = 16
    OPTED_OUT = 32
    """The annotation `no-protect` is true."""
    OUT_OF_SERVICE = 64
    """A label takes the pod out of service, or says that its controller will delete it."""
    UPDATING = 128
    """OpenKruise updates the pod in place."""
    RESIZING = 256
    """The kubelet has not finished a resize."""
    TAKEN = 512
    """A kubelet evicts the pod, or its node ends."""


_TERMINATING, _ENDED, _PENDING = int(Flag.TERMINATING), int(Flag.ENDED), int(Flag.PENDING)
_OPTED_OUT, _READY = int(Flag.OPTED_OUT), int(Flag.READY)
_TAKEN, _NOT_LOST = int(Flag.TAKEN), int(Flag.MIRROR | Flag.OPTED_OUT)
_NOT_JUDGED = int(Flag.TERMINATING | Flag.ENDED | Flag.MIRROR)
_AVAILABILITY = int(Flag.TERMINATING | Flag.ENDED | Flag.READY | Flag.OUT_OF_SERVICE | Flag.UPDATING)


class Pod(Flat, frozen=True, gc=False):
    """The projection of a pod."""

    owner: Owner
    labels: dict[str, str]
    """Shared by pods with the same labels: never change it."""
    flags: int
    containers: str
    """The containers that have an id, with its first digits: `web=0123456789ab,sidecar=ba9876543210`."""
    observed_generation: int
    """The generation of the spec that the kubelet has observed; 0 if the cluster does not report it."""
    taken_at: int = 0
    """When a kubelet or the end of the node took the pod, in Unix seconds; 0: neither did, or the time is unknown."""

    @property
    def version(self) -> int:
        """The resourceVersion as a number; 0 if it is not a number."""
        return self.packed_version if isinstance(self.packed_version, int) else 0

    @property
    def terminating(self) -> bool:
        return bool(self.flags & _TERMINATING)

    @property
    def exists(self) -> bool:
        """Whether the pod is neither terminating nor ended."""
        return not self.flags & (_TERMINATING | _ENDED)

    @property
    def pending(self) -> bool:
        return bool(self.flags & _PENDING)

    @property
    def ready(self) -> bool:
        return bool(self.flags & _READY)

    @property
    def judged(self) -> bool:
        """Whether a budget may refuse disruptions of the pod: it exists and is not a mirror pod."""
        return not self.flags & _NOT_JUDGED

    @property
    def opted_out(self) -> bool:
        """Whether an annotation excludes the pod from all budgets."""
        return bool(self.flags & _OPTED_OUT)

    @property
    def taken(self) -> bool:
        """Whether a kubelet evicts the pod, or its node ends. Before that, the pod may be marked as not ready."""
        return bool(self.flags & _TAKEN) and not self.flags & _NOT_LOST

    @property
    def lost(self) -> bool:
        """Whether the pod was taken, and still exists as an object that has ended."""
        return self.taken and bool(self.flags & _ENDED)

    @property
    def available(self) -> bool:
        """Whether the pod serves, by its own state. A record may say that a disruption of the pod was admitted."""
        return self.flags & _AVAILABILITY == _READY

    def container_ids(self) -> dict[str, str]:
        """The first digits of the containers' ids, by name."""
        return dict(each.split("=", 1) for each in self.containers.split(",") if each)


class WireCondition(msgspec.Struct, frozen=True, gc=False):
    type: str = ""
    status: str = ""
    reason: str = ""
    last_transition_time: str | None = msgspec.field(default=None, name="lastTransitionTime")


class WireContainerStatus(msgspec.Struct, frozen=True, rename="camel", gc=False):
    name: str = ""
    container_id: str | None = msgspec.field(default=None, name="containerID")


class WireStatus(msgspec.Struct, frozen=True, rename="camel", gc=False):
    phase: str = "Pending"
    reason: str = ""
    observed_generation: int = 0
    conditions: tuple[WireCondition, ...] | None = None
    container_statuses: tuple[WireContainerStatus, ...] | None = None
    init_container_statuses: tuple[WireContainerStatus, ...] | None = None


class WireMetadata(Protocol):
    """The metadata of a pod as the API server sends it."""

    @property
    def name(self) -> str: ...
    @property
    def namespace(self) -> str: ...
    @property
    def uid(self) -> str: ...
    @property
    def resource_version(self) -> str: ...
    @property
    def deletion_timestamp(self) -> str | None: ...
    @property
    def labels(self) -> dict[str, str] | None: ...
    @property
    def annotations(self) -> dict[str, Any] | None: ...
    @property
    def owner_references(self) -> tuple[OwnerReference, ...] | None: ...


class _Metadata(msgspec.Struct, frozen=True, rename="camel", gc=False):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, Any] | None = None
    owner_references: tuple[OwnerReference, ...] | None = None


class _Wire(msgspec.Struct, frozen=True, gc=False):
    metadata: _Metadata
    status: WireStatus = WireStatus()


_decode = msgspec.json.Decoder(_Wire).decode


def read(data: bytes | msgspec.Raw) -> Pod:
    """The projection of a pod in JSON. msgspec.DecodeError if it is not a pod."""
    wire = _decode(data)
    return projected(wire.metadata, wire.status)


def projected(metadata: WireMetadata, status: WireStatus) -> Pod:
    """The projection of a decoded pod."""
    owner = next((each for each in metadata.owner_references or () if each.controller), None)
    flags = _flags(metadata) | _status_flags(status)
    return Pod(
        sys.intern(metadata.namespace),
        metadata.name,
        packed(metadata.uid),
        packed_version(metadata.resource_version) if metadata.resource_version else "",
        shared(owner) if owner is not None else NO_OWNER,
        _shared_labels(metadata.labels or {}),
        int(flags),
        _containers(status),
        status.observed_generation,
        _taken_at(status) if flags & Flag.TAKEN else 0,
    )


def opts_out(annotations: Mapping[str, Any] | None) -> bool:
    """Whether the annotation `no-protect` is true, as Go's ParseBool has it."""
    return annotations is not None and annotations.get(NO_PROTECT) in _TRUE


def out_of_service(labels: Iterable[str]) -> bool:
    """Whether a label says that the pod does not serve, or will be deleted."""
    return any(key.startswith(UNAVAILABLE_LABEL_PREFIX) or key == SPECIFIED_DELETE_LABEL for key in labels)


def _flags(metadata: WireMetadata) -> int:
    """The flags that follow from the metadata."""
    flags = 0
    if metadata.deletion_timestamp is not None:
        flags |= Flag.TERMINATING
    if metadata.annotations:
        if MIRROR in metadata.annotations:
            flags |= Flag.MIRROR
        if opts_out(metadata.annotations):
            flags |= Flag.OPTED_OUT
    if metadata.labels and out_of_service(metadata.labels):
        flags |= Flag.OUT_OF_SERVICE
    return flags


def _status_flags(status: WireStatus) -> int:
    """The flags that follow from the status."""
    conditions = {each.type: each.status for each in status.conditions or ()}
    flags = 0
    if status.phase in ("Succeeded", "Failed"):
        flags |= Flag.ENDED
    if status.phase == "Pending":
        flags |= Flag.PENDING
    if status.phase == "Running" and conditions.get("Ready") == "True":
        flags |= Flag.READY
    if conditions.get(_IN_PLACE_READY, "True") != "True":
        flags |= Flag.UPDATING
    if any(conditions.get(each) == "True" for each in _RESIZE_CONDITIONS):
        flags |= Flag.RESIZING
    if status.phase == "Failed" and status.reason in _FAILED_BY_KUBELET:
        flags |= Flag.TAKEN
    if conditions.get(_DISRUPTED) == "True" and any(
        each.type == _DISRUPTED and each.reason in _TAKEN_BY for each in status.conditions or ()
    ):
        flags |= Flag.TAKEN
    return flags


def _taken_at(status: WireStatus) -> int:
    """When the pod was taken. Clusters without the condition DisruptionTarget show when the pod was not ready any
    more."""
    times = {each.type: each.last_transition_time for each in status.conditions or ()}
    return int(unix(times.get(_DISRUPTED) or times.get("Ready")))


def _containers(status: WireStatus) -> str:
    every = (*(status.init_container_statuses or ()), *(status.container_statuses or ()))
    return ",".join(f"{each.name}={short_id(each.container_id)}" for each in every if each.container_id)


def short_id(container_id: str) -> str:
    """The first digits of an id as `containerd://0123456789abcdef`."""
    return container_id.rpartition("//")[2][:_ID_DIGITS]


_labels: dict[tuple[tuple[str, str], ...], dict[str, str]] = {}
_MAX_LABELS = 8192


def _shared_labels(labels: dict[str, str]) -> dict[str, str]:
    """Equal labels as one object. In lists, pods with the same labels are near each other, so a small cache finds most
    labels."""
    key = tuple(sorted(labels.items()))
    known = _labels.get(key)
    if known is not None:
        return known
    if len(_labels) >= _MAX_LABELS:
        _labels.clear()
    made = {sys.intern(name): sys.intern(value) for name, value in key}
    _labels[key] = made
    return made
