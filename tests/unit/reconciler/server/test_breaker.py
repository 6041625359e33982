"""The circuit breaker, with a simulated clock."""

import logging

import pytest

from reconciler.server.breaker import Breaker
from reconciler.server.server_errors import AlterShieldServerError, NotAllowedError, RejectedError, UnavailableError

DOWN = UnavailableError("refused", delivered=False)
REJECTED = RejectedError("no", code="101", text="no")
NOT_ALLOWED = NotAllowedError("no", state="PRE_AOP", text="no")


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def breaker(clock: Clock) -> Breaker:
    return Breaker("http://server", clock)


def fail(breaker: Breaker, error: AlterShieldServerError = DOWN) -> bool:
    """Make a call that fails. Whether it was let through."""
    with pytest.raises(AlterShieldServerError) as caught, breaker.call():
        raise error
    return caught.value is error


def open_(breaker: Breaker) -> None:
    for _ in range(5):
        assert fail(breaker)
    assert not breaker.available


def test_it_opens_after_five_failures_in_a_row(breaker: Breaker) -> None:
    for _ in range(4):
        assert fail(breaker)
    assert breaker.available
    assert fail(breaker)
    with pytest.raises(UnavailableError, match=r"http://server is not called.*: refused") as caught, breaker.call():
        raise AssertionError
    assert caught.value.delivered is False
    assert caught.value.retry_after == 10


@pytest.mark.parametrize("alive", [None, REJECTED, NOT_ALLOWED])
def test_any_answer_between_failures_keeps_it_closed(breaker: Breaker, alive: AlterShieldServerError | None) -> None:
    for _ in range(4):
        fail(breaker)
    if alive is None:
        with breaker.call():
            pass
    else:
        fail(breaker, alive)
    for _ in range(4):
        fail(breaker)
    assert breaker.available


def test_open_time_doubles_up_to_120_seconds(breaker: Breaker, clock: Clock) -> None:
    open_(breaker)
    for seconds in (10, 20, 40, 80, 120, 120):
        clock.now += seconds - 0.5
        assert not fail(breaker)
        clock.now += 0.5
        assert fail(breaker)
        assert not breaker.available


def test_after_a_success_it_opens_for_10_seconds_again(breaker: Breaker, clock: Clock) -> None:
    open_(breaker)
    clock.now += 10
    fail(breaker)
    clock.now += 20
    with breaker.call():
        pass
    assert breaker.available
    assert breaker.cause == ""
    open_(breaker)
    clock.now += 10
    assert fail(breaker)


def test_half_open_lets_one_call_through_at_a_time(breaker: Breaker, clock: Clock) -> None:
    open_(breaker)
    clock.now += 10
    with breaker.call():
        with pytest.raises(UnavailableError) as caught, breaker.call():
            raise AssertionError
        assert caught.value.retry_after == 1
        assert not breaker.available
    assert breaker.available


def test_cancelled_trial_call_lets_the_next_call_through(breaker: Breaker, clock: Clock) -> None:
    open_(breaker)
    clock.now += 10
    with pytest.raises(KeyboardInterrupt), breaker.call():
        raise KeyboardInterrupt
    assert not breaker.available
    with breaker.call():
        pass
    assert breaker.available


def test_calls_that_began_earlier_and_fail_later_do_not_extend_the_open_time(breaker: Breaker, clock: Clock) -> None:
    late = breaker.call()
    late.__enter__()
    open_(breaker)
    clock.now += 9
    late.__exit__(UnavailableError, DOWN, None)
    clock.now += 1
    assert fail(breaker)


def test_call_that_began_earlier_and_succeeds_later_closes_it(breaker: Breaker) -> None:
    with breaker.call():
        open_(breaker)
    assert breaker.available


def test_one_log_line_when_it_opens_and_one_when_it_closes(
    breaker: Breaker, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    open_(breaker)
    for _ in range(20):
        clock.now += 120
        fail(breaker)
        fail(breaker)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    clock.now += 120
    with breaker.call():
        pass
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
