"""Each signature counts once, as long as it is valid, and the memory for them is bounded."""

import pytest

from reconciler.endpoints.endpoint_errors import EndpointError
from reconciler.endpoints.replays import Replays
from reconciler.endpoints.signatures import SKEW


class Timer:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_signature_is_refused_until_its_timestamp_is_too_old() -> None:
    timer = Timer()
    replays = Replays(2 * SKEW, timer=timer)
    replays.use("a")
    timer.now = 2 * SKEW - 1  # a timestamp that was ahead of our clock is valid for so long
    with pytest.raises(EndpointError, match="received before") as caught:
        replays.use("a")
    assert caught.value.code == 409
    timer.now = 2 * SKEW
    replays.use("a")


def test_signature_that_was_given_back_may_be_used_once_more() -> None:
    replays = Replays(10, timer=Timer())
    replays.use("a")
    replays.give_back("a")
    replays.give_back("unknown")
    replays.use("a")
    with pytest.raises(EndpointError):
        replays.use("a")


def test_full_memory_refuses_new_signatures_and_forgets_none() -> None:
    timer = Timer()
    replays = Replays(10, most=2, timer=timer)
    replays.use("a")
    timer.now = 1
    replays.use("b")
    with pytest.raises(EndpointError, match="too many") as caught:
        replays.use("c")
    assert caught.value.code == 503
    with pytest.raises(EndpointError, match="received before"):
        replays.use("a")
    timer.now = 10
    replays.use("c")


def test_signature_that_was_given_back_may_be_used_while_the_memory_is_full() -> None:
    replays = Replays(10, most=1, timer=Timer())
    replays.use("a")
    replays.give_back("a")
    replays.use("a")


def test_forgotten_signature_may_come_again_and_takes_no_memory() -> None:
    replays = Replays(10, most=1)
    replays.use("a")
    replays.forget("a")
    replays.forget("never used")
    replays.use("b")
    with pytest.raises(EndpointError) as caught:
        replays.use("b")
    assert caught.value.code == 409
