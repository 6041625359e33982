"""How the work on one key ended."""

from enum import StrEnum


class Outcome(StrEnum):
    """How the work on one key ended."""

    DONE = "done"
    CONFLICT = "conflict"
    """Somebody was faster, or our cache is behind: tried again."""
    THROTTLED = "throttled"
    ERROR = "error"
