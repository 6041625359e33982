"""Errors of requests to the Kubernetes API, made from the Status object of the response."""

from typing import Any

from kube_sandbox.errors import SandboxError


class KubernetesError(SandboxError):
    """A request to the Kubernetes API failed."""


class UnreachableError(KubernetesError):
    """The API server sent no response, or an incomplete one."""


class ApiError(KubernetesError):
    """The API server returned an error. `code` is the HTTP status; `reason` comes from the Status object.
    `retry_after` is in seconds."""

    def __init__(self, message: str, *, code: int = 500, reason: str = "", retry_after: float | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.retry_after = retry_after


class NamespaceTerminatingError(ApiError):
    """403 with the cause NamespaceTerminating: nothing can be created in a namespace that is being deleted."""


class NotFoundError(ApiError):
    """404: the object or the resource does not exist."""


class ConflictError(ApiError):
    """409: the object changed after it was read, or a precondition does not hold."""


class AlreadyExistsError(ConflictError):
    """409 with the reason AlreadyExists: an object of that name exists."""


class GoneError(ApiError):
    """410: the resource version is too old; list again."""


class ServerError(ApiError):
    """429 or 5xx: the server is overloaded, or it failed."""


def from_status(code: int, status: dict[str, Any]) -> ApiError:
    """The error for an HTTP status code and a `v1/Status` object."""
    reason = str(status.get("reason") or "")
    details = status.get("details") or {}
    causes = [cause.get("reason") for cause in details.get("causes") or ()]
    kinds: dict[int, type[ApiError]] = {404: NotFoundError, 409: ConflictError, 410: GoneError, 429: ServerError}
    kind = kinds.get(code) or (ServerError if code >= 500 else ApiError)
    if code == 409 and reason == "AlreadyExists":
        kind = AlreadyExistsError
    elif code == 403 and "NamespaceTerminating" in causes:
        kind = NamespaceTerminatingError
    message = str(status.get("message") or f"the API server answered {code}")
    return kind(message, code=code, reason=reason, retry_after=details.get("retryAfterSeconds"))
