"""When refused writes are tried again."""

from reconciler.releases.writes.retries import FIRST, LAST, Retries


def test_retries_become_rarer_until_the_write_is_carried_out() -> None:
    retries = Retries[str]()
    now, delays = 0.0, []
    for _ in range(9):
        delays.append(retries.refused("a", now))
        now += delays[-1]
    assert (delays[:3], delays[-1]) == ([FIRST, 2 * FIRST, 4 * FIRST], LAST)
    retries.forget("a")
    assert retries.refused("a", now) == FIRST


def test_events_in_between_delay_no_retry() -> None:
    retries = Retries[str]()
    assert [retries.refused("a", now) for now in (0.0, 1.0, 1.5, 4.0)] == [5.0, 4.0, 3.5, 1.0]
    assert retries.refused("a", 5.0) == 10.0
    assert retries.refused("b", 5.0) == FIRST


def test_clock_that_is_set_back_delays_no_retry_for_long() -> None:
    retries = Retries[str]()
    retries.refused("a", 10_000.0)
    assert retries.refused("a", 0.0) <= LAST
