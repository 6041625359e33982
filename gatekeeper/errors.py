"""The errors of the gatekeeper."""

from gatekeeper.texts import clean
from kube_base.errors import ReportedError

_MAX_MESSAGE = 512  # bytes


class ReviewError(ReportedError):
    """A request that the gatekeeper cannot review. `code` is the HTTP status of the answer. The message may quote the
    request."""

    def __init__(self, message: str, code: int = 400) -> None:
        super().__init__(clean(message, _MAX_MESSAGE))
        self.code = code
