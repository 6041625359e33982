"""The edge: bytes to a typed review, a response to bytes.

The protocol is `admission.k8s.io/v1`. The API server accepts a response only with the request's uid, exactly
this apiVersion and kind, and `patchType` beside every `patch` (none from a validating webhook).
"""

from binascii import b2a_base64
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, Literal

import msgspec
import orjson

from altershield.api.fingerprint import Template
from altershield.api.kinds import WorkloadRef
from altershield.api.resources import Resource
from gatekeeper.errors import ReviewError
from gatekeeper.fingerprint import release

_API_VERSION = "admission.k8s.io/v1"
_KIND = "AdmissionReview"

_Text = Annotated[str, msgspec.Meta(max_length=253)]


class _Metadata(msgspec.Struct, frozen=True):
    name: _Text = ""
    uid: _Text = ""
    labels: dict[str, str] | None = None


_NO_TEMPLATE = Template()


class _Spec(msgspec.Struct, frozen=True):
    template: Template = _NO_TEMPLATE


class Workload(msgspec.Struct, frozen=True, rename="camel"):
    """What is read of a workload."""

    metadata: _Metadata
    spec: _Spec = _Spec()
    api_version: str = ""
    kind: str = ""

    @property
    def labels(self) -> dict[str, str] | None:
        return self.metadata.labels

    @property
    def template_labels(self) -> dict[str, str] | None:
        metadata = self.spec.template.metadata
        labels = metadata.get("labels") if metadata else None
        return labels if isinstance(labels, dict) else None

    def label(self, key: str) -> str | None:
        labels = self.metadata.labels
        return labels.get(key) if labels else None

    def template_label(self, key: str) -> str | None:
        labels = self.template_labels
        return labels.get(key) if labels else None


class _Resource(msgspec.Struct, frozen=True):
    group: str = ""
    version: str = ""
    resource: str = ""


class _UserInfo(msgspec.Struct, frozen=True):
    username: str = ""


class _Request(msgspec.Struct, frozen=True, rename="camel"):
    uid: Annotated[str, msgspec.Meta(min_length=1, max_length=253)]
    operation: Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]
    resource: _Resource | None = None
    sub_resource: _Text = ""
    name: _Text = ""
    namespace: _Text = ""
    user_info: _UserInfo = _UserInfo()
    object: Workload | None = None
    old_object: Workload | None = None


