"""The reasons that logs and metrics give for the outcome of a deletion."""

from enum import StrEnum

from gatekeeper.response import Decision, Outcome


class Reason(StrEnum):
    HAS_CONTENT = "has-content"
    """The deletion would delete other objects."""
    CONTENT_UNKNOWN = "content-unknown"
    """The objects that the deletion would delete could not be read."""
    EMPTY = "empty"
    """A protected object without content may be deleted."""


OUTCOMES = (
    Outcome(Decision.DENIED, Reason.HAS_CONTENT),
    Outcome(Decision.DENIED, Reason.CONTENT_UNKNOWN),
    Outcome(Decision.ALLOWED, Reason.EMPTY),
)
