"""The API server's clock counts, in steps of a whole second."""

import email.utils

import pytest
from hypothesis import given
from hypothesis import strategies as st

from altershield.kube.server_clock import ServerClock

NOW = 1_700_000_000.0


def answered(clock: ServerClock, server: float, elapsed: float = 0.0) -> None:
    clock.update(email.utils.formatdate(int(server), usegmt=True), elapsed)


@pytest.mark.parametrize("ahead", [-400, -130, -3, 3, 130, 400])
def test_a_clock_that_differs_is_corrected(ahead: int) -> None:
    clock = ServerClock(lambda: NOW + ahead)
    answered(clock, NOW)
    assert clock() == pytest.approx(NOW, abs=1.01)


def test_a_clock_that_may_agree_is_left_alone() -> None:
    clock = ServerClock(lambda: NOW + 0.7)
    answered(clock, NOW)
    assert clock.offset == 0


def test_what_is_no_date_changes_nothing() -> None:
    clock = ServerClock(lambda: NOW)
    clock.update("", 0)
    clock.update("yesterday", 0)
    assert clock() == NOW


def test_a_slow_answer_says_less() -> None:
    clock = ServerClock(lambda: NOW + 20)
    answered(clock, NOW, elapsed=20)
    assert clock.offset == 0


@given(st.floats(-1e4, 1e4), st.lists(st.floats(-0.9, 0.9), min_size=1, max_size=20))
def test_servers_that_differ_a_little_do_not_make_it_jump(ahead: float, jitter: list[float]) -> None:
    clock = ServerClock(lambda: NOW + ahead)
    answered(clock, NOW)
    first = clock()
    for each in jitter:
        answered(clock, NOW + each)
    assert abs(clock() - first) <= 2.01, "whole seconds, and a tolerance of one"