class _Review(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str
    kind: str
    request: _Request


_decode = msgspec.json.Decoder(_Review).decode


class Change(msgspec.Struct, frozen=True, dict=True):
    """What the gates decide about: one CREATE (`old` is None) or UPDATE of a workload."""

    resource: Resource
    name: str
    """Empty where the API server has yet to generate it."""
    namespace: str
    user: str
    new: Workload
    old: Workload | None

    @property
    def kind(self) -> str:
        """In lower case, as users see it in messages."""
        return self.resource.kind.lower()

    @property
    def workload(self) -> WorkloadRef:
        """The workload that is stored; without a uid where there is none yet."""
        uid = self.old.metadata.uid if self.old is not None else ""
        return WorkloadRef(self.resource.api_version, self.resource.kind, self.name, uid)

    @cached_property
    def release(self) -> str:
        """The version that this change releases; empty where the template stays what it was (labels that do not
        belong into it do not count). A CREATE always releases. ReviewError where a template cannot be read."""
        try:
            return release(self.new.spec.template, self.old.spec.template if self.old else None)
        except RecursionError as error:
            raise ReviewError("a pod template in the request is nested too deeply") from error

    def relabelled(self) -> bool:
        """Whether any label of the workload or of its template is not what it was."""
        new, old = self.new, self.old
        return old is None or new.labels != old.labels or new.template_labels != old.template_labels


class Review(msgspec.Struct, frozen=True):
    """A review that could be read. `change` is None where there is nothing to decide: deletions, and
    subresources such as `scale` and `status`."""

    uid: str
    operation: str
    change: Change | None


class Denial(msgspec.Struct, frozen=True):
    """Why a request is denied, as the `status` of the response carries it. kubectl prints
    `Error from server (REASON): admission webhook "NAME" denied the request: MESSAGE`."""

    message: str
    reason: str
    code: int = 403


class Response(msgspec.Struct, frozen=True):
    """The answer to a review. `patch` is a JSON patch; `audit` goes into the API server's audit log, under the
    webhook's name. `decision` (allowed, patched or denied) and `reason` (in a word) are for metrics and logs."""

    decision: str
    reason: str
    patch: Sequence[Mapping[str, Any]] = ()
    warnings: Sequence[str] = ()
    audit: Mapping[str, str] = {}
    denial: Denial | None = None


def read(data: bytes, judged: Resource) -> Review:
    """The review in a request's body; ReviewError (400) where it is none that can be read, or about another kind than
    is judged."""
    try:
        review = _decode(data)
    except msgspec.ValidationError as error:
        raise ReviewError(f"this is no AdmissionReview that can be read: {error}") from error
    except (ValueError, RecursionError) as error:
        raise ReviewError(f"the body is not JSON that can be read: {error}") from error
    if review.kind != _KIND or review.api_version != _API_VERSION:
        raise ReviewError(
            f"the body is a {review.api_version[:64]} {review.kind[:64]}; "
            f"send an {_API_VERSION} {_KIND} (admissionReviewVersions: [v1])"
        )
    request = review.request
    resource = request.resource
    if resource is not None and not _is(resource, judged):
        raise ReviewError(
            f"the request is about {resource.resource[:64]} of {resource.group[:64]}/{resource.version[:64]}; "
            f"only {judged.plural} of {judged.api_version} are judged at this path, "
            "correct the rules of the webhook configuration"
        )
    change = None
    if not request.sub_resource and request.operation in ("CREATE", "UPDATE"):
        new = _workload(request.object, "object", judged)
        change = Change(
            resource=judged,
            name=request.name or new.metadata.name,
            namespace=request.namespace,
            user=request.user_info.username,
            new=new,
            old=_workload(request.old_object, "oldObject", judged) if request.operation == "UPDATE" else None,
        )
    return Review(request.uid, request.operation, change)


def write(uid: str, response: Response) -> bytes:
    """The AdmissionReview to answer the request `uid` with."""
    denial = response.denial
    content: dict[str, Any] = {"uid": uid, "allowed": denial is None}
    if denial is not None:
        content["status"] = {
            "status": "Failure",
            "message": denial.message,
            "reason": denial.reason,
            "code": denial.code,
        }
    elif response.patch:
        content["patchType"] = "JSONPatch"
        content["patch"] = b2a_base64(orjson.dumps(response.patch), newline=False).decode()
    if response.warnings:
        content["warnings"] = response.warnings
    if response.audit:
        content["auditAnnotations"] = response.audit
    return orjson.dumps({"apiVersion": _API_VERSION, "kind": _KIND, "response": content})


def _is(resource: _Resource, judged: Resource) -> bool:
    return (resource.resource, resource.group, resource.version) == (judged.plural, judged.group, judged.version)


def _workload(workload: Workload | None, where: str, judged: Resource) -> Workload:
    """What is at `request.{where}`; ReviewError unless it is a workload of the kind that is judged."""
    if workload is None:
        raise ReviewError(f"request.{where} is missing or null, but a change needs it")
    if workload.kind != judged.kind or workload.api_version != judged.api_version:
        raise ReviewError(
            f"request.{where} is a {workload.api_version[:64]} {workload.kind[:64]}, "
            f"not a {judged.kind} of {judged.api_version}"
        )
    template = workload.spec.template
    if template is _NO_TEMPLATE:
        raise ReviewError(f"request.{where} has no spec.template, so it is no workload")
    labels = template.metadata.get("labels") if template.metadata else None
    if labels is not None and not isinstance(labels, dict):
        raise ReviewError(f"the labels at request.{where}.spec.template.metadata are no map")
    return workload
