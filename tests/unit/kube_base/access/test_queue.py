"""The work queue: duplicates, lanes, delays, backoff and figures."""

import asyncio
from collections.abc import Callable
from typing import Literal

import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from hypothesis.strategies import DataObject, data, lists, sampled_from

from kube_base.access.queue import LIVE_IN_A_ROW, WorkQueue, as_backlog

pytestmark = pytest.mark.looptime

Lane = Literal["live", "backlog"]


@pytest.fixture
async def queue() -> WorkQueue[str]:
    return WorkQueue()


async def has_nothing(queue: WorkQueue[str]) -> bool:
    """Whether a worker gets no key within a minute."""
    try:
        await asyncio.wait_for(queue.get(), 60)
    except TimeoutError:
        return True
    return False


async def taken_at(queue: WorkQueue[str]) -> tuple[str, float]:
    began = asyncio.get_running_loop().time()
    key = await queue.get()
    return key, pytest.approx(asyncio.get_running_loop().time() - began, abs=1e-4)


async def test_key_added_several_times_is_handed_out_once(queue: WorkQueue[str]) -> None:
    for _ in range(3):
        queue.add("a")
    queue.add("b")
    assert queue.depth == 2
    assert [await queue.get(), await queue.get()] == ["a", "b"]
    assert queue.depth == 0


async def test_key_added_while_it_is_worked_on_is_handed_out_again_after_done(queue: WorkQueue[str]) -> None:
    queue.add("a")
    await queue.get()
    queue.add("a")
    queue.add("a")
    assert await has_nothing(queue)
    queue.done("a")
    assert await queue.get() == "a"
    queue.done("a")
    assert await has_nothing(queue)


async def test_earliest_of_several_delays_counts(queue: WorkQueue[str]) -> None:
    queue.add_after("a", 30)
    queue.add_after("a", 10)
    queue.add_after("a", 20)
    assert await taken_at(queue) == ("a", 10)
    queue.done("a")
    assert await has_nothing(queue)


async def test_delay_of_zero_or_less_adds_at_once(queue: WorkQueue[str]) -> None:
    queue.add_after("a", 0)
    queue.add_after("b", -1)
    assert queue.depth == 2


async def test_add_does_not_cancel_a_delayed_add(queue: WorkQueue[str]) -> None:
    queue.add_after("a", 10)
    queue.add("a")
    assert await taken_at(queue) == ("a", 0)
    queue.done("a")
    assert await taken_at(queue) == ("a", 10)


async def test_delay_of_failures_doubles_up_to_a_minute_until_forget(queue: WorkQueue[str]) -> None:
    delays = []
    for _ in range(40):
        queue.add_rate_limited("a")
        began = asyncio.get_running_loop().time()
        queue.done(await queue.get())
        delays.append(asyncio.get_running_loop().time() - began)
    assert delays[:4] == pytest.approx([0.005, 0.01, 0.02, 0.04], abs=1e-4)
    assert delays[-1] == pytest.approx(60)
    queue.forget("a")
    queue.add_rate_limited("a")
    assert await taken_at(queue) == ("a", 0.005)


async def throttled_for(queue: WorkQueue[str], key: str, retry_after: float | None) -> float:
    queue.add_throttled(key, retry_after)
    began = asyncio.get_running_loop().time()
    queue.done(await queue.get())
    return asyncio.get_running_loop().time() - began


async def test_delay_of_throttled_keys_doubles_until_forget(queue: WorkQueue[str]) -> None:
    delays = [await throttled_for(queue, "a", None) for _ in range(12)]
    for failures, delay in enumerate(delays):
        most = min(2.0**failures, 60)
        assert most / 2 <= delay <= most + 1e-6
    queue.forget("a")
    assert await throttled_for(queue, "a", None) <= 1 + 1e-6


async def test_conflicts_do_not_prolong_the_delay_of_a_throttled_key(queue: WorkQueue[str]) -> None:
    for _ in range(10):
        queue.add_rate_limited("a")
        queue.done(await queue.get())
    assert await throttled_for(queue, "a", None) <= 1 + 1e-6


@pytest.mark.parametrize("retry_after", [0.0, 1.0, 7.0, 300.0])
async def test_throttled_key_is_not_handed_out_before_retry_after(queue: WorkQueue[str], retry_after: float) -> None:
    queue.add_after("a", retry_after / 2)
    for failures in range(8):
        delay = await throttled_for(queue, "a", retry_after)
        assert retry_after <= delay <= retry_after + max(retry_after / 4, min(2.0**failures, 60)) + 1e-6


