"""Ids and names within the limits of the open API."""

from hypothesis import given
from hypothesis import strategies as st

from reconciler.server import texts
from reconciler.server.texts import order_id, shortened

ANY = st.text(st.characters(), max_size=300)  # lone surrogates, too
LIMITS = st.integers(34, 300)


def size(text: str) -> int:
    return len(text.encode())


@given(ANY, LIMITS)
def test_shortened_text_is_within_the_limit_and_is_not_shortened_again(text: str, limit: int) -> None:
    found = shortened(text, limit)
    assert size(found) <= limit
    assert shortened(found, limit) == found


@given(st.text(min_size=1, max_size=8), st.text(max_size=8), st.text(max_size=8))
def test_long_ids_that_differ_only_at_the_end_stay_different(start: str, one: str, other: str) -> None:
    assert (order_id(start * 300 + one) == order_id(start * 300 + other)) == (one == other)


def test_limits_count_bytes_of_utf_8() -> None:
    assert order_id("é" * 64) == "é" * 64
    assert order_id("é" * 65).startswith("é" * 47 + "-")
    assert size(order_id("é" * 65)) == 127
    assert size(shortened("system:serviceaccount:" + "ü" * 40, texts.CREATOR, digits=16)) <= 56
