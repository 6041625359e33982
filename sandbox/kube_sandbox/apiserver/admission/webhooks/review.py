"""Encodes AdmissionReview requests and decodes the responses of webhooks.

The rules are those of kube-apiserver's `pkg/admission/plugin/webhook/{request,errors}`.
"""

import base64
import binascii
from dataclasses import dataclass, field
from typing import Any

import orjson

from kube_sandbox.apiserver.attributes import Attributes, Object
from kube_sandbox.apiserver.auth.access_reviews import user_info
from kube_sandbox.apiserver.errors import StatusError
from kube_sandbox.apiserver.gotext import TYPE_META, json_name, quoted

_VERSIONS = ("v1", "v1beta1")
_SCHEME = 'in scheme "pkg/util/webhook/client.go:71"'  # the real server prints the source line of its scheme


class CallError(Exception):
    """A call failed or the response is not valid; the failurePolicy applies. `code` is the label of the metrics."""

    def __init__(self, reason: str, code: int = 503) -> None:
        super().__init__(reason)
        self.code = code


@dataclass(frozen=True, slots=True)
class Kind:
    group: str
    version: str
    kind: str


@dataclass(frozen=True, slots=True)
class Invocation:
    """The version of the resource with which to call a webhook, and the kind of the object in the review."""

    version: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class Response:
    """The response of a webhook. `patch` is decoded from base64; it is empty without a patch."""

    allowed: bool
    patch: bytes = b""
    patch_type: str = ""
    status: Object | None = None
    warnings: list[str] = field(default_factory=list)


def request_kind(attributes: Attributes) -> Kind:
    """The kind of the object in the request. For a subresource such as scale it differs from that of the resource."""
    obj = attributes.obj or {}
    api_version, kind = obj.get("apiVersion"), obj.get("kind")
    if not attributes.subresource or not (isinstance(api_version, str) and isinstance(kind, str)):
        return Kind(attributes.group, attributes.version, attributes.kind)
    group, _, version = api_version.rpartition("/")
    return Kind(group, version, kind)


def versioned(obj: Object | None, attributes: Attributes, invocation: Invocation) -> Object | None:
    """An object in the version that the webhook requires. The versions of custom resources differ only in apiVersion.
    The kind of a subresource (Scale) has one version."""
    group, version = attributes.group, attributes.version
    if obj is None or invocation.version == version or obj.get("apiVersion") != f"{group}/{version}":
        return obj
    return {**obj, "apiVersion": f"{group}/{invocation.version}"}


def request(attributes: Attributes, invocation: Invocation) -> Object:
    """`AdmissionReview.request` without uid and objects. It is also the variable `request` of conditions."""
    resource = {"group": attributes.group, "version": invocation.version, "resource": attributes.plural}
    sub = attributes.subresource
    optional = {
        "subResource": sub,
        "requestSubResource": sub,
        "name": attributes.name,
        "namespace": attributes.namespace_or_self,
    }
    return {
        "kind": _kind(invocation.kind),
        "resource": resource,
        "requestKind": _kind(request_kind(attributes)),
        "requestResource": {**resource, "version": attributes.version},
        **{key: value for key, value in optional.items() if value},
        "operation": attributes.operation,
        "userInfo": user_info(attributes.user),
        "dryRun": attributes.dry_run,
        "options": _options(attributes) or None,
    }


def review(uid: str, version: str, attributes: Attributes, invocation: Invocation) -> bytes:
    """The AdmissionReview for a webhook, as JSON. Equal objects have equal bytes, as on the real server: it writes the
    fields of a type in one order and sorts the keys of maps."""
    return orjson.dumps(
        {
            "kind": "AdmissionReview",
            "apiVersion": f"admission.k8s.io/{version}",
            "request": {
                "uid": uid,
                **request(attributes, invocation),
                "object": versioned(attributes.obj, attributes, invocation),
                "oldObject": versioned(attributes.old, attributes, invocation),
            },
        },
        option=orjson.OPT_SORT_KEYS,
    )


def review_version(spec: Object) -> str:
    """The first version in `admissionReviewVersions` that this server supports. Raises CallError for none."""
    for version in spec.get("admissionReviewVersions") or ():
        if version in _VERSIONS:
            return str(version)
    reason = "could not create admission objects: webhook does not accept known AdmissionReview versions (v1, v1beta1)"
    raise CallError(reason, 400)


