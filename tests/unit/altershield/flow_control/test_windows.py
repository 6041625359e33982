"""Sliding windows: which deletions count, and for how long."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from altershield.api import durations
from altershield.api.flow_control import Window
from altershield.flow_control.rules import Rule, rules_of, useless
from altershield.flow_control.windows import CLOCK_ERROR, Tally, bucket_seconds, tallies
from kube_base.times import rfc3339
from tests.unit.altershield.flow_control.builders import NOW, policy


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


@pytest.mark.parametrize(("interval", "seconds"), [(1, 1), (60, 1), (61, 2), (600, 10), (601, 11)])
def test_bucket_is_a_sixtieth_of_the_interval_rounded_up(interval: int, seconds: int) -> None:
    assert bucket_seconds(interval) == seconds


def test_window_begins_now_at_the_latest() -> None:
    assert tally("1m", Window("1m", 10, bucket_seconds=1, since=rfc3339(NOW + 50)), NOW).since == NOW


def test_deletion_of_a_longer_bucket_counts_as_late_as_it_may_have_been() -> None:
    hour = tally("1h", None, NOW + 3)
    hour.add()
    (found,) = tallies((rule("10m"),), (hour.window(),), NOW + 59)
    assert found.window().buckets == {str(NOW + 50): 1}


def test_deletions_after_a_time_are_those_of_later_buckets() -> None:
    found = tally("1m", None, NOW)
    found.add()
    assert [found.counted_since(NOW + after) for after in (-1, 0, 1)] == [1, 0, 0]


def test_deletion_of_the_second_in_which_the_window_began_can_be_taken_back() -> None:
    (found,) = tallies((rule("1h"),), (tally("10m", None, NOW).window(),), NOW + 300)
    found.add()
    found.take_back(NOW + 300)
    assert (found.used, found.window().buckets) == (0, {})


def test_deletion_that_a_clock_slightly_ahead_counted_keeps_its_time() -> None:
    for ahead, kept in ((CLOCK_ERROR, CLOCK_ERROR), (CLOCK_ERROR + 1, 0)):
        stored = tally("1m", None, NOW + ahead)
        stored.add()
        assert tally("1m", stored.window(), NOW).window().buckets == {str(NOW + kept): 1}


def test_counts_below_zero_do_not_count() -> None:
    stored = Window("1m", 10, bucket_seconds=1, buckets={str(NOW): -3, str(NOW - 1): 2})
    assert tally("1m", stored, NOW).used == 2


def test_new_interval_takes_over_the_shortest_window_that_is_long_enough_else_the_longest_one() -> None:
    known = []
    for interval, count in (("10m", 1), ("1h", 2), ("30m", 3)):
        each = tally(interval, None, NOW)
        for _ in range(count):
            each.add()
        known.append(each.window())
    for interval, used in (("5m", 1), ("20m", 3), ("2h", 2)):
        assert tallies((rule(interval),), known, NOW)[0].used == used


def test_used_share_is_rounded_down_to_whole_percents() -> None:
    each = tally("1m", None, NOW, limit=200)
    for _ in range(199):
        each.add()
    assert each.percent() == 99


def test_limit_of_zero_is_used_wholly() -> None:
    assert tally("1m", None, NOW, limit=0).percent() == 100
