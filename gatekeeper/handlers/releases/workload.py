"""The parts of a request that the handlers of releases read: the workload's labels and its pod template."""

from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any, TypeVar

import msgspec

from altershield.api import labels as label_names
from altershield.api import released_by
from altershield.api.annotations import ROLLOUT
from altershield.api.change_workload import WorkloadRef
from altershield.api.fingerprint import Template
from altershield.api.names import is_version
from altershield.workloads.applied import LAST_APPLIED
from altershield.workloads.held import NEVER_AVAILABLE, NO_DEADLINE
from altershield.workloads.releasers import other_releaser
from gatekeeper.errors import ReviewError
from gatekeeper.request import Metadata, Object, Request
from kube_base.meta import OwnerReference

_NO_TEMPLATE = Template()
_NONE = msgspec.Raw(b"")
_RESERVED = (str(NEVER_AVAILABLE).encode(), str(NO_DEADLINE).encode())
T = TypeVar("T")

_text = msgspec.json.Decoder(str | None).decode
_number = msgspec.json.Decoder(int | None).decode
_truth = msgspec.json.Decoder(bool | None).decode
_map = msgspec.json.Decoder(dict[str, Any] | None).decode
_owners = msgspec.json.Decoder(tuple[OwnerReference, ...] | None).decode
_DECODERS = {"paused": _truth, "strategy": _map, "update_strategy": _map}


_Annotations = dict[str, msgspec.Raw]
"""No value is decoded that is not needed: that of `kubectl apply` repeats the whole manifest."""

_WRITTEN = (released_by.ANNOTATION, ROLLOUT)
"""The annotations that handlers write."""


class _Metadata(Metadata, frozen=True, rename="camel"):
    annotations: _Annotations | None = None
    managed_fields: msgspec.Raw = _NONE
    owner_references: msgspec.Raw = _NONE


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    """The template, and the fields that a release in steps holds or depends on, which are decoded if they are needed.
    Each field that an adapter holds is below one of them."""

    template: Template = _NO_TEMPLATE
    replicas: msgspec.Raw = _NONE
    paused: msgspec.Raw = _NONE
    min_ready_seconds: msgspec.Raw = _NONE
    progress_deadline_seconds: msgspec.Raw = _NONE
    strategy: msgspec.Raw = _NONE
    update_strategy: msgspec.Raw = _NONE


HELD = dict(zip(_Spec.__struct_fields__, _Spec.__struct_encode_fields__, strict=True))
"""The fields that a release in steps may hold, by their names here."""
del HELD["template"], HELD["replicas"]


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    desired_number_scheduled: int | None = None
    updated_replicas: int | None = None
    updated_number_scheduled: int | None = None  # of a DaemonSet


