"""Numbers that look random and depend only on a seed and a key, so that a run can be repeated and predicted."""

import hashlib


def fraction(seed: int, *key: object) -> float:
    """A number from 0 to below 1, evenly distributed over the keys."""
    text = "\x00".join(str(part) for part in (seed, *key))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "big") / 2**56


def happens(share: float, seed: int, *key: object) -> bool:
    """Whether something that happens in this share of all keys happens for this key."""
    return fraction(seed, *key) < share


def between(span: tuple[float, float], seed: int, *key: object) -> float:
    """A number in the range."""
    low, high = span
    return low + (high - low) * fraction(seed, *key)
