"""Errors of requests to the Kubernetes API, made from the Status in the response."""

from typing import Any

from kube_base.errors import ReportedError

MAX_RETRY_AFTER = 300.0
"""The maximum of `ApiError.retry_after`, in seconds."""

_MAX_MESSAGE = 1024  # characters; a Status may contain a whole object


class KubernetesError(ReportedError):
    """A request to the Kubernetes API failed."""

    @property
    def may_heal(self) -> bool:
        """Whether the request may succeed although the object does not change. If not, it is repeated slowly."""
        return True


class UnreachableError(KubernetesError):
    """No complete response: connection refused, timeout, TLS error, connection lost."""


class UnreadableError(UnreachableError):
    """The response cannot be decoded: it is no JSON, or a SchemaError."""


class SchemaError(UnreadableError):
    """The response, or an object in it, has another schema than expected."""

    @property
    def may_heal(self) -> bool:
        return False


class ApiError(KubernetesError):
    """The API server responded with an error.

    `code` is the HTTP status, `reason` the reason in the Status (any text), `retry_after` seconds or None.
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

    @property
    def explained(self) -> str:
        """The message, and the messages of the causes in the Status: for a refused eviction, they name the budget."""
        causes = (str(each["message"]) for each in _causes(self.details) if each.get("message"))
        return "; ".join((str(self).rstrip("."), *causes))[:_MAX_MESSAGE]


class BadRequestError(ApiError):
    """400: the request is malformed."""


class UnauthorizedError(ApiError):
    """401: the credentials are missing, wrong or expired."""


class ForbiddenError(ApiError):
    """403: RBAC or an admission webhook denied the request. A webhook may deny with another code, which `code` has."""


class NamespaceTerminatingError(ForbiddenError):
    """403, cause NamespaceTerminating: the namespace is being deleted, so no object can be created in it."""


class NotFoundError(ApiError):
    """404: no such object, or no such resource."""


class ConflictError(ApiError):
    """409: the object has changed since it was read. Read it again."""


class AlreadyExistsError(ConflictError):
    """409, reason AlreadyExists: an object of that name exists."""


class GoneError(ApiError):
    """410: the resourceVersion or continue token is too old. List again."""


class InvalidError(ApiError):
    """422: the object is invalid, a `test` operation of a JSON patch failed, or a ValidatingAdmissionPolicy refuses."""

    @property
    def may_heal(self) -> bool:
        """Whether no cause names a field. The cause of a policy names none, and its binding may be deleted soon."""
        return not any(cause.get("field") for cause in _causes(self.details))


class TooManyRequestsError(ApiError):
    """429: too many requests. Wait `retry_after` seconds."""


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


_WEBHOOK = 'admission webhook "'  # the begin of the message if a webhook denied the request

_CODES_OF_OTHERS = (401, 404, 409, 410, 422)
"""A webhook can deny with any code. Otherwise these codes mean that the object has changed or is gone, or that the
credentials are wrong."""


CODES = ("400", "401", "403", "404", "409", "410", "413", "422", "429", "5xx", "other", "unreachable")
"""All values of `code_of`."""


def code_of(error: KubernetesError) -> str:
    """The label value for metrics: the HTTP status if it is in CODES, else `5xx` or `other`; `unreachable` if there was
    no complete response."""
    if not isinstance(error, ApiError):
        return "unreachable"
    code = str(error.code)
    if code in CODES:
        return code
    return "5xx" if 500 <= error.code < 600 else "other"


def from_status(code: int, status: dict[str, Any], retry_after: float | None = None) -> ApiError:
    """The error for a `v1/Status` object, or for the body that a proxy sent instead."""
    reason = str(status.get("reason") or "")
    message = str(status.get("message") or "") or f"the API server responded with {code}"
    if code == 401 and not message.startswith(_WEBHOOK):  # the API server's message is only "Unauthorized"
        message = f"the API server refuses the credentials: {message}"
    details = status.get("details")
    kind: type[ApiError]
    if code in _CODES_OF_OTHERS and message.startswith(_WEBHOOK):
        kind = ForbiddenError
    elif code == 409 and reason == "AlreadyExists":
        kind = AlreadyExistsError
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
    """`retryAfterSeconds` of a Status, for a response without the header Retry-After."""
    seconds = details.get("retryAfterSeconds") if isinstance(details, dict) else None
    return min(float(seconds), MAX_RETRY_AFTER) if type(seconds) is int and seconds > 0 else None


def _has_cause(details: Any, reason: str) -> bool:
    return any(cause.get("reason") == reason for cause in _causes(details))


def _causes(details: Any) -> list[dict[str, Any]]:
    causes = details.get("causes") if isinstance(details, dict) else None
    return [cause for cause in causes if isinstance(cause, dict)] if isinstance(causes, list) else []
