"""Errors of calls to an AlterShield server. No message contains the token."""

from kube_base.errors import ReportedError


class AlterShieldServerError(ReportedError):
    """A call to an AlterShield server failed."""


class UnavailableError(AlterShieldServerError):
    """The server gave no usable answer: it cannot be reached, is too slow, failed, or the circuit breaker is open.

    `delivered` is False only if the call surely did not reach the server. So even a call that is not idempotent can
    then be repeated. `retry_after` is the number of seconds for which the circuit breaker admits no call, or 0.
    """

    def __init__(self, message: str, *, delivered: bool, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.delivered = delivered
        self.retry_after = retry_after


class RejectedError(AlterShieldServerError):
    """The server refused the call. The same call is refused again until a person changes something.

    `code` is the server's result code, such as `101` (invalid argument) or `102` (permission denied), or `HTTP 400`.
    `text` is the server's message.
    """

    def __init__(self, message: str, *, code: str, text: str) -> None:
        super().__init__(message)
        self.code = code
        self.text = text


class NotAllowedError(AlterShieldServerError):
    """Result code 103: the server does not know the node, or does not allow the call in the node's state.

    `state` is this state, such as `PRE_AOP`, or empty if the server's message names none: then the server does not know
    the node. `text` is the server's message.
    """

    def __init__(self, message: str, *, state: str, text: str) -> None:
        super().__init__(message)
        self.state = state
        self.text = text
