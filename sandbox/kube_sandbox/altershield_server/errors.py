"""The ends of calls that are not answered with `success: true`."""

from kube_sandbox.altershield_server.vocabulary import Code


class RefusedError(Exception):
    """The envelope has `success: false` with this code and message. The HTTP status is 200."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class BadRequestError(Exception):
    """HTTP status 400: the body is no JSON, or a value has the wrong type."""


class CrashError(Exception):
    """The server has an exception that it does not handle: HTTP status 200 with an empty body."""
