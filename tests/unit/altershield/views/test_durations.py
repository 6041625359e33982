"""Durations in the formats of kubectl."""

import pytest

from altershield.views.durations import age, seconds
from kube_base.errors import UsageError


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0", 0), ("90", 90), ("90s", 90), ("5m", 300), ("1h30m", 5400), ("1.5m", 90), ("500ms", 0.5)],
)
def test_seconds_reads_durations_and_numbers(text: str, expected: float) -> None:
    assert seconds(text, "--timeout") == expected


@pytest.mark.parametrize("text", ["", "soon", "5 m", "-1s", "5d", "1e3"])
def test_seconds_refuses_other_texts(text: str) -> None:
    with pytest.raises(UsageError, match=r'--timeout ".*" is not a duration'):
        seconds(text, "--timeout")


@pytest.mark.parametrize(
    ("total", "expected"),
    [
        (-5, "0s"),
        (0.9, "0s"),
        (119, "119s"),
        (120, "2m"),
        (192, "3m12s"),
        (600, "10m"),
        (3 * 3600 - 1, "179m"),
        (5 * 3600 + 600, "5h10m"),
        (8 * 3600, "8h"),
        (50 * 3600, "2d2h"),
        (9 * 86_400, "9d"),
        (3 * 365 * 86_400, "3y"),
    ],
)
def test_age_has_the_largest_units_as_in_kubectl(total: float, expected: str) -> None:
    assert age(total) == expected
