"""Warning headers."""

from hypothesis import given
from hypothesis import strategies as st

from kube_sandbox.apiserver.http.warning_headers import headers


def test_quotes_and_backslashes_are_escaped_in_a_header() -> None:
    assert headers(['say "no" \\ go']) == ['299 - "say \\"no\\" \\\\ go"']


def test_repeated_and_empty_warnings_are_left_out() -> None:
    assert headers(["a", "", "b", "a"]) == ['299 - "a"', '299 - "b"']


def test_warning_with_control_characters_is_left_out() -> None:
    assert headers(["two\nlines", "tab\there", "fine é"]) == ['299 - "fine é"']


def test_warnings_of_up_to_4096_characters_together_are_not_shortened() -> None:
    texts = [f"{number:02}" + "x" * 1022 for number in range(4)]
    assert headers(texts) == [f'299 - "{text}"' for text in texts]


def test_warnings_beyond_4096_characters_are_cut_to_256_and_then_dropped() -> None:
    texts = [f"{number:02}" + "x" * 400 for number in range(20)]
    assert headers(texts) == [f'299 - "{text[:256]}"' for text in texts[:16]]


@given(st.lists(st.text(max_size=600), max_size=40))
def test_headers_of_any_warnings_are_bounded_and_on_one_line(texts: list[str]) -> None:
    values = headers(texts)
    assert sum(len(value) for value in values) <= 2 * (4096 + 256) + 12 * len(values)
    assert not any("\n" in value or "\r" in value or "\0" in value for value in values)
