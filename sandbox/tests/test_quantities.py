"""Quantities, compared with answers of kube-apiserver 1.36."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube_sandbox import quantities

_CANONICAL = {
    "0.5": "500m", "1024Mi": "1Gi", "1500m": "1500m", "1.5Gi": "1536Mi", "1000": "1k", "1e3": "1e3", "0.1m": "1m",
    "1025Ki": "1025Ki", "1023Ki": "1023Ki", ".5": "500m", "1.": "1", "-1.5": "-1500m", "0.0000000001": "1m",
    "1E": "1E", "2Ei": "2Ei", "12e6": "12e6", "0Ki": "0", "100.5Ki": "102912", "15e1": "150", "0.5Ki": "512",
    "1.23456789123Gi": "1325607179382m", "+1": "1", " 1": "1", "3.3Ki": "3379200m",
}  # fmt: skip


@pytest.mark.parametrize("text", _CANONICAL)
def test_quantity_is_written_in_canonical_form(text: str) -> None:
    assert quantities.canonical(text) == _CANONICAL[text]


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", 1), ("500m", 0.5), ("1.5", 1.5), ("2Ki", 2048), ("1e3", 1000), ("1M", 10**6)],
)
def test_quantity_is_parsed_to_its_value(text: str, value: float) -> None:
    assert quantities.parse(text) == value


@pytest.mark.parametrize("text", ["", "abc", "1_0", "1KiB", "1e", "--1", "1" * 100, "0x1", "1e999999"])
def test_invalid_quantity_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="quantities must match"):
        quantities.canonical(text)


@given(st.integers(-10_000, 10_000_000), st.sampled_from(["", "m", "k", "M", "G", "Ki", "Mi", "Gi", "e3"]))
def test_canonical_form_keeps_the_value_and_is_stable(number: int, suffix: str) -> None:
    text = f"{number}{suffix}"
    canonical = quantities.canonical(text)
    assert quantities.parse(canonical) == quantities.parse(text)
    assert quantities.canonical(canonical) == canonical
