"""What the gatekeeper raises on purpose."""

from altershield.errors import AlterShieldError

_MAX_MESSAGE = 512


class ReviewError(AlterShieldError):
    """A request that is no review we can read; `code` is the HTTP status (4xx) it is answered with."""

    def __init__(self, message: str, code: int = 400) -> None:
        super().__init__(message[:_MAX_MESSAGE])  # it may quote what was sent
        self.code = code
