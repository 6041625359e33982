"""The wire format: decodes an AdmissionReview into a typed request, and encodes an answer. It has no decisions.

The protocol is `admission.k8s.io/v1`. The API server accepts a response only with the request's uid, exactly
this apiVersion and kind, and `patchType` beside every `patch` (none from a validating webhook).
"""

from binascii import b2a_base64
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Generic, TypeVar

import msgspec
import orjson

from altershield.admission.registration import Operation
from gatekeeper.errors import ReviewError

_API_VERSION = "admission.k8s.io/v1"
_KIND = "AdmissionReview"

T = TypeVar("T")

Text = Annotated[str, msgspec.Meta(max_length=253)]


class ResourceName(msgspec.Struct, frozen=True):
    group: str = ""
    version: str = ""
    resource: str = ""


class UserInfo(msgspec.Struct, frozen=True):
    username: str = ""
    groups: tuple[str, ...] | None = None  # an empty Go slice may be null


class WireRequest(msgspec.Struct, Generic[T], frozen=True, rename="camel"):
    """The request of a review. `T` is the type of the decoded objects or None, or `msgspec.Raw`."""

    uid: Annotated[str, msgspec.Meta(min_length=1, max_length=253)]
    operation: Operation
    resource: ResourceName | None = None
    sub_resource: Text = ""
    name: Text = ""
    namespace: Text = ""
    user_info: UserInfo = UserInfo()
    object: T = None  # type: ignore[assignment]
    old_object: T = None  # type: ignore[assignment]
    dry_run: bool | None = None
    options: msgspec.Raw = msgspec.Raw()


class _Review(msgspec.Struct, Generic[T], frozen=True, rename="camel"):
    api_version: str
    kind: str
    request: WireRequest[T]


def reader(type_: type[Any]) -> Callable[[bytes], WireRequest[Any]]:
    """A function that decodes the body of a review, with the objects as `type_` (`msgspec.Raw`: not decoded).
    It raises ReviewError (400) if the body is not a review."""
    optional: Any = type_ if type_ is msgspec.Raw else type_ | None
    decode = msgspec.json.Decoder(_Review[optional]).decode

    def read(data: bytes) -> WireRequest[Any]:
        try:
            review = decode(data)
        except msgspec.ValidationError as error:
            raise ReviewError(f"the body cannot be read as an AdmissionReview: {error}") from error
        except (ValueError, RecursionError) as error:
            raise ReviewError(f"the body cannot be read as JSON: {error}") from error
        if review.kind != _KIND or review.api_version != _API_VERSION:
            raise ReviewError(
                f"the body is a {review.api_version[:64]} {review.kind[:64]}; "
                f"send an {_API_VERSION} {_KIND} (admissionReviewVersions: [v1])"
            )
        return review.request

    return read


def write(
    uid: str,
    *,
    status: Mapping[str, Any] | None = None,
    patch: Sequence[Mapping[str, Any]] = (),
    warnings: Sequence[str] = (),
    audit: Mapping[str, str] | None = None,
) -> bytes:
    """The AdmissionReview that answers the request `uid`. With a `status` it denies the request and has no patch."""
    content: dict[str, Any] = {"uid": uid, "allowed": status is None}
    if status is not None:
        content["status"] = status
    elif patch:
        content["patchType"] = "JSONPatch"
        content["patch"] = b2a_base64(orjson.dumps(patch), newline=False).decode()
    if warnings:
        content["warnings"] = warnings
    if audit:
        content["auditAnnotations"] = audit
    return orjson.dumps({"apiVersion": _API_VERSION, "kind": _KIND, "response": content})
