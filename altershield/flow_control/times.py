"""Times in the status of a policy. Users who may reset breakers can write any text there."""

from altershield.api.meta import rfc3339, unix

__all__ = ["rfc3339", "time_of"]


def time_of(text: str, default: float) -> float:
    """Unix seconds; `default` if the text is no time."""
    try:
        return unix(text) or default
    except (ValueError, OverflowError, OSError):
        return default
