"""When refused writes are tried again."""

from reconciler.releases.writes.retries import FIRST, LAST, next_retry


def test_retries_become_rarer() -> None:
    retry = next_retry(None, 0.0)
    delays = [retry.due]
    for _ in range(8):
        due = retry.due
        retry = next_retry(retry, due)
        delays.append(retry.due - due)
    assert (delays[:3], delays[-1]) == ([FIRST, 2 * FIRST, 4 * FIRST], LAST)


def test_events_in_between_delay_no_retry() -> None:
    first = next_retry(None, 0.0)
    assert [next_retry(first, now) for now in (1.0, 1.5, 4.9)] == [first] * 3
    assert next_retry(first, 5.0).due == 15.0


def test_clock_that_is_set_back_delays_no_retry_for_long() -> None:
    assert next_retry(next_retry(None, 10_000.0), 0.0).due <= LAST