async def test_keys_throttled_at_the_same_time_get_different_delays() -> None:
    queue: WorkQueue[int] = WorkQueue()
    for key in range(2_000):
        queue.add_throttled(key, 20)
    busiest = before = 0
    for _ in range(300):
        await asyncio.sleep(0.1)
        busiest, before = max(busiest, queue.depth - before), queue.depth
    assert queue.depth == 2_000
    assert busiest < 2_000 / 25


async def test_depth_oldest_and_waited_tell_how_long_keys_wait(queue: WorkQueue[str]) -> None:
    assert queue.oldest == 0
    queue.add("a")
    await asyncio.sleep(3)
    queue.add("b")
    await asyncio.sleep(1)
    assert queue.oldest == pytest.approx(4)
    await queue.get()
    assert queue.oldest == pytest.approx(1)
    assert (queue.taken, queue.waited) == (1, pytest.approx(4))


async def test_cancelled_get_takes_no_key(queue: WorkQueue[str]) -> None:
    waiter = asyncio.create_task(queue.get())
    await asyncio.sleep(1)
    queue.add("a")
    waiter.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiter
    assert await asyncio.wait_for(queue.get(), 1) == "a"


async def drained(queue: WorkQueue[str]) -> list[str]:
    """The ready keys, in the order in which one worker gets them."""
    found = []
    while queue.depth:
        found.append(await queue.get())
        queue.done(found[-1])
    return found


def add_backlog(queue: WorkQueue[str], *keys: str) -> None:
    with as_backlog():
        for key in keys:
            queue.add(key)


async def test_live_keys_come_before_the_backlog_which_has_one_turn_in_five(queue: WorkQueue[str]) -> None:
    add_backlog(queue, "A", "B", "C")
    for key in "abcdefghi":
        queue.add(key)
    assert "".join(await drained(queue)) == "abcdAefghBiC"


async def test_key_that_waits_in_both_lanes_is_handed_out_once_at_the_earlier_of_both_turns(
    queue: WorkQueue[str],
) -> None:
    add_backlog(queue, "A", "B", "C")
    for key in "abcdefgACh":
        queue.add(key)
    assert queue.depth == 11
    add_backlog(queue, "h")
    assert "".join(await drained(queue)) == "abcdAefgCBh"


async def test_all_keys_that_wait_can_become_the_backlog_with_the_last_changes_first(queue: WorkQueue[str]) -> None:
    queue.add("w")
    await queue.get()
    queue.add("a")
    add_backlog(queue, "x", "y", "z")
    for key in "bcybaw":
        queue.add(key)
    add_backlog(queue, "c")
    queue.to_backlog()
    queue.add("d")
    queue.done("w")
    assert "".join(await drained(queue)) == "dabycxzw"


async def test_live_key_that_is_added_while_it_is_worked_on_is_live_afterwards(queue: WorkQueue[str]) -> None:
    add_backlog(queue, "a", "b")
    assert await queue.get() == "a"
    queue.add("a")
    add_backlog(queue, "a")
    queue.done("a")
    assert await drained(queue) == ["a", "b"]


async def test_delayed_key_goes_to_the_lane_for_which_it_was_added(queue: WorkQueue[str]) -> None:
    with as_backlog():
        for key in "abc":
            queue.add_after(key, 10)
    queue.add_after("b", 20)
    queue.add_after("d", 10)
    with as_backlog():
        queue.add_after("d", 20)
    await asyncio.sleep(30)
    assert await drained(queue) == ["b", "d", "a", "c"]


@pytest.mark.parametrize("throttled", [False, True])
async def test_failed_key_goes_back_to_its_lane(queue: WorkQueue[str], throttled: bool) -> None:
    add_backlog(queue, "a")
    queue.add("b")
    for _ in range(2):
        key = await queue.get()
        if throttled:
            queue.add_throttled(key, None)
        else:
            queue.add_rate_limited(key)
        queue.done(key)
    add_backlog(queue, "c")
    await asyncio.sleep(10)
    assert await drained(queue) == ["b", "c", "a"]


