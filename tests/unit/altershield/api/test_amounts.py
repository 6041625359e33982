"""Percentages, as Kubernetes reads and rounds them."""

import math
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from altershield.api.amounts import percentage, scaled


def go(amount: int | str, total: int, *, round_up: bool) -> int | None:
    """What the API server's IsValidPercent and intstr.GetScaledValueFromIntOrPercent do, in their words."""
    if isinstance(amount, int):
        return amount
    if not re.match(r"^[0-9]+%\Z", amount) or int(amount[:-1]) > 2**63 - 1:
        return None
    value = float(int(amount[:-1])) * float(total) / 100
    return math.ceil(value) if round_up else math.floor(value)


amounts = st.integers() | st.text(max_size=6) | st.from_regex("[+-]?[0-9]{0,5}%{0,2}", fullmatch=True)


@given(amount=amounts, total=st.integers(0, 10**6), round_up=st.booleans())
@example(amount="007%", total=100, round_up=True)
@example(amount="1%", total=1, round_up=False)
def test_amounts_are_scaled_as_in_kubernetes(amount: int | str, total: int, round_up: bool) -> None:
    assert scaled(amount, total, round_up=round_up) == go(amount, total, round_up=round_up)


@given(st.integers(0, 1000), st.integers(0, 10**6))
def test_both_roundings_differ_by_one_at_most_and_lie_around_the_exact_share(percent: int, total: int) -> None:
    up, down = (scaled(f"{percent}%", total, round_up=way) for way in (True, False))
    assert up is not None
    assert down is not None
    assert 100 * down <= percent * total <= 100 * up
    assert up - down == (percent * total % 100 > 0)


@pytest.mark.parametrize("text", ["", "%", "5", "-5%", "+5%", "5%%", " 5%", "5 %", "5.5%", "٣%", "1e3%", "5%\n"])
def test_text_that_is_no_percentage_is_refused(text: str) -> None:
    assert percentage(text) is None
    assert scaled(text, 10, round_up=True) is None


@pytest.mark.parametrize(
    ("text", "number"),
    [("0%", 0), ("0" * 5000 + "25%", 25), (f"{2**63 - 1}%", 2**63 - 1), (f"{2**63}%", None), ("9" * 5000 + "%", None)],
)
def test_percentage_has_at_most_64_bits(text: str, number: int | None) -> None:
    assert percentage(text) == number
