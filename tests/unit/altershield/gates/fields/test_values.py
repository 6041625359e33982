"""Quantities, and the values that texts may show."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from altershield.gates.fields.values import ABSENT, is_kept, kept, quantity, same, shown


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("1Gi", 2**30), ("500m", Fraction(1, 2)), ("1.5", Fraction(3, 2)), (".5", Fraction(1, 2)), ("5.", 5),
        ("-3k", -3000), ("+2", 2), ("1e3", 1000), ("1E-3", Fraction(1, 1000)), ("1E", 10**18),
        ("100n", Fraction(1, 10**7)), (7, 7), (10**29, 10**29), (0.5, Fraction(1, 2)),
        ("9" * 31 + "E", (10**31 - 1) * 10**18),
    ],
)  # fmt: skip
def test_quantities(text: object, amount: object) -> None:
    assert quantity(text) == amount


@pytest.mark.parametrize(
    "text", ["", "Gi", "1gi", "1 Gi", "1e999999999", "1e", "1e+-3", "--1", "1.2.3", "9" * 40, "١", True, None, [],
             10**40, float("inf"), "1_000", "0x10", "."]
)  # fmt: skip
def test_other_values_are_no_quantities(text: object) -> None:
    assert quantity(text) is None


@given(st.text(max_size=40))
def test_any_text_is_a_quantity_or_none(text: str) -> None:
    found = quantity(text)
    assert found is None or abs(found) < 10**60


def test_values_are_shortened_and_printable() -> None:
    fields = ("spec", "containers", "image")
    assert shown("x" * 100, fields) == "x" * 39 + "…"
    assert shown("a\nb", fields) == "'a\\nb'"
    assert shown(ABSENT, fields) == "not set"
    assert shown({"a": 1}, fields) == ""
    assert shown("x", ("spec", "containers", "workingDir")) == ""
    assert shown(5, ("spec", "containers", "env", "value")) == ""


_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-1, 3)
    | st.sampled_from([0.0, 1.0, 0.5, 1e300])
    | st.text("ab\n", max_size=80),
    lambda each: st.lists(each, max_size=2) | st.dictionaries(st.sampled_from("abc"), each, max_size=2),
    max_leaves=5,
)
_FIELDS = st.sampled_from([("spec", "a"), ("containers", "image"), ("limits", "memory"), ("env", "value")])


@given(_VALUES, _VALUES, _FIELDS)
def test_a_kept_value_is_known_again_and_no_other_is(one: object, other: object, fields: tuple[str, ...]) -> None:
    assert is_kept(kept(one, fields), one, fields)
    assert is_kept(kept(one, fields), other, fields) is same(one, other, fields)
    assert len(kept(one, fields)) <= 64
