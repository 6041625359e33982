"""Regular expressions whose search takes linear time."""

import random
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.checks.line_patterns import MAX_PATTERN, LinePattern, PatternError, TooManyStatesError

ATOMS = st.sampled_from(
    ["a", "b", ".", "[ab]", "[^a]", r"\d", r"\W", "^", "$", "[b-d]", r"[\dx]", r"\.", "(?:a|b)", "()"]
)
REPEATS = st.sampled_from(["", "*", "+", "?", "{2}", "{1,3}", "{1,}", "*?"])


@st.composite
def expressions(draw: st.DrawFn, depth: int = 2) -> str:
    parts = []
    for _ in range(draw(st.integers(1, 4))):
        atom = f"({draw(expressions(depth - 1))})" if depth and draw(st.booleans()) else draw(ATOMS)
        parts.append(atom + ("" if atom in "^$" else draw(REPEATS)))
    return "".join(parts) + (f"|{draw(expressions(depth - 1))}" if depth and draw(st.booleans()) else "")


@given(expressions(), st.text("abcd1x.\t", max_size=12), st.booleans())
def test_search_finds_what_the_module_re_finds(pattern: str, text: str, ignore_case: bool) -> None:
    if ignore_case:
        pattern, text = f"(?i){pattern}", text.upper()
    try:
        found = LinePattern(pattern)
    except PatternError as error:
        assert "too long" in str(error)  # noqa: PT017  (with the repetitions written out)
        return
    assert found.search(text) == (re.search(pattern.replace("$", r"\Z"), text, re.ASCII) is not None)


@pytest.mark.parametrize(
    ("pattern", "line", "found"),
    [
        ("panic|FATAL", "goroutine 1: panic: nil map", True),
        ("panic|FATAL", "fatal", False),
        ("(?i)panic|fatal", "FATAL", True),
        (r"^E\d{4} .*timeout$", "E0312 dial: timeout", True),
        (r"^E\d{4} .*timeout$", "E0312 dial: timeout ", False),
        (r"level=(error|fatal)\b".replace(r"\b", r"\W"), "level=error msg=x", True),
        ("[]a]+-[-x]", "]a--", True),
        ("", "anything", True),
        ("^$", "", True),
        ("^$", "x", False),
        ("x^", "x", False),
        ("ü{2}", "über ü", False),
    ],
)
def test_examples(pattern: str, line: str, found: bool) -> None:
    assert LinePattern(pattern).search(line) == found


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("(a", "a ( has no )"),
        ("a)", "a ) has no ("),
        ("[a", "ends too early"),
        ("a\\", "ends too early"),
        ("*a", "repeats nothing"),
        ("a**", "a repetition is repeated"),
        ("^*", "cannot be repeated"),
        ("a{x}", "begins no repetition"),
        ("a{3,2}", "begins no repetition"),
        ("a{101}", "more than 100 times"),
        ("(?=a)", "lookarounds"),
        ("(?P<n>a)", "named groups"),
        (r"(a)\1", r"\1 is not supported"),
        (r"\bpanic", r"\b is not supported"),
        ("[z-a]", "a range"),
        (r"[\D]", "is not supported"),
        ("(a{90}){90}", "too long with its repetitions"),
        ("(" * 40 + ")" * 40, "groups in each other"),
        ("a" * (MAX_PATTERN + 1), "more than 256 characters"),
    ],
)
def test_what_is_not_supported_is_said(pattern: str, text: str) -> None:
    with pytest.raises(PatternError, match=re.escape(text)):
        LinePattern(pattern)


def test_expression_that_takes_exponential_time_elsewhere_is_quick() -> None:
    pattern = LinePattern("(a*)*(a|aa)+b")
    began = time.process_time()
    assert not pattern.search("a" * 100_000)
    assert time.process_time() - began < 2


def test_expression_with_more_states_than_may_be_is_given_up() -> None:
    pattern = LinePattern("(a|b)*a(a|b){40}c")
    with pytest.raises(TooManyStatesError):
        pattern.search("".join(random.Random(1).choices("ab", k=100_000)))  # noqa: S311
