"""Bounds how many requests wait for the same thing."""

from types import TracebackType

from reconciler.endpoints.errors import EndpointError
from reconciler.endpoints.outcome import CallbackOutcome


class Places:
    """Take one in a `with` block. EndpointError (503) with `message` if all are taken."""

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
