"""The outcomes of one reconcile, as label values of metrics."""

from enum import StrEnum


class Outcome(StrEnum):
    """How the reconcile of one key ended."""

    DONE = "done"
    CONFLICT = "conflict"
    """The object changed meanwhile, or the cache is behind. The key is reconciled again."""
    THROTTLED = "throttled"
    """The API server answered 429 Too Many Requests. The key is reconciled again after the time in the answer."""
    ERROR = "error"
