"""When a write that the API server refused is tried again. Pure functions."""

from typing import NamedTuple

FIRST = 5.0
"""Seconds until the first retry. Each retry doubles them."""
LAST = 300.0
"""The most seconds between two retries."""


class Retry(NamedTuple):
    """The next retry. Times are seconds of one clock."""

    seconds: float
    """How long after the attempt before."""
    due: float


def next_retry(known: Retry | None, now: float) -> Retry:
    """The next retry of a write that was refused now. `known`: that of the refusal before; None: it is the first one.
    An attempt between two retries, because the object has changed, does not delay them."""
    if known is not None and now < known.due <= now + LAST:
        return known
    seconds = min(2 * known.seconds, LAST) if known is not None else FIRST
    return Retry(seconds, now + seconds)
