"""The errors of the HTTP port."""

from kube_base.errors import ReportedError
from reconciler.endpoints.outcome import CallbackOutcome


class EndpointError(ReportedError):
    """A request that is refused. `code` is the HTTP status, `outcome` the outcome if the request is a callback. The
    caller reads the message: it has no details before the caller is authenticated."""

    def __init__(self, message: str, code: int, outcome: CallbackOutcome = CallbackOutcome.MALFORMED) -> None:
        super().__init__(message)
        self.code = code
        self.outcome = outcome
