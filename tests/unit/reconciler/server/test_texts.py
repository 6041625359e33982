"""Texts within limits of bytes."""

from hypothesis import given
from hypothesis import strategies as st

from reconciler.server import texts
from reconciler.server.texts import cut, one_line, order_id, shortened

ANY = st.text(st.characters(), max_size=300)  # lone surrogates, too
LIMITS = st.integers(34, 300)


def size(text: str) -> int:
    return len(text.encode())


@given(ANY, LIMITS)
def test_cut_text_is_within_the_limit_and_begins_as_the_text(text: str, limit: int) -> None:
    found = cut(text, limit)
    clean = text.encode(errors="replace").decode()
    assert size(found) <= limit
    assert found == clean or (found.endswith("…") and clean.startswith(found[:-1]))
    assert (found == clean) == (size(clean) <= limit)


@given(ANY, LIMITS)
def test_cut_loses_at_most_one_character_more_than_needed(text: str, limit: int) -> None:
    found = cut(text, limit)
    assert not found.endswith("…") or "…" in text or size(found) > limit - 4


@given(ANY, LIMITS)
def test_shortened_text_is_within_the_limit_and_is_not_shortened_again(text: str, limit: int) -> None:
    found = shortened(text, limit)
    assert size(found) <= limit
    assert shortened(found, limit) == found


@given(st.text(min_size=1, max_size=8), st.text(max_size=8), st.text(max_size=8))
def test_long_ids_that_differ_only_at_the_end_stay_different(start: str, one: str, other: str) -> None:
    assert (order_id(start * 300 + one) == order_id(start * 300 + other)) == (one == other)


def test_limits_count_bytes_of_utf_8() -> None:
    assert cut("発" * 85, texts.TITLE) == "発" * 85
    assert cut("発" * 86, texts.TITLE) == "発" * 84 + "…"
    assert order_id("é" * 64) == "é" * 64
    assert order_id("é" * 65).startswith("é" * 47 + "-")
    assert size(order_id("é" * 65)) == 127
    assert size(shortened("system:serviceaccount:" + "ü" * 40, texts.CREATOR, digits=16)) <= 56


def test_one_line_has_no_control_characters() -> None:
    assert one_line(" a\r\n\x1b[31mb\u2028c\x00 ") == "a [31mb c"
    assert size(one_line("発" * 1000)) <= 1024
