"""What can go wrong when talking to the Kubernetes API. Built from the Status the server answers with."""

from typing import Any

from altershield.errors import AlterShieldError

_MAX_RETRY_AFTER = 300.0
_MAX_MESSAGE = 1024  # a Status may quote a whole object; logs need not


class KubernetesError(AlterShieldError):
    """Talking to the Kubernetes API failed."""


class UnreachableError(KubernetesError):
    """No answer, or a broken one: refused, timed out, TLS, cut in mid-answer."""


class UnreadableError(UnreachableError):
    """An answer that is not what was asked for: no JSON, or of another shape."""


class ApiError(KubernetesError):
    """The API server answered with an error.

    `code` is the HTTP status, `reason` the Status' reason (may be any text), `retry_after` seconds or None.
    """

    def __init__(
        self,
        message: str,
        *,
        code: int = 500,
        reason: str = "",
        details: dict[str, Any] | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message[:_MAX_MESSAGE])
        self.code = code
        self.reason = reason
        self.details = details or {}
        self.retry_after = retry_after


class BadRequestError(ApiError):
    """400: the request is malformed."""


class UnauthorizedError(ApiError):
    """401: the credentials are missing, wrong or expired."""


class ForbiddenError(ApiError):
    """403: RBAC or an admission webhook refused."""


class NamespaceTerminatingError(ForbiddenError):
    """403, cause NamespaceTerminating: nothing new can be created in a namespace that is being deleted."""


class NotFoundError(ApiError):
    """404: no such object, or no such resource."""


class ConflictError(ApiError):
    """409: the object changed since it was read; read again."""


class AlreadyExistsError(ConflictError):
    """409, reason AlreadyExists: an object of that name is there."""


class GoneError(ApiError):
    """410: the resource version or continue token is too old; list again."""


class InvalidError(ApiError):
    """422: the object fails validation, or a JSON patch its test."""


class TooManyRequestsError(ApiError):
    """429: slow down; `retry_after` says for how long."""


class ServerError(ApiError):
    """5xx: the server failed."""


_BY_CODE: dict[int, type[ApiError]] = {
    400: BadRequestError,
    401: UnauthorizedError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    410: GoneError,
    422: InvalidError,
    429: TooManyRequestsError,
}


CODES = ("400", "401", "403", "404", "409", "410", "413", "422", "429", "5xx", "other", "unreachable")
"""All that `code_of` can give."""


def code_of(error: KubernetesError) -> str:
    """The error as metrics count it: its HTTP status, or which kind of others it belongs to. `unreachable` is
    whatever prevented an answer, or cut it."""
    if not isinstance(error, ApiError):
        return "unreachable"
    code = str(error.code)
    if code in CODES:
        return code
    return "5xx" if 500 <= error.code < 600 else "other"


def from_status(code: int, status: dict[str, Any], retry_after: float | None = None) -> ApiError:
    """The error of a `v1/Status` object (or of whatever a proxy answered instead)."""
    reason = str(status.get("reason") or "")
    message = str(status.get("message") or "") or f"the API server answered {code}"
    details = status.get("details")
    if code == 409 and reason == "AlreadyExists":
        kind: type[ApiError] = AlreadyExistsError
    elif code == 403 and _has_cause(details, "NamespaceTerminating"):
        kind = NamespaceTerminatingError
    else:
        kind = _BY_CODE.get(code) or (ServerError if code >= 500 else ApiError)
    return kind(
        message,
        code=code,
        reason=reason,
        details=details if isinstance(details, dict) else None,
        retry_after=_retry_after(details) if retry_after is None else retry_after,
    )


def _retry_after(details: Any) -> float | None:
    """The seconds that a Status without the header asks to wait."""
    seconds = details.get("retryAfterSeconds") if isinstance(details, dict) else None
    return min(float(seconds), _MAX_RETRY_AFTER) if type(seconds) is int and seconds > 0 else None


def _has_cause(details: Any, reason: str) -> bool:
    causes = details.get("causes") if isinstance(details, dict) else None
    return isinstance(causes, list) and any(
        isinstance(cause, dict) and cause.get("reason") == reason for cause in causes
    )
