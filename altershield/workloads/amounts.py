"""Numbers of pods that a manifest may also give as a percentage, such as `maxUnavailable: 25%`."""

import re

_PERCENTAGE = re.compile("[0-9]{1,4}%")


def is_amount(amount: int | str) -> bool:
    """Whether a manifest may have this number or percentage."""
    return amount >= 0 if isinstance(amount, int) else _PERCENTAGE.fullmatch(amount) is not None


def share(amount: int | str, total: int) -> int:
    """A number of pods, or a share of `total`, rounded up; 0 for a text that is neither."""
    if isinstance(amount, int):
        return amount
    digits = amount.removesuffix("%")
    if digits == amount or not (digits.isascii() and digits.isdigit()):
        return 0
    return -(-total * int(digits) // 100)
