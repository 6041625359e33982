"""The queue of one receiver: order, rate, repetitions and bounds. Time is simulated."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator

import pytest

from reconciler.notifications import lane as module
from reconciler.notifications.lane import MAX_AGE, Lane
from reconciler.notifications.occurrences import Occurrence
from reconciler.notifications.sending import Outcome, Refused, Retry, Sent
from reconciler.receivers.file import Receiver
from reconciler.receivers.vocabulary import Event
from tests.unit.reconciler.notifications.receiving import NOW, happened, receiver

pytestmark = pytest.mark.looptime


class Receiving:
    """A lane and its receiver. `outcomes` are the next answers; then it takes everything."""

    def __init__(self, own: Receiver | None = None) -> None:
        self.outcomes: list[Outcome | Exception] = []
        self.sent: list[tuple[float, str]] = []
        self.ended: list[str] = []
        self.counts: Counter[str] = Counter()
        self._began = asyncio.get_running_loop().time()
        self.lane = Lane(own or receiver(), "prod", self._send, self._end, self._count, self.clock)

    @property
    def elapsed(self) -> float:
        return asyncio.get_running_loop().time() - self._began

    def clock(self) -> float:
        return NOW + self.elapsed

    async def _send(self, own: Receiver, occurrence: Occurrence, cluster: str) -> Outcome:
        assert (own, cluster) == (self.lane.receiver, "prod")
        await asyncio.sleep(0)
        self.sent.append((self.elapsed, occurrence.id))
        outcome = self.outcomes.pop(0) if self.outcomes else Sent()
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def _end(self, _: Receiver, occurrence: Occurrence) -> None:
        self.ended.append(occurrence.id)

    def _count(self, _: Receiver, result: str) -> None:
        self.counts[result] += 1


@contextlib.asynccontextmanager
async def running(own: Receiver | None = None) -> AsyncIterator[Receiving]:
    made = Receiving(own)
    task = asyncio.create_task(made.lane.run())
    yield made
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


def many(count: int) -> list[Occurrence]:
    return [happened(uid=f"u-{number}") for number in range(count)]


async def test_events_are_sent_once_each_and_in_order() -> None:
    async with running() as receiving:
        for each in many(3) + many(3):
            receiving.lane.offer(each)
        await asyncio.sleep(1)
        assert receiving.ended == [each.id for each in many(3)]
        assert receiving.counts == {"sent": 3}


async def test_rate_is_one_a_second_after_the_first_ten() -> None:
    async with running() as receiving:
        for each in many(30):
            receiving.lane.offer(each)
        await asyncio.sleep(60)
        times = [at for at, _ in receiving.sent]
        assert times[:10] == [0.0] * 10
        assert times[10:] == pytest.approx([float(second) for second in range(1, 21)])
        for each in many(15):
            receiving.lane.offer(each)
        await asyncio.sleep(0.1)
        assert len(receiving.sent) == 40


async def test_failed_attempts_are_repeated_with_growing_delays() -> None:
    async with running() as receiving:
        receiving.outcomes = [Retry("HTTP 500")] * 6
        first, second = many(2)
        receiving.lane.offer(first)
        receiving.lane.offer(second)
        await asyncio.sleep(120)
        assert [id_ for _, id_ in receiving.sent] == [first.id, second.id] * 4
        delays = [
            later - earlier for (earlier, _), (later, _) in zip(receiving.sent, receiving.sent[1:7], strict=False)
        ]
        assert all(2**number / 2 <= delay <= 2**number for number, delay in enumerate(delays))
        assert receiving.counts == {"sent": 2}


async def test_event_that_the_receiver_cannot_take_delays_no_other() -> None:
    async with running() as receiving:
        poison, *others = many(5)

        async def send(own: Receiver, occurrence: Occurrence, cluster: str) -> Outcome:
            return Retry("HTTP 500") if occurrence is poison else Sent()

        receiving.lane._send = send
        for each in (poison, *others):
            receiving.lane.offer(each)
        await asyncio.sleep(5)
        assert receiving.ended == [each.id for each in others]
        await asyncio.sleep(2 * MAX_AGE)
        assert receiving.counts == {"sent": 4, "dropped": 1}


async def test_delays_are_short_again_after_a_success() -> None:
    async with running() as receiving:
        receiving.outcomes = [Retry("HTTP 500")] * 8
        receiving.lane.offer(happened())
        await asyncio.sleep(600)
        receiving.outcomes = [Retry("HTTP 500")]
        receiving.lane.offer(happened(uid="u-2"))
        await asyncio.sleep(2)
        assert receiving.counts == {"sent": 2}


async def test_event_that_is_withdrawn_while_it_is_sent_is_not_sent_again() -> None:
    async with running() as receiving:
        first, second = many(2)
        receiving.outcomes = [Retry("HTTP 500")]
        receiving.lane.offer(first)
        await asyncio.sleep(0)
        receiving.lane.withdraw(first.uid, [])
        receiving.lane.offer(second)
        await asyncio.sleep(5)
        assert [id_ for _, id_ in receiving.sent] == [first.id, second.id]


async def test_namespace_with_many_events_delays_no_other_namespace() -> None:
    async with running() as receiving:
        for each in many(1000):
            receiving.lane.offer(each)
        await asyncio.sleep(20)
        sent = len(receiving.sent)
        others = [happened(namespace=name, uid=f"{name}-{number}") for name in ("a", "b") for number in (1, 2)]
        for each in others:
            receiving.lane.offer(each)
        await asyncio.sleep(8)
        names = [id_.partition("/")[0] for _, id_ in receiving.sent[sent:]]
        assert [name for name in names if name in ("a-1", "a-2", "b-1", "b-2")] == ["a-1", "b-1", "a-2", "b-2"]
        assert any(name.startswith("u-") for name in names[:4])


async def test_queue_of_a_receiver_that_is_down_makes_room_as_events_become_too_old(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MAX_QUEUE", 12)
    async with running() as receiving:
        receiving.outcomes = [Retry("HTTP 500", 300.0)] * 1000
        for each in many(12):
            receiving.lane.offer(each)
        await asyncio.sleep(MAX_AGE + 1)
        receiving.outcomes = []
        receiving.lane.offer(happened(since=NOW + int(MAX_AGE), uid="new"))
        await asyncio.sleep(500)  # the present pause is of 450 s at most
        assert receiving.counts == {"dropped": 12, "sent": 1}
        assert receiving.lane._waiting == receiving.lane._offered == {}
        assert receiving.lane._ids == receiving.lane._turns == {}


async def test_receiver_says_when_it_wants_the_next_attempt() -> None:
    async with running() as receiving:
        receiving.outcomes = [Retry("HTTP 429", 60.0)]
        receiving.lane.offer(happened())
        await asyncio.sleep(100)
        assert 60 <= receiving.sent[1][0] <= 75


async def test_refused_event_is_not_repeated_and_stops_no_other(caplog: pytest.LogCaptureFixture) -> None:
    async with running() as receiving:
        receiving.outcomes = [Refused("HTTP 404"), RuntimeError("a bug")]
        for each in many(3):
            receiving.lane.offer(each)
        await asyncio.sleep(1)
        assert len(receiving.sent) == len(receiving.ended) == 3
        assert receiving.counts == {"failed": 2, "sent": 1}
        assert "a notification was not sent" in caplog.text


async def test_event_that_cannot_be_sent_for_an_hour_is_dropped() -> None:
    async with running() as receiving:
        receiving.outcomes = [Retry("HTTP 500")] * 1000
        receiving.lane.offer(happened())
        await asyncio.sleep(2 * MAX_AGE)
        assert receiving.counts == {"dropped": 1}
        assert receiving.ended == []  # it is too old to be offered again
        assert receiving.sent[-1][0] < MAX_AGE


async def test_event_of_long_ago_is_not_told() -> None:
    async with running() as receiving:
        receiving.lane.offer(happened(since=NOW - int(MAX_AGE) - 1))
        await asyncio.sleep(1)
        assert receiving.sent == []
        assert receiving.counts == {}


async def test_end_of_an_old_state_is_told_and_dropped_after_an_hour_without_success() -> None:
    async with running() as receiving:
        ended = happened(since=NOW - 10 * int(MAX_AGE), resolved=True)
        receiving.lane.offer(ended)
        await asyncio.sleep(1)
        assert receiving.counts == {"sent": 1}
        receiving.outcomes = [Retry("HTTP 500")] * 1000
        receiving.lane.offer(ended)
        await asyncio.sleep(2 * MAX_AGE)
        assert receiving.counts == {"sent": 1, "dropped": 1}
        assert receiving.ended == [ended.id] * 2


async def test_queue_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running() as receiving:
        monkeypatch.setattr(module, "MAX_QUEUE", 12)
        for each in many(20) + many(5):  # the last ones wait already
            receiving.lane.offer(each)
        assert receiving.counts == {"dropped": 8}
        await asyncio.sleep(60)
        assert receiving.counts == {"dropped": 8, "sent": 12}
        receiving.lane.offer(many(20)[19])
        await asyncio.sleep(1)
        assert receiving.counts["sent"] == 13


async def test_state_that_is_over_before_it_is_told_is_withdrawn() -> None:
    async with running() as receiving:
        receiving.outcomes = [Retry("HTTP 500")]
        suspended, ungated, other = happened(), happened(Event.UNGATED), happened(uid="u-2")
        for each in (suspended, ungated, other):
            receiving.lane.offer(each)
        await asyncio.sleep(0.1)
        receiving.lane.withdraw("u-1", [])
        await asyncio.sleep(10)
        assert receiving.ended == [ungated.id, other.id]


PAGERDUTY = receiver("pagerduty")
UNANSWERED = Retry("no complete answer", may_be_taken=True)


@pytest.mark.parametrize(("attempts", "seconds"), [(1, 0.1), (2, 5.0)], ids=["once", "twice"])
async def test_alert_that_the_receiver_may_have_taken_without_an_answer_is_ended_with_its_state(
    attempts: int, seconds: float
) -> None:
    async with running(PAGERDUTY) as receiving:
        receiving.outcomes = [UNANSWERED, Retry("HTTP 500", 60.0)][:attempts]
        suspended = happened()
        receiving.lane.offer(suspended)
        await asyncio.sleep(seconds)
        receiving.lane.withdraw(suspended.uid, [])
        await asyncio.sleep(100)
        ended = f"{suspended.id}/resolved"
        assert [id_ for _, id_ in receiving.sent] == [*[suspended.id] * attempts, ended]
        assert receiving.ended == [ended]


async def test_alert_that_is_withdrawn_while_it_is_sent_and_may_have_been_taken_is_ended() -> None:
    async with running(PAGERDUTY) as receiving:
        receiving.outcomes = [UNANSWERED]
        suspended = happened()
        receiving.lane.offer(suspended)
        await asyncio.sleep(0)
        receiving.lane.withdraw(suspended.uid, [])
        await asyncio.sleep(10)
        assert [id_ for _, id_ in receiving.sent] == [suspended.id, f"{suspended.id}/resolved"]


async def test_message_that_may_have_been_taken_has_no_end() -> None:
    async with running() as receiving:
        receiving.outcomes = [UNANSWERED]
        suspended = happened()
        receiving.lane.offer(suspended)
        await asyncio.sleep(0.1)
        receiving.lane.withdraw(suspended.uid, [])
        await asyncio.sleep(10)
        assert [id_ for _, id_ in receiving.sent] == [suspended.id]
