"""When a write that the API server refused is tried again."""

from typing import Generic, NamedTuple, TypeVar

FIRST = 5.0
"""Seconds until the first retry. Each retry doubles them."""
LAST = 300.0
"""The most seconds between two retries."""

K = TypeVar("K")


class _Refused(NamedTuple):
    seconds: float
    due: float


class Retries(Generic[K]):
    """The refused writes, by the key of their object. Times are seconds of one clock."""

    def __init__(self) -> None:
        self._refused: dict[K, _Refused] = {}

    def refused(self, key: K, now: float) -> float:
        """Note a refusal. Returns the seconds until the next retry. An attempt between two retries, because the object
        has changed, does not delay them."""
        known = self._refused.get(key)
        if known is not None and now < known.due <= now + LAST:
            return known.due - now
        seconds = min(2 * known.seconds, LAST) if known is not None else FIRST
        self._refused[key] = _Refused(seconds, now + seconds)
        return seconds

    def forget(self, key: K) -> None:
        """The write was carried out, or is not due any more."""
        self._refused.pop(key, None)
