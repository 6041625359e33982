"""The work queue: duplicates, delays, backoff and figures."""

import asyncio

import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from hypothesis.strategies import sampled_from

from altershield.kube.queue import WorkQueue

pytestmark = pytest.mark.looptime


async def taken_at(queue: WorkQueue[str]) -> tuple[str, float]:
    began = asyncio.get_running_loop().time()
    key = await queue.get()
    return key, pytest.approx(asyncio.get_running_loop().time() - began, abs=1e-4)


async def test_key_added_several_times_is_handed_out_once() -> None:
    queue: WorkQueue[str] = WorkQueue()
    for _ in range(3):
        queue.add("a")
    queue.add("b")
    assert queue.depth == 2
    assert [await queue.get(), await queue.get()] == ["a", "b"]
    assert queue.depth == 0


async def test_key_added_while_it_is_worked_on_is_handed_out_again_after_done() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    await queue.get()
    queue.add("a")
    queue.add("a")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(queue.get(), 60)
    queue.done("a")
    assert await queue.get() == "a"
    queue.done("a")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(queue.get(), 60)


async def test_earliest_of_several_delays_counts() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add_after("a", 30)
    queue.add_after("a", 10)
    queue.add_after("a", 20)
    assert await taken_at(queue) == ("a", 10)
    queue.done("a")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(queue.get(), 60)


async def test_delay_of_zero_or_less_adds_at_once() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add_after("a", 0)
    queue.add_after("b", -1)
    assert queue.depth == 2


async def test_add_does_not_cancel_a_delayed_add() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add_after("a", 10)
    queue.add("a")
    assert await taken_at(queue) == ("a", 0)
    queue.done("a")
    assert await taken_at(queue) == ("a", 10)


async def test_delay_of_failures_doubles_up_to_a_minute_until_forget() -> None:
    queue: WorkQueue[str] = WorkQueue()
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


async def test_delay_of_throttled_keys_doubles_until_forget() -> None:
    queue: WorkQueue[str] = WorkQueue()
    delays = [await throttled_for(queue, "a", None) for _ in range(12)]
    for failures, delay in enumerate(delays):
        most = min(2.0**failures, 60)
        assert most / 2 <= delay <= most + 1e-6
    queue.forget("a")
    assert await throttled_for(queue, "a", None) <= 1 + 1e-6


async def test_conflicts_do_not_prolong_the_delay_of_a_throttled_key() -> None:
    queue: WorkQueue[str] = WorkQueue()
    for _ in range(10):
        queue.add_rate_limited("a")
        queue.done(await queue.get())
    assert await throttled_for(queue, "a", None) <= 1 + 1e-6


@pytest.mark.parametrize("retry_after", [0.0, 1.0, 7.0, 300.0])
async def test_throttled_key_is_not_handed_out_before_retry_after(retry_after: float) -> None:
    queue: WorkQueue[str] = WorkQueue()
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


async def test_depth_oldest_and_waited_tell_how_long_keys_wait() -> None:
    queue: WorkQueue[str] = WorkQueue()
    assert queue.oldest == 0
    queue.add("a")
    await asyncio.sleep(3)
    queue.add("b")
    await asyncio.sleep(1)
    assert queue.oldest == pytest.approx(4)
    await queue.get()
    assert queue.oldest == pytest.approx(1)
    assert (queue.taken, queue.waited) == (1, pytest.approx(4))


async def test_cancelled_get_takes_no_key() -> None:
    queue: WorkQueue[str] = WorkQueue()
    waiter = asyncio.create_task(queue.get())
    await asyncio.sleep(1)
    queue.add("a")
    waiter.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiter
    assert await asyncio.wait_for(queue.get(), 1) == "a"


class QueueMachine(RuleBasedStateMachine):
    """In any order of calls, no added key is lost, and no key is handed out while it is worked on."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.queue: WorkQueue[str] = WorkQueue()
        self.expected: set[str] = set()
        self.working: set[str] = set()

    def teardown(self) -> None:
        self.runner.close()

    def call(self, function: object, *arguments: object) -> None:
        async def run() -> None:
            function(*arguments)  # type: ignore[operator]

        self.runner.run(run())

    @rule(key=sampled_from("abc"))
    def add(self, key: str) -> None:
        self.call(self.queue.add, key)
        self.expected.add(key)

    @precondition(lambda self: self.expected - self.working)
    @rule()
    def get(self) -> None:
        key = self.runner.run(self.queue.get())
        assert key in self.expected
        assert key not in self.working
        self.expected.remove(key)
        self.working.add(key)

    @precondition(lambda self: self.working)
    @rule()
    def done(self) -> None:
        self.call(self.queue.done, self.working.pop())

    @invariant()
    def depth_is_what_waits(self) -> None:
        assert self.queue.depth == len(self.expected)


TestQueueMachine = QueueMachine.TestCase
TestQueueMachine.settings = settings(max_examples=30, stateful_step_count=30, deadline=None)
