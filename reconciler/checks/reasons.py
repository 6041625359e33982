"""Reasons of checks, as they stand in a status, an Event or a log."""

from altershield.texts import one_line

_REASON = 900  # bytes; a reason in a status may have 1024 characters


def reason(text: str) -> str:
    """A text of a tenant's server or Job on one line, shortened."""
    return one_line(text, _REASON)
