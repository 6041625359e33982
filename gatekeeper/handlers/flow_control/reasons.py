"""The reasons that logs and metrics give for the outcome of a counted deletion."""

from enum import StrEnum

from gatekeeper.response import Actor, Decision, Outcome


class Reason(StrEnum):
    COUNTED = "counted"
    BEYOND_LIMIT = "beyond-limit"
    """A limit is reached, or the breaker is open."""
    NOT_COUNTED = "not-counted"
    """The deletion could not be counted in time."""
    BREAK_GLASS = "break-glass"
    """The user is in the group for emergencies."""


OUTCOMES = (
    Outcome(Decision.ALLOWED, Reason.COUNTED),
    Outcome(Decision.ALLOWED, Reason.BREAK_GLASS, bypassed_by=(Actor.SERVICE_ACCOUNT, Actor.USER)),
    Outcome(Decision.DENIED, Reason.BEYOND_LIMIT),
    Outcome(Decision.DENIED, Reason.NOT_COUNTED),
)
