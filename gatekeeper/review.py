"""The edge: bytes to a typed review, a response to bytes.

The protocol is `admission.k8s.io/v1`. The API server accepts a response only with the request's uid, exactly
this apiVersion and kind, and `patchType` beside every `patch` (none from a validating webhook).
"""

import base64
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, Literal

import msgspec
import orjson

from altershield.api.resources import DEPLOYMENTS
from altershield.errors import AlterShieldError
from gatekeeper.fingerprint import canonical, fingerprint

_API_VERSION = "admission.k8s.io/v1"
_KIND = "AdmissionReview"

_Text = Annotated[str, msgspec.Meta(max_length=253)]
_Labels = dict[str, str]


class ReviewError(AlterShieldError):
    """A request that cannot be read as a review; `code` is the HTTP status (4xx) it is answered with."""

    def __init__(self, message: str, code: int = 400) -> None:
        super().__init__(message)
        self.code = code


class _Metadata(msgspec.Struct, frozen=True):
    name: _Text = ""
    uid: _Text = ""
    labels: _Labels | None = None


class _TemplateMetadata(msgspec.Struct, frozen=True):
    labels: _Labels | None = None


class _Template(msgspec.Struct, frozen=True):
    metadata: _TemplateMetadata | None = None


class _Spec(msgspec.Struct, frozen=True):
    template: msgspec.Raw = msgspec.Raw(b"")


class _Object(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    metadata: _Metadata | None = None
    spec: _Spec | None = None


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
    object: _Object | None = None
    old_object: _Object | None = None


class _Review(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str
    kind: str
    request: _Request


_decode_review = msgspec.json.Decoder(_Review).decode
_decode_template = msgspec.json.Decoder(_Template).decode


class Workload(msgspec.Struct, frozen=True):
    """What is read of a workload. `labels` and `template_labels` are None where the object has none,
    `template` is the pod template as the API server sent it."""

    uid: str
    labels: _Labels | None
    template: bytes
    template_metadata: bool
    """Whether the template has a `metadata` object, which a patch of its labels needs."""
    template_labels: _Labels | None

    def label(self, key: str) -> str | None:
        return None if self.labels is None else self.labels.get(key)

    def template_label(self, key: str) -> str | None:
        return None if self.template_labels is None else self.template_labels.get(key)


class Change(msgspec.Struct, frozen=True, dict=True):
    """What the gates decide about: one CREATE (`old` is None) or UPDATE of a Deployment."""

    kind: str
    """In lower case, as users see it in messages."""
    name: str
    """Empty where the API server has yet to generate it."""
    namespace: str
    user: str
    new: Workload
    old: Workload | None

    @cached_property
    def template_changed(self) -> bool:
        """Whether this is a release; the version label does not count. A CREATE always is."""
        if self.old is None:
            return True
        if self.new.template == self.old.template:
            return False
        return self._canonical != _canonical(self.old.template)

    @cached_property
    def version(self) -> str:
        """The version that the new template has."""
        return fingerprint(self._canonical)

    @cached_property
    def _canonical(self) -> bytes:
        return _canonical(self.new.template)


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
    webhook's name."""

    patch: Sequence[Mapping[str, Any]] = ()
    warnings: Sequence[str] = ()
    audit: Mapping[str, str] = {}
    denial: Denial | None = None


def read(data: bytes) -> Review:
    """The review in a request's body; ReviewError (400) where it is none that can be read."""
    try:
        review = _decode_review(data)
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
    if resource is not None and (
        resource.resource != DEPLOYMENTS.plural
        or resource.group != DEPLOYMENTS.group
        or resource.version != DEPLOYMENTS.version
    ):
        raise ReviewError(
            f"the request is about {resource.resource[:64]} of {resource.group[:64]}/{resource.version[:64]}; "
            "this webhook judges apps/v1 deployments only, correct the webhook configuration's rules"
        )
    change = None
    if not request.sub_resource and request.operation in ("CREATE", "UPDATE"):
        new = request.object
        change = Change(
            kind=DEPLOYMENTS.kind.lower(),
            name=request.name or (new.metadata.name if new and new.metadata else ""),
            namespace=request.namespace,
            user=request.user_info.username,
            new=_workload(new, "object"),
            old=_workload(request.old_object, "oldObject") if request.operation == "UPDATE" else None,
        )
    return Review(request.uid, request.operation, change)


def write(uid: str, response: Response) -> bytes:
    """The AdmissionReview to answer the request `uid` with."""
    content: dict[str, Any] = {"uid": uid, "allowed": response.denial is None}
    if response.denial is not None:
        content["status"] = {
            "status": "Failure",
            "message": response.denial.message,
            "reason": response.denial.reason,
            "code": response.denial.code,
        }
    elif response.patch:
        content["patchType"] = "JSONPatch"
        content["patch"] = base64.b64encode(orjson.dumps(response.patch)).decode()
    if response.warnings:
        content["warnings"] = response.warnings
    if response.audit:
        content["auditAnnotations"] = response.audit
    return orjson.dumps({"apiVersion": _API_VERSION, "kind": _KIND, "response": content})


def _workload(obj: _Object | None, where: str) -> Workload:
    """The Deployment at `request.{where}`."""
    if obj is None:
        raise ReviewError(f"request.{where} is missing or null, but this operation needs it")
    if obj.kind != DEPLOYMENTS.kind or obj.api_version != DEPLOYMENTS.api_version:
        raise ReviewError(
            f"request.{where} is a {obj.api_version[:64] or 'nameless version'} {obj.kind[:64] or 'nameless kind'}, "
            f"not an {DEPLOYMENTS.api_version} {DEPLOYMENTS.kind}"
        )
    if obj.metadata is None or obj.spec is None or not obj.spec.template:
        raise ReviewError(f"request.{where} has no metadata or no spec.template, so it is no workload")
    template = bytes(obj.spec.template)
    try:
        metadata = _decode_template(template).metadata
    except (ValueError, RecursionError) as error:
        raise ReviewError(f"request.{where}.spec.template is no pod template: {error}") from error
    return Workload(
        uid=obj.metadata.uid,
        labels=obj.metadata.labels,
        template=template,
        template_metadata=metadata is not None,
        template_labels=None if metadata is None else metadata.labels,
    )


def _canonical(template: bytes) -> bytes:
    try:
        return canonical(template)
    except ValueError as error:
        raise ReviewError(f"a pod template cannot be read: {error}") from error
