"""Amounts that are a number or a percentage, such as `maxUnavailable: 25%`: an IntOrString of Kubernetes."""

import re

_PERCENTAGE = re.compile("0*([0-9]{1,19})%")
_MOST = 2**63 - 1  # Go reads the number into 64 bits


def percentage(text: str) -> int | None:
    """The number of a percentage, 25 for `25%`. None for a text that Kubernetes does not accept as a percentage.

    The API server accepts ASCII digits and a percent sign (IsValidPercent), and controllers accept at most 64 bits
    (intstr.GetScaledValueFromIntOrPercent).
    """
    found = _PERCENTAGE.fullmatch(text)
    number = int(found[1]) if found is not None else None
    return number if number is not None and number <= _MOST else None


def scaled(amount: int | str, total: int, *, round_up: bool) -> int | None:
    """A number as it is, or that percentage of `total`, as intstr.GetScaledValueFromIntOrPercent. None for a text that
    is no percentage: also for a number as a text."""
    if isinstance(amount, int):
        return amount
    percent = percentage(amount)
    if percent is None:
        return None
    return -(-total * percent // 100) if round_up else total * percent // 100
