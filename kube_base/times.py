"""Times in the format of Kubernetes: `2026-08-21T07:29:49Z`."""

import datetime
import time


def rfc3339(now: float) -> str:
    """Unix seconds in the format of Kubernetes: `2026-08-21T07:29:49Z`."""
    return datetime.datetime.fromtimestamp(int(now), datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def unix(text: str | None) -> float:
    """A time in the format of Kubernetes in Unix seconds; 0 for None, an empty text, or a text that is no time.

    The API server also stores the years 0 and 10000, which Python does not have. Users can write them into Events and
    `managedFields`.
    """
    try:
        return datetime.datetime.fromisoformat(text).timestamp() if text else 0.0
    except (ValueError, OverflowError, OSError):
        return 0.0


def now() -> str:
    """The present time in the format of Kubernetes."""
    return rfc3339(time.time())
