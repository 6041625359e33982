"""Errors that the API server returns: a `v1/Status` with the text of the real server."""

from collections.abc import Mapping, Sequence
from typing import Any

from kube_sandbox.apiserver.gotext import aggregated

_REASONS = {
    400: "BadRequest", 401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 405: "MethodNotAllowed",
    406: "NotAcceptable", 409: "Conflict", 410: "Expired", 413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType", 422: "Invalid", 429: "TooManyRequests", 500: "InternalError",
    503: "ServiceUnavailable", 504: "Timeout",
}  # fmt: skip


class StatusError(Exception):
    """A failed request. `status` is the `v1/Status` object of the response."""

    def __init__(
        self,
        code: int,
        message: str,
        *,
        reason: str | None = None,
        details: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.reason = _REASONS.get(code, "") if reason is None else reason
        self.details = details

    @property
    def status(self) -> dict[str, Any]:
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            status["reason"] = self.reason
        if self.details is not None:
            status["details"] = self.details
        return {**status, "code": self.code}


def forbidden(group: str, plural: str, name: str, why: str) -> StatusError:
    """403 about one resource (`deployments.apps "sleep" is forbidden: ...`), or about a URL when `plural` is empty."""
    resource = f"{plural}.{group}" if group else plural
    if not resource:
        message = f"forbidden: {why}"
    elif not name:
        message = f"{resource} is forbidden: {why}"
    else:
        message = f'{resource} "{name}" is forbidden: {why}'
    details = {key: value for key, value in (("name", name), ("group", group), ("kind", plural)) if value}
    return StatusError(403, message, details=details)


def invalid(group: str, kind: str, name: str, causes: Sequence[Mapping[str, str]]) -> StatusError:
    """422 for an invalid object. A cause has a reason, a message and a field."""
    qualified = f"{kind}.{group}" if group else kind
    message = aggregated(f"{cause['field']}: {cause['message']}" for cause in causes)
    details = {key: value for key, value in (("name", name), ("group", group), ("kind", kind)) if value}
    return StatusError(422, f'{qualified} "{name}" is invalid: {message}', details={**details, "causes": list(causes)})


def not_served() -> StatusError:
    return StatusError(404, "the server could not find the requested resource", details={})


def not_allowed() -> StatusError:
    return StatusError(405, "the server does not allow this method on the requested resource", details={})


def internal_error(why: str) -> StatusError:
    return StatusError(500, f"Internal error occurred: {why}", details={"causes": [{"message": why}]})
