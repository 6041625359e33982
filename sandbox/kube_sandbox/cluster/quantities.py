"""Quantities as Kubernetes writes them: `500m`, `1.5`, `256Gi`; and numbers of pods, that may be `25%`."""

from decimal import Decimal

_SUFFIXES = {
    "n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"), "": Decimal(1),
    "k": Decimal("1e3"), "M": Decimal("1e6"), "G": Decimal("1e9"), "T": Decimal("1e12"), "P": Decimal("1e15"),
    "E": Decimal("1e18"),
    "Ki": Decimal(2**10), "Mi": Decimal(2**20), "Gi": Decimal(2**30), "Ti": Decimal(2**40), "Pi": Decimal(2**50),
    "Ei": Decimal(2**60),
}  # fmt: skip


def parse(quantity: str | float) -> Decimal:
    """The number a quantity stands for. ValueError for what is none (the API server admits no such)."""
    text = str(quantity)
    number = text.rstrip("numkKMGTPEi")
    suffix = text[len(number) :]
    if suffix not in _SUFFIXES:
        raise ValueError(f"{text} is not a quantity")
    return Decimal(number) * _SUFFIXES[suffix]


def share(value: int | str, of: int, *, round_up: bool) -> int:
    """A number of pods, or as many percent of `of` pods. (The API server admits nothing but digits and a percent
    sign.)"""
    if isinstance(value, int):
        return value
    percent = int(value.rstrip("%"))
    return -(-of * percent // 100) if round_up else of * percent // 100
