"""What the gatekeeper raises on purpose."""

from altershield.errors import AlterShieldError
from gatekeeper.texts import clean

_MAX_MESSAGE = 512  # bytes


class ReviewError(AlterShieldError):
    """A request that cannot be answered; `code` is the HTTP status of the answer. The message may quote the request."""

    def __init__(self, message: str, code: int = 400) -> None:
        super().__init__(clean(message, _MAX_MESSAGE))
        self.code = code
