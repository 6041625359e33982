"""The outcomes of callbacks, as label values of metrics."""

from enum import StrEnum


class CallbackOutcome(StrEnum):
    """How a callback ended."""

    ACCEPTED = "accepted"
    UNSIGNED = "unsigned"
    """It is not signed with the token, or no token is configured. A callback about a check: it is not signed with the
    key of the check, or there is no such check."""
    STALE = "stale"
    """It is signed, but its timestamp is too far from the clock."""
    REPLAYED = "replayed"
    """It is signed, but a callback with this signature was accepted before."""
    MALFORMED = "malformed"
    """The body is broken, slow, or not a callback."""
    TOO_LARGE = "too_large"
    UNKNOWN = "unknown"
    """It is signed, but AlterShield has not opened its node for a batch of its order. A callback about a check: the
    check has not begun with this run."""
    LATE = "late"
    """It is signed, but its check is over, or its order is closed."""
    FAILED = "failed"
    """It is valid, but it could not be stored."""
