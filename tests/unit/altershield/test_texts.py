"""Texts on one line and within limits of bytes."""

from hypothesis import given
from hypothesis import strategies as st

from altershield.texts import cut, one_line

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


def test_limit_counts_bytes_of_utf_8() -> None:
    assert cut("発" * 85, 256) == "発" * 85
    assert cut("発" * 86, 256) == "発" * 84 + "…"


def test_one_line_has_no_control_characters() -> None:
    assert one_line(" a\r\n\x1b[31mb\u2028c\x00 ") == "a [31mb c"
    assert size(one_line("発" * 1000)) <= 1024
