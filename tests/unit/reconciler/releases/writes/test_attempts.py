from reconciler.releases.writes.attempts import ATTEMPTS, SECONDS, Attempts


def _failures(*times: float) -> list[bool]:
    """Whether the write is given up, after each failure at these times."""
    attempts = Attempts()
    return [attempts.failed("release", now) for now in times]


def test_write_is_given_up_after_its_time_and_its_attempts() -> None:
    assert _failures(0, 1, 2, SECONDS - 0.1, SECONDS) == [False] * 4 + [True]


def test_slow_attempts_do_not_use_up_the_time_before_the_last_of_them() -> None:
    times = [100.0 + 30 * number for number in range(ATTEMPTS)]
    assert _failures(*times) == [False] * (ATTEMPTS - 1) + [True]


def test_failure_a_minute_after_the_last_one_is_the_first_again() -> None:
    assert _failures(0, 1, 2, 63, 64, 65, 69) == [False] * 6 + [True]


def test_failures_of_another_write_and_of_one_that_ended_do_not_count() -> None:
    attempts = Attempts()
    for now in range(ATTEMPTS):
        assert not attempts.failed("release", now)
    assert not attempts.failed("other", SECONDS)
    attempts.ended("release")
    assert not attempts.failed("release", SECONDS)


def test_memory_for_failures_is_limited() -> None:
    attempts = Attempts()
    for number in range(5000):
        attempts.failed(str(number), 0)
    for now in range(ATTEMPTS - 1):
        assert not attempts.failed("0", SECONDS + now)