def _decode(body: bytes) -> Any:
    """The JSON value of a response. Other text counts as a string, as in the decoder of the real server."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return body.decode(errors="replace")


def decode_response(body: bytes, uid: str, version: str, *, mutating: bool) -> Response:
    """The response of a webhook. Raises CallError unless it is an AdmissionReview of this version with this uid."""
    decoded = _decode(body)
    if not isinstance(decoded, dict):
        what = f"json: cannot unmarshal {json_name(decoded)} into Go value of type {TYPE_META}"
        raise _failed(f"couldn't get version/kind; json parse error: {what}")
    _check_registered(decoded, version)
    response = _typed(decoded, "response", dict, f"AdmissionReview.response of type {version}.AdmissionResponse")
    if response is None:
        raise _invalid("webhook response was absent")
    fields = {key: _typed(response, key, *rest) for key, rest in _RESPONSE.items()}
    patch, patch_type = _base64(fields["patch"] or ""), fields["patchType"]
    if version == "v1":
        _check_response(decoded, fields["uid"] or "", uid)
        _check_patch(patch, patch_type, mutating=mutating)
    return Response(
        allowed=bool(fields["allowed"]),
        patch=patch if mutating else b"",
        patch_type=patch_type or ("" if version == "v1" else "JSONPatch"),
        status=fields["status"],
        warnings=fields["warnings"] or [],
    )


def denied(name: str, status: Object | None) -> StatusError:
    """The error for a denial, with the message, reason and code of the webhook. A code below 400 becomes 400."""
    result = dict(status or {})
    code = result.get("code")
    code = code if isinstance(code, int) and code >= 400 else 400
    reason, message = str(result.get("reason") or ""), str(result.get("message") or "")
    what = f"admission webhook {quoted(name)} denied the request"
    explanation = message or reason
    details = result.get("details")
    return StatusError(
        code,
        f"{what}: {explanation}" if explanation else f"{what} without explanation",
        reason=reason,
        details=details if isinstance(details, dict) else None,
    )


def _kind(kind: Kind) -> Object:
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}


def _options(attributes: Attributes) -> Object:
    """The options of the request. A webhook receives those of a patch as CreateOptions or UpdateOptions."""
    options = attributes.options
    if options.get("kind") != "PatchOptions":
        return options
    kept = {key: value for key, value in options.items() if key != "force"}
    return {**kept, "kind": "CreateOptions" if attributes.operation == "CREATE" else "UpdateOptions"}


def _check_registered(decoded: Object, version: str) -> None:
    """Raise CallError for a kind that the decoder does not know. It knows AdmissionReview and Status."""
    api_version, kind = decoded.get("apiVersion") or "", decoded.get("kind") or ""
    known = {f"admission.k8s.io/{known}": known for known in _VERSIONS}
    if kind == "Status" and api_version == "v1":
        raise _failed(f"converting (v1.Status) to ({version}.AdmissionReview): unknown conversion")
    if not kind or not api_version:
        return
    if kind != "AdmissionReview" or api_version not in known:
        raise _failed(f"no kind {quoted(kind)} is registered for version {quoted(api_version)} {_SCHEME}")
    if known[api_version] != version:
        what = f"converting ({known[api_version]}.AdmissionReview) to ({version}.AdmissionReview)"
        raise _failed(f"{what}: unknown conversion")


def _check_response(decoded: Object, response_uid: str, uid: str) -> None:
    if response_uid != uid:
        raise _invalid(f"expected response.uid={quoted(uid)}, got {quoted(response_uid)}")
    group, _, version = str(decoded.get("apiVersion") or "").rpartition("/")
    got = f"{group}/{version}, Kind={decoded.get('kind') or ''}"
    expected = "admission.k8s.io/v1, Kind=AdmissionReview"
    if got != expected:
        raise _invalid(f"expected webhook response of {expected}, got {got}")


def _check_patch(patch: bytes, patch_type: str | None, *, mutating: bool) -> None:
    if not mutating:
        if patch:
            raise _invalid("validating webhook may not return response.patch")
        if patch_type is not None:
            raise _invalid("validating webhook may not return response.patchType")
        return
    if patch and patch_type is None:
        raise _invalid("webhook returned response.patch but not response.patchType")
    if not patch and patch_type is not None:
        raise _invalid("webhook returned response.patchType but not response.patch")
    if patch_type == "":
        raise _invalid('webhook returned invalid response.patchType of ""')


_RESPONSE: dict[str, tuple[type, str]] = {
    "uid": (str, "AdmissionResponse.response.uid of type types.UID"),
    "allowed": (bool, "AdmissionResponse.response.allowed of type bool"),
    "status": (dict, "AdmissionResponse.response.status of type v1.Status"),
    "patch": (str, "AdmissionResponse.response.patch of type []uint8"),
    "patchType": (str, "AdmissionResponse.response.patchType of type v1.PatchType"),
    "warnings": (list, "AdmissionResponse.response.warnings of type []string"),
}


def _typed(holder: Object, key: str, expected: type, go_field: str) -> Any:
    value: Any = holder.get(key)
    if value is not None and type(value) is not expected:
        raise _wrong_type(value, go_field)
    for item in value if isinstance(value, list) else ():
        if not isinstance(item, str):
            raise _wrong_type(item, go_field.replace("[]string", "string"))
    return value


def _wrong_type(value: object, go_field: str) -> CallError:
    return _failed(f"json: cannot unmarshal {json_name(value)} into Go struct field {go_field}")


def _base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="
        at = next((index for index, char in enumerate(text) if char not in alphabet), len(text))
        raise _failed(f"illegal base64 data at input byte {at}") from error


def _failed(what: str) -> CallError:
    return CallError(f"failed to call webhook: {what}")


def _invalid(what: str) -> CallError:
    return CallError(f"received invalid webhook response: {what}")
