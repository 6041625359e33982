"""The clock that follows the API server's header Date, which has whole seconds."""

import email.utils
import runpy
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube_base.access import server_clock
from kube_base.access.server_clock import ServerClock, SlewedClock

NOW = 1_700_000_000.0


def answered(clock: ServerClock, server: float, elapsed: float = 0.0) -> None:
    clock.update(email.utils.formatdate(int(server), usegmt=True), elapsed)


@pytest.mark.parametrize("ahead", [-400, -130, -3, 3, 130, 400])
def test_clock_that_differs_is_corrected(ahead: int) -> None:
    clock = ServerClock(lambda: NOW + ahead)
    answered(clock, NOW)
    assert clock() == pytest.approx(NOW, abs=1.01)


def test_clock_that_can_agree_with_the_header_is_not_corrected() -> None:
    clock = ServerClock(lambda: NOW + 0.7)
    answered(clock, NOW)
    assert clock.offset == 0


def test_invalid_date_is_ignored() -> None:
    clock = ServerClock(lambda: NOW)
    clock.update("", 0)
    clock.update("yesterday", 0)
    assert clock() == NOW


def test_slow_response_allows_a_larger_difference() -> None:
    clock = ServerClock(lambda: NOW + 20)
    answered(clock, NOW, elapsed=20)
    assert clock.offset == 0


@given(st.floats(-1e4, 1e4), st.lists(st.floats(-0.9, 0.9), min_size=1, max_size=20))
def test_small_differences_between_servers_do_not_change_the_clock(ahead: float, jitter: list[float]) -> None:
    clock = ServerClock(lambda: NOW + ahead)
    answered(clock, NOW)
    first = clock()
    for each in jitter:
        answered(clock, NOW + each)
    assert abs(clock() - first) <= 2.01, "the header has whole seconds, and the tolerance is one second"


@pytest.mark.parametrize("step", [-3600.0, 200.0])
def test_clock_does_not_follow_a_step_of_the_clock_of_the_machine(step: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the next response, each pod that is not up would be overdue, and each ready one up."""
    present, steps = time.time, [0.0]
    monkeypatch.setattr(time, "time", lambda: present() + sum(steps))
    clock = runpy.run_path(server_clock.__file__)["ServerClock"]()
    answered(clock, present())
    before = clock()
    steps.append(step)
    assert 0 <= clock() - before < 5


def test_slewed_clock_takes_ten_times_as_long_for_a_step_forward_and_follows_a_step_back_at_once() -> None:
    local, offset = NOW, 0.0
    clock = SlewedClock(lambda: local + offset, lambda: local)
    assert clock() == NOW
    offset = 200.0
    assert clock() == NOW, "no pod gets older"
    local += 100
    assert clock() == pytest.approx(NOW + 110)
    local += 1900
    assert clock() == pytest.approx(NOW + 2200)
    local += 10
    assert clock() == pytest.approx(NOW + 2210)
    offset = -50.0
    assert clock() == pytest.approx(NOW + 1960)


@given(st.lists(st.tuples(st.floats(0, 1e3), st.floats(-1e4, 1e4)), max_size=20))
def test_slewed_clock_is_never_ahead_and_never_steps_forward(moments: list[tuple[float, float]]) -> None:
    local, offset = NOW, 0.0
    clock = SlewedClock(lambda: local + offset, lambda: local)
    before = clock()
    for elapsed, offset in moments:
        local += elapsed
        now = clock()
        assert now <= local + offset
        assert now - before <= 1.1 * elapsed + 1e-3
        before = now
