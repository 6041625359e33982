"""The parts of a request that the handlers of releases read: the workload's labels and its pod template."""

import msgspec

from altershield.api import labels as label_names
from altershield.api import released_by
from altershield.api.change_workload import WorkloadRef
from altershield.api.fingerprint import Template
from altershield.api.names import is_version
from altershield.workloads.applied import LAST_APPLIED
from gatekeeper.request import Metadata, Object, Request

_NO_TEMPLATE = Template()


class _Annotations(msgspec.Struct, frozen=True):
    """Only the first annotation is decoded: that of `kubectl apply` repeats the whole manifest."""

    released_by: str | None = msgspec.field(default=None, name=released_by.ANNOTATION)
    last_applied: msgspec.Raw = msgspec.field(default=msgspec.Raw(b""), name=LAST_APPLIED)


class _Metadata(Metadata, frozen=True):
    annotations: _Annotations | None = None
    managed_fields: msgspec.Raw = msgspec.field(default=msgspec.Raw(b""), name="managedFields")


class _Spec(msgspec.Struct, frozen=True):
    template: Template = _NO_TEMPLATE


class Workload(Object, frozen=True, rename="camel"):
    """The fields of a workload that the handlers read."""

    metadata: _Metadata
    spec: _Spec = _Spec()

    @property
    def released_by(self) -> str | None:
        """The annotation that says who released the version."""
        annotations = self.metadata.annotations
        return annotations.released_by if annotations is not None else None

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
