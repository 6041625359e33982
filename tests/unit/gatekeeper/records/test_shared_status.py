"""Requests that several processes record in one status: no record is lost, and every request ends, whatever the API
server does."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from altershield.api.resources import POD_UNAVAILABLE_BUDGETS
from gatekeeper.records.shared_status import Answered, Decision, SharedStatus
from kube_base.access.errors import ConflictError, KubernetesError, NotFoundError, ServerError, UnreachableError
from kube_base.meta import ObjectMeta
from tests.support.simulated_time import simulated_time

pytestmark = pytest.mark.looptime

NAME = ObjectMeta(name="box", namespace="shop")


class Box(msgspec.Struct, frozen=True):
    """An object whose status has places."""

    metadata: ObjectMeta
    places: int
    taken: tuple[str, ...] = ()


def decide(box: Box, requests: Sequence[str]) -> Decision[Box, bool]:
    """A request takes one place, however often it is sent."""
    taken = list(box.taken)
    answers = []
    for each in requests:
        if each not in taken and len(taken) < box.places:
            taken.append(each)
        answers.append(each in taken)
    if len(taken) == len(box.taken):
        return Decision(answers, needs_fresh=not all(answers))
    return Decision(answers, msgspec.structs.replace(box, taken=tuple(taken)))


FAULTS = ("none", "slow", "conflict", "error", "hangs", "hangs after the write", "lost after the write")


@dataclass
class Api:
    """An API server with at most one box. `faults`: those of the next requests."""

    faults: list[str] = field(default_factory=list)
    seconds: float = 0.01
    stored: Box | None = None
    versions: list[Box] = field(default_factory=list)
    created: int = 0
    gets: int = 0
    puts: int = 0

    def create(self, places: int) -> None:
        self.created += 1
        self._store(Box(msgspec.structs.replace(NAME, uid=f"box-{self.created}"), places))

    def _store(self, box: Box) -> Box:
        metadata = msgspec.structs.replace(box.metadata, resource_version=str(len(self.versions) + 1))
        self.stored = msgspec.structs.replace(box, metadata=metadata)
        self.versions.append(self.stored)
        return self.stored

    async def _fault(self) -> str:
        fault = self.faults.pop(0) if self.faults else "none"
        await asyncio.sleep({"slow": 1.2, "hangs": 1e6}.get(fault, self.seconds))
        if fault == "error":
            raise ServerError("down", code=500)
        return fault

    async def get(self, resource: Any, name: str, namespace: str, *, as_: type[Box]) -> Box:
        self.gets += 1
        await self._fault()
        if self.stored is None:
            raise NotFoundError("gone", code=404)
        return self.stored

    async def replace(
        self, resource: Any, box: Box, name: str, namespace: str, *, subresource: str, as_: type[Box]
    ) -> Box:
        self.puts += 1
        fault = await self._fault()
        if self.stored is None:
            raise NotFoundError("gone", code=404)
        if fault == "conflict" or box.metadata != self.stored.metadata:
            raise ConflictError("changed", code=409)
        stored = self._store(box)
        if fault == "hangs after the write":
            await asyncio.sleep(1e6)
        if fault == "lost after the write":
            raise UnreachableError("lost")
        return stored

    @property
    def taken(self) -> tuple[str, ...]:
        return self.stored.taken if self.stored is not None else ()


class Process:
    """A process whose watch brings something only if a test says so. It fails if it has two writes under way."""

    resource = POD_UNAVAILABLE_BUDGETS

    def __init__(self, api: Api) -> None:
        self.api = api
        self.cached = api.stored
        self.writing = False
        client: Any = self
        self.shared: SharedStatus[Box, str, bool] = SharedStatus(client, client, Box, decide)

    def get(self, *about: Any, as_: Any = None) -> Any:
        """As an informer: the cached object. As a client: a read."""
        return self.api.get(*about, as_=as_) if as_ is not None else self.cached

    def observe(self, box: Box) -> None:
        self.cached = box

    async def replace(self, *about: Any, **options: Any) -> Box:
        assert not self.writing, "two writes at the same time"
        self.writing = True
        try:
            return await self.api.replace(*about, **options)
        finally:
            self.writing = False

    async def answered(self, request: str) -> Answered[Box, bool] | None:
        async with asyncio.timeout(100):
            return await self.shared.ask(NAME, request)

    async def ask(self, *requests: str) -> list[bool | None]:
        """Whether each request is admitted; None: there is no box."""
        found = await asyncio.gather(*map(self.answered, requests))
        return [each.answer if each is not None else None for each in found]

    @property
    def idle(self) -> bool:
        return not self.shared._waiting and not self.shared._tasks


@pytest.fixture
def api() -> Api:
    made = Api()
    made.create(places=3)
    return made


async def test_thousand_requests_at_two_processes_take_exactly_the_places_in_few_writes(api: Api) -> None:
    api.create(places=400)
    processes = [Process(api), Process(api)]
    names = [f"r{number}" for number in range(1000)]
    found = await asyncio.gather(*(each.ask(*names[number::2]) for number, each in enumerate(processes)))
    assert Counter(each for answers in found for each in answers) == {True: 400, False: 600}
    assert len(api.taken) == 400
    assert api.puts <= 4
    assert all(each.idle for each in processes)


async def test_requests_that_come_during_a_write_share_the_next_one(api: Api) -> None:
    process = Process(api)
    first = asyncio.create_task(process.ask("a"))
    await asyncio.sleep(0.005)
    assert await process.ask("b", "c", "a") == [True, True, True]
    assert (await first, api.puts) == ([True], 2)
    answered = await process.answered("a")
    assert answered == Answered(True, None), "nothing had to be written"


async def test_request_that_meets_a_conflict_each_time_ends_after_six_writes(api: Api) -> None:
    process = Process(api)
    api.faults = ["conflict", "none"] * 5
    assert await process.ask("a") == [True]
    assert api.puts == 6
    api.faults = ["conflict", "none"] * 1000
    late = asyncio.create_task(process.ask("d"))
    with pytest.raises(ConflictError, match="other clients changed the object 6 times"):
        await process.ask("c")
    with pytest.raises(ConflictError):
        await late
    assert (api.puts, process.idle) == (12, True)


async def test_each_request_has_six_tries_of_its_own(api: Api) -> None:
    process = Process(api)
    api.faults = ["conflict", "none"] * 8
    first = asyncio.create_task(process.ask("a"))
    await asyncio.sleep(0.07)
    assert await process.ask("b") == [True], "it joined the fourth try of the first one"
    with pytest.raises(ConflictError):
        await first
    assert api.taken == ("b",)


async def test_hanging_write_ends_the_requests_that_it_has_and_later_ones_get_their_own(api: Api) -> None:
    process = Process(api)
    api.faults = ["hangs"]
    first = asyncio.create_task(process.ask("a"))
    await asyncio.sleep(2.0)
    assert await process.ask("b") == [True]
    with pytest.raises(UnreachableError, match=r"the API server took longer than 2\.5 s"):
        await first
    assert asyncio.get_running_loop().time() == pytest.approx(2.51, abs=0.01)
    assert api.taken == ("b",)


async def test_record_whose_answer_was_lost_is_found_by_the_repeated_request(api: Api) -> None:
    process = Process(api)
    api.faults = ["lost after the write"]
    with pytest.raises(UnreachableError):
        await process.ask("a")
    assert await process.ask("a", "b", "c", "d") == [True, True, True, False]
    assert api.taken == ("a", "b", "c")


async def test_request_whose_caller_gave_up_is_not_recorded(api: Api) -> None:
    process = Process(api)
    first = asyncio.create_task(process.ask("a"))
    await asyncio.sleep(0.005)
    late = asyncio.create_task(process.ask("b"))
    await asyncio.sleep(0)
    late.cancel()
    assert await first == [True]
    await asyncio.sleep(1)
    assert (api.taken, api.puts, process.idle) == (("a",), 1, True)


@pytest.mark.parametrize("cached", [True, False])
async def test_request_about_an_object_that_does_not_exist_gets_none(api: Api, cached: bool) -> None:
    process = Process(api)
    process.cached = process.cached if cached else None
    api.stored = None
    assert await process.ask("a", "b") == [None, None]
    assert (api.puts, api.gets) == ((1, 0) if cached else (0, 1))


@pytest.mark.parametrize("places", [0, 1])
async def test_object_that_was_created_again_under_its_name_decides_by_itself(api: Api, places: int) -> None:
    process = Process(api)
    await process.ask("a")
    api.create(places)
    assert await process.ask("b") == [places == 1]
    assert api.taken == ("b",) * places


async def test_object_that_the_cache_has_lost_is_read_before_it_decides(api: Api) -> None:
    process = Process(api)
    for number, each in enumerate("ab", 1):
        process.cached = None
        assert await process.ask(each) == [True]
        assert api.gets == number
    assert api.taken == ("a", "b")


@pytest.mark.parametrize("fault", ["none", "slow"])
async def test_decision_that_needs_a_fresh_object_reads_it_at_most_once_a_second(api: Api, fault: str) -> None:
    process = Process(api)
    await process.ask("a", "b", "c")
    assert await process.ask("d") == [False]
    assert api.gets == 0, "the answer to the write was fresh"
    await asyncio.sleep(1)
    api.faults = [fault]
    assert await process.ask("d") == [False]
    assert api.gets == 1
    assert await process.ask("d") == [False]
    assert api.gets == (1 if fault == "none" else 2)
    await asyncio.sleep(1)
    assert api.stored is not None
    api._store(msgspec.structs.replace(api.stored, taken=()))
    assert await process.ask("d") == [True]


def without(request: str) -> Callable[[Box], Box | None]:
    def apply(box: Box) -> Box | None:
        if request not in box.taken:
            return None
        return msgspec.structs.replace(box, taken=tuple(each for each in box.taken if each != request))

    return apply


async def test_change_shares_a_write_and_is_made_again_after_a_conflict(api: Api) -> None:
    process = Process(api)
    await process.ask("a", "b", "c")
    other = Process(api)
    process.shared.change(NAME, without("a"))
    assert await process.answered("d") == Answered(True, api.stored)
    assert (api.taken, api.puts) == (("b", "c", "d"), 2)
    for each in "abc":
        other.shared.change(NAME, without(each))
    await asyncio.sleep(1)
    assert (api.taken, api.puts, api.gets) == (("d",), 4, 1)


async def test_change_that_finds_nothing_to_change_costs_nothing(api: Api) -> None:
    process = Process(api)
    process.shared.change(NAME, without("a"))
    await asyncio.sleep(1)
    assert (api.puts, api.gets, process.idle) == (0, 0, True)


@pytest.mark.parametrize(("fault", "left"), [("conflict", ()), ("error", ("a",)), ("hangs", ("a",))])
async def test_change_is_lost_after_an_error(api: Api, fault: str, left: tuple[str, ...]) -> None:
    process = Process(api)
    await process.ask("a")
    api.faults = [fault]
    process.shared.change(NAME, without("a"))
    await asyncio.sleep(3)
    assert (api.taken, process.idle) == (left, True)


async def test_change_beside_a_request_that_needs_no_record_stores_nothing_for_the_request(api: Api) -> None:
    process = Process(api)
    await process.ask("a", "b", "c")
    process.shared.change(NAME, lambda box: msgspec.structs.replace(box, taken=("a", "b", "x")))
    assert await process.answered("d") == Answered(False, None)
    assert api.taken == ("a", "b", "x")


async def test_bug_in_a_decision_ends_its_requests_and_not_the_next_ones(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = Process(api)
    with monkeypatch.context() as broken:
        broken.setattr(process.shared, "_decide", lambda box, requests: 1 / 0)
        with pytest.raises(KubernetesError, match="division by zero"):
            await process.ask("a")
    assert await process.ask("a") == [True]


async def test_end_of_the_process_ends_all_requests(api: Api) -> None:
    process = Process(api)
    api.faults = ["hangs"]
    waiting = [asyncio.create_task(process.ask(each)) for each in "ab"]
    await asyncio.sleep(0.005)
    late = asyncio.create_task(process.ask("c"))
    await asyncio.sleep(0)
    process.shared._tasks[NAME.namespace, NAME.name].cancel()
    for each in (*waiting, late):
        with pytest.raises(UnreachableError, match="the process ends"):
            await each
    assert (process.idle, api.taken) == (True, ())


async def test_times_of_reads_are_forgotten() -> None:
    process = Process(Api(seconds=0.5))
    process.api.create(20)
    for number in range(20):
        await process.shared.ask(ObjectMeta(name=f"box-{number}"), f"r{number}")
    assert process.api.puts == 20
    assert len(process.shared._read_at) <= 3


# any order of events

Event = tuple[float, str, int]
"""Seconds to wait, what happens then, and a number: the request, or the places of a new box."""
EVENTS = st.lists(
    st.tuples(
        st.sampled_from([0.0, 0.0, 0.004, 0.02, 1.1]),
        st.sampled_from(["ask 0"] * 3 + ["ask 1"] * 3 + ["ask briefly 0", "delete", "create", "watch 0", "kill 0"]),
        st.integers(0, 9),
    ),
    max_size=40,
)


async def happen(events: Iterable[Event], faults: list[str]) -> None:
    api = Api(list(faults))
    api.create(3)
    processes = [Process(api), Process(api)]
    asked: list[asyncio.Task[None]] = []

    async def ask(process: Process, request: str, seconds: float) -> None:
        puts = api.puts
        try:
            async with asyncio.timeout(seconds):
                answered = await process.shared.ask(NAME, request)
        except (KubernetesError, TimeoutError):
            return
        if answered is not None and answered.answer:
            boxes = [each for each in api.versions if request in each.taken]
            assert boxes, f"{request} was admitted without a record"
            assert answered.stored is None or answered.stored in boxes
            assert answered.stored is None or api.puts > puts

    for seconds, what, number in events:
        await asyncio.sleep(seconds)
        process = processes[what.endswith("1")]
        if what.startswith("ask"):
            asked.append(asyncio.create_task(ask(process, f"r{number}", 0.015 if "briefly" in what else 10.0)))
        elif what == "delete":
            api.stored = None
        elif what == "create" and api.stored is None:
            api.create(number % 4)
        elif what == "watch 0":
            process.cached = api.stored
        elif what == "kill 0":
            await asyncio.sleep(0)  # its tasks have begun
            for task in process.shared._tasks.values():
                task.cancel()
    await asyncio.gather(*asked)
    await asyncio.sleep(60)
    assert all(each.idle for each in processes), "a request is forgotten"
    for uid in {each.metadata.uid for each in api.versions}:
        versions = [each for each in api.versions if each.metadata.uid == uid]
        ever = {request for each in versions for request in each.taken}
        assert len(ever) <= versions[0].places, "a record was lost, and its place given away"


@given(EVENTS, st.lists(st.sampled_from(FAULTS), max_size=30))
@settings(max_examples=300, deadline=None)
def test_no_record_is_lost_and_every_request_ends_in_any_order_of_events(
    events: list[Event], faults: list[str]
) -> None:
    with asyncio.Runner() as runner, simulated_time(runner.get_loop()):  # a loop for each example
        runner.run(happen(events, faults))