async def test_slow_retry_comes_after_a_minute_in_the_backlog() -> None:
    queue: WorkQueue[int] = WorkQueue()
    for key in range(1000):
        queue.add_slowly(key)
    await asyncio.sleep(59)
    assert queue.depth == 0
    await asyncio.sleep(8)
    assert 300 < queue.depth < 700
    await asyncio.sleep(9)
    assert queue.depth == 1000
    queue.add(1000)
    assert await queue.get() == 1000


class QueueMachine(RuleBasedStateMachine):
    """In any order of calls, no added key is lost, no key is handed out while it is worked on, and the number of other
    keys that are handed out before a ready key is bounded."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.queue: WorkQueue[str] = WorkQueue()
        self.waiting: dict[str, set[Lane]] = {}  # in the order of arrival
        self.working: dict[str, Lane] = {}  # with the lane from which the key was taken
        self.changed: dict[str, None] = {}
        """The ready live keys, the last change last."""
        self.turns: dict[str, int] = {}
        """By ready key: after how many more keys it is handed out at the latest, itself included."""

    def teardown(self) -> None:
        while self.turns:
            self.get()
        self.runner.close()

    def call(self, function: Callable[..., None], *arguments: object) -> None:
        async def run() -> None:
            function(*arguments)

        self.runner.run(run())

    def ready(self, key: str, lane: Lane) -> None:
        """The key is ready in this lane."""
        if lane == "live":
            self.change(key)
        self.waiting.setdefault(key, set()).add(lane)
        place = sum(lane in lanes for each, lanes in self.waiting.items() if each not in self.working)
        turns = place + -(-place // LIVE_IN_A_ROW) if lane == "live" else place * (LIVE_IN_A_ROW + 1)
        self.turns[key] = min(turns, self.turns.get(key, turns))

    def change(self, key: str) -> None:
        self.changed.pop(key, None)
        self.changed[key] = None

    @rule(keys=lists(sampled_from("abcdefghijklmnop"), min_size=1, max_size=12), lane=sampled_from(["live", "backlog"]))
    def add(self, keys: list[str], lane: Lane) -> None:
        for key in keys:
            self.add_one(key, lane)

    def add_one(self, key: str, lane: Lane) -> None:
        if lane == "live":
            self.call(self.queue.add, key)
        else:
            self.call(add_backlog, self.queue, key)
        if key in self.working:
            self.waiting.setdefault(key, set()).add(lane)
        elif lane not in self.waiting.get(key, set()) and (key not in self.waiting or lane == "live"):
            self.ready(key, lane)
        elif lane == "live":
            self.change(key)

    @rule()
    def to_backlog(self) -> None:
        self.call(self.queue.to_backlog)
        self.waiting = {key: {"backlog"} for key in self.waiting}
        order = dict.fromkeys((*reversed(self.changed), *self.waiting))
        ready = [key for key in order if key not in self.working]
        self.turns = {key: place * (LIVE_IN_A_ROW + 1) for place, key in enumerate(ready, 1)}
        self.changed.clear()

    @precondition(lambda self: self.turns)
    @rule()
    def get(self) -> None:
        key = self.runner.run(self.queue.get())
        assert key not in self.working
        self.working[key] = "live" if "live" in self.waiting.pop(key) else "backlog"
        del self.turns[key]
        self.changed.pop(key, None)
        self.turns = {each: turns - 1 for each, turns in self.turns.items()}
        assert all(turns > 0 for turns in self.turns.values())

    @precondition(lambda self: self.working)
    @rule(data=data())
    def done(self, data: DataObject) -> None:
        key = data.draw(sampled_from(sorted(self.working)))
        self.call(self.queue.done, key)
        del self.working[key]
        lanes = self.waiting.get(key)
        if lanes is not None:
            self.waiting[key] = set()
            self.ready(key, "live" if "live" in lanes else "backlog")

    @precondition(lambda self: self.working)
    @rule(data=data())
    def fail(self, data: DataObject) -> None:
        """The work on a key fails, and the delay ends."""
        key = data.draw(sampled_from(sorted(self.working)))

        async def run() -> None:
            self.queue.add_rate_limited(key)
            await asyncio.sleep(0.006)  # the first delay is 5 ms
            self.queue.forget(key)

        self.runner.run(run())
        self.waiting.setdefault(key, set()).add(self.working[key])

    @invariant()
    def depth_is_what_waits(self) -> None:
        assert self.queue.depth == len(self.waiting)


TestQueueMachine = QueueMachine.TestCase
TestQueueMachine.settings = settings(max_examples=50, stateful_step_count=20, deadline=None)
