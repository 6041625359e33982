"""Which refusals of a write may be over soon."""

from kube_base.access.errors import (
    ApiError,
    ConflictError,
    NamespaceTerminatingError,
    NotFoundError,
    TooManyRequestsError,
    UnauthorizedError,
)


def is_temporary(error: ApiError) -> bool:
    """Whether the error is temporary: a conflict, throttling, or a state of the cluster that changes."""
    temporary = ConflictError | NotFoundError | TooManyRequestsError | NamespaceTerminatingError | UnauthorizedError
    return isinstance(error, temporary)
