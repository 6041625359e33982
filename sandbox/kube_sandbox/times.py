"""Times in the form of Kubernetes objects: `2026-08-21T07:29:49Z`."""

import datetime
import time


def rfc3339(moment: float) -> str:
    """The text of a time given in Unix seconds; fractions are cut off."""
    return datetime.datetime.fromtimestamp(int(moment), datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def now() -> str:
    """The text of the current time."""
    return rfc3339(time.time())


def unix(text: str | None) -> float:
    """The Unix seconds of a text; 0 for None or an empty text."""
    return datetime.datetime.fromisoformat(text).timestamp() if text else 0.0