class Workload(Object, frozen=True, rename="camel"):
    """The fields of a workload that the handlers read."""

    metadata: _Metadata
    spec: _Spec = _Spec()
    status: _Status | None = None

    @property
    def annotations(self) -> Mapping[str, str] | None:
        if self.metadata.annotations is None:
            return None
        return {key: value for key in _WRITTEN if (value := self.annotation(key)) is not None}

    def annotation(self, key: str) -> str | None:
        """The value of an annotation. ReviewError: it is not a text."""
        found = self.metadata.annotations
        value = found.get(key) if found else None
        return _decoded(value, _text, f"the annotation {key}") if value is not None else None

    @property
    def released_by(self) -> str | None:
        """The annotation that says who released the version."""
        return self.annotation(released_by.ANNOTATION)

    @property
    def rollout(self) -> str | None:
        """The annotation of a hold."""
        return self.annotation(ROLLOUT)

    @property
    def is_held(self) -> bool:
        """Whether it has the annotation of a hold, or a held field has a value that only AlterShield writes."""
        annotations, spec = self.metadata.annotations, self.spec
        if annotations is not None and ROLLOUT in annotations:
            return True
        ready, deadline = spec.min_ready_seconds, spec.progress_deadline_seconds
        return bool((ready and bytes(ready) in _RESERVED) or (deadline and bytes(deadline) in _RESERVED))

    @property
    def held_spec(self) -> dict[str, Any]:
        """The part of `spec` that a release in steps changes. ReviewError: a field cannot be read."""
        found: dict[str, Any] = {}
        for name, field in HELD.items():
            raw = getattr(self.spec, name)
            value = _decoded(raw, _DECODERS.get(name, _number), f"spec.{field}") if raw else None
            if value is not None:
                found[field] = value
        return found

    @property
    def replicas(self) -> int | None:
        """`spec.replicas`; None if there are none. ReviewError: it is not a number."""
        raw = self.spec.replicas
        return _decoded(raw, _number, "spec.replicas") if raw else None

    @property
    def releaser(self) -> str:
        """Which other controller releases it, as a sentence; empty if none is known. ReviewError: the owners cannot be
        read."""
        raw = self.metadata.owner_references
        owners = _decoded(raw, _owners, "metadata.ownerReferences") if raw else None
        return other_releaser(owners or (), chain(self.labels or (), self.metadata.annotations or ()))

    @property
    def repairs(self) -> bool:
        """Whether it has the label `ignored-suspend`, which lets one release pass."""
        return self.label(label_names.IGNORED_SUSPEND) == "true"

    @property
    def template_labels(self) -> dict[str, str] | None:
        metadata = self.spec.template.metadata
        labels = metadata.get("labels") if metadata else None
        return labels if isinstance(labels, dict) else None

    @property
    def has_template_metadata(self) -> bool:
        return self.spec.template.metadata is not None

    def template_label(self, key: str) -> str | None:
        labels = self.template_labels
        return labels.get(key) if labels else None

    def problem(self) -> str:
        template = self.spec.template
        if template is _NO_TEMPLATE:
            return " has no spec.template"
        labels = template.metadata.get("labels") if template.metadata else None
        if labels is not None and not isinstance(labels, dict):
            return ".spec.template.metadata.labels is not a map"
        return ""


Change = Request[Workload]
"""One CREATE (`old_object` is None) or UPDATE of a workload."""


def pods_of(change: Change) -> int:
    """How many pods the workload should have. The API server has not checked the status in a request yet, so that of a
    DaemonSet is the stored one."""
    sent = change.object.replicas
    if sent is not None:
        return sent
    old = change.old_object
    desired = old.status.desired_number_scheduled if old is not None and old.status is not None else None
    return 1 if desired is None else desired


def failed_pods_of(change: Change) -> int:
    """How many pods have the stored version, if it failed and releases are suspended for it; else 0."""
    old = change.old_object
    if old is None or old.status is None or old.label(label_names.SUSPEND) is None:
        return 0
    return max(0, old.status.updated_replicas or old.status.updated_number_scheduled or 0)


def last_applied(workload: Workload) -> str | None:
    """The manifest that `kubectl apply` stored."""
    return workload.annotation(LAST_APPLIED)


def workload_ref(change: Change) -> WorkloadRef:
    """The reference to the workload. The uid is empty on a CREATE."""
    uid = change.old_object.metadata.uid if change.old_object is not None else ""
    return WorkloadRef(change.resource.api_version, change.resource.kind, change.name, uid)


def relabelled(change: Change) -> bool:
    """Whether a label of the workload or of its template changes."""
    new, old = change.object, change.old_object
    return old is None or new.labels != old.labels or new.template_labels != old.template_labels


def is_stamped(workload: Workload) -> bool:
    """Whether the labels are as `version.stamp` sets them: workload and template have the same version. If a later
    webhook changes the template, the API server sends the workload a second time, with these labels."""
    version = workload.label(label_names.VERSION)
    return version == workload.template_label(label_names.VERSION) and is_version(version or "")


def _decoded(raw: msgspec.Raw, decode: Callable[[msgspec.Raw], T], what: str) -> T:
    """ReviewError: it is of another type."""
    try:
        return decode(raw)
    except (ValueError, RecursionError) as error:
        raise ReviewError(f"{what} in the request cannot be read: {error}") from error
