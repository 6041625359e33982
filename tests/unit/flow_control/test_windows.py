"""Sliding windows: which deletions count, and for how long."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from altershield.api import durations
from altershield.api.flow_control import Window
from altershield.flow_control.rules import Rule, rules_of, useless
from altershield.flow_control.windows import CLOCK_ERROR, Tally, bucket_seconds, tallies
from tests.unit.flow_control.builders import NOW, policy


def rule(interval: str, limit: int = 10) -> Rule:
    return Rule(durations.seconds(interval), interval, limit)


def tally(interval: str, window: Window | None, now: int, limit: int = 10) -> Tally:
    return tallies((rule(interval, limit),), (window,) if window is not None else (), now)[0]


@pytest.mark.parametrize(("text", "wanted"), [("90s", 90), ("10m", 600), ("1h30m", 5400), ("168h", 604_800)])
def test_durations_are_read_in_hours_minutes_and_seconds(text: str, wanted: int) -> None:
    assert durations.seconds(text) == wanted


@pytest.mark.parametrize("text", ["", "0s", "10", "m", "1m1h", "1.5h", "-1s", "1d", "١s", "1h\n"])
def test_other_texts_are_no_durations(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        durations.seconds(text)


@settings(max_examples=150, deadline=None)
@given(
    interval=st.sampled_from(["1s", "10s", "61s", "10m", "1h30m"]),
    gaps=st.lists(st.integers(0, 400), min_size=1, max_size=12),
    errors=st.lists(st.sampled_from([0, CLOCK_ERROR]), min_size=12, max_size=12),
)
def test_window_counts_each_deletion_for_its_interval_and_little_longer(
    interval: str, gaps: list[int], errors: list[int]
) -> None:
    seconds, window, now, counted = durations.seconds(interval), None, NOW, []
    for gap, error in zip(gaps, errors, strict=False):
        now += gap * seconds // 120
        found = tally(interval, window, now + error)  # the clock of this writer is ahead
        latest = [time for time in counted if time > now - seconds]
        possible = [time for time in counted if time > now - seconds - bucket_seconds(seconds) - 2 * CLOCK_ERROR]
        assert len(latest) <= found.used <= len(possible)
        found.add()
        counted.append(now)
        window = found.window()
        assert len(window.buckets) <= 64
        assert window.used == found.used == sum(window.buckets.values())


def test_deletion_is_taken_back_from_the_bucket_of_its_time() -> None:
    first = tally("10m", None, NOW)
    first.add()
    second = tally("10m", first.window(), NOW + 100)
    second.add()
    second.take_back(NOW)
    assert second.used == 1
    second.take_back(NOW)  # the bucket is empty
    assert second.used == 1
    assert tally("10m", second.window(), NOW + 650).used == 1
    assert tally("10m", second.window(), NOW + 720).used == 0


def test_window_of_a_new_interval_takes_over_the_deletions_that_are_known() -> None:
    known = tally("10m", None, NOW)
    known.add()
    windows = (known.window(),)
    (longer,) = tallies((rule("1h"),), windows, NOW + 300)
    assert longer.used == 1
    longer.take_back(NOW)  # it was counted before this window began
    assert longer.used == 1
    assert tally("1h", longer.window(), NOW + 3700).used == 0
    (shorter,) = tallies((rule("1m"),), windows, NOW + 300)
    assert shorter.used == 0


def test_changed_limit_and_another_spelling_keep_the_window() -> None:
    known = tally("60m", None, NOW)
    known.add()
    (found,) = tallies((rule("1h", limit=1),), (known.window(),), NOW + 1)
    assert (found.used, found.full, found.window().interval) == (1, True, "1h")


def test_deletions_with_times_in_the_future_count_as_deletions_of_now() -> None:
    ahead = tally("1m", None, NOW + 5000)
    ahead.add()
    found = tally("1m", ahead.window(), NOW)
    assert found.used == 1
    found.take_back(NOW)
    assert found.used == 0
    found = tally("1m", ahead.window(), NOW)
    assert tally("1m", found.window(), NOW + 70).used == 0


def test_next_free_time_is_when_enough_buckets_have_left_the_window() -> None:
    found = tally("1m", None, NOW, limit=2)
    assert found.free_at() == NOW
    found.add()
    found.add()
    free = found.free_at()
    assert free == NOW + 1 + 60 + CLOCK_ERROR
    assert tally("1m", found.window(), free - 1, limit=2).full
    assert not tally("1m", found.window(), free, limit=2).full
    assert tally("1m", None, NOW, limit=0).free_at() is None


def test_unreadable_status_and_spec_are_left_out() -> None:
    broken = Window(interval="soon", buckets={"x": 1}, bucket_seconds=1)
    assert tally("1m", broken, NOW).used == 0
    other_size = Window(interval="1m", buckets={str(NOW): 3}, bucket_seconds=7)
    assert tally("1m", other_size, NOW).used == 0
    assert tally("1m", Window(interval="1m", buckets={"x": 1, str(NOW): 2}, since="now"), NOW).used == 2
    assert [str(each) for each in rules_of(policy("soon/1", "1m/2", "60s/3").spec)] == ["1m/2"]


def test_rule_is_useless_if_a_longer_interval_has_no_higher_limit() -> None:
    assert useless(rules_of(policy("1m/10", "1h/50").spec)) is None
    assert useless(rules_of(policy("1h/50", "1m/50").spec)) == (rule("1m", 50), rule("1h", 50))
