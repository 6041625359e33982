"""A bound on the number of requests that wait for the same resource."""

from types import TracebackType

from reconciler.endpoints.endpoint_errors import EndpointError
from reconciler.endpoints.outcome import CallbackOutcome


class Places:
    """Take a place in a `with` block. EndpointError (503) with `message` if all places are taken."""

    def __init__(self, number: int, message: str) -> None:
        self._free = number
        self._message = message

    def __enter__(self) -> None:
        if not self._free:
            raise EndpointError(self._message, 503, CallbackOutcome.FAILED)
        self._free -= 1

    def __exit__(
        self, type_: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._free += 1
