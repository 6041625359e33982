"""A batch, an AlterShield server and a network between them, each of which may fail at any time.

The server behaves as the published one: a poll says `fail` while a check runs, a batch that is finished a second time
after its check has ended shows no result any more, and a callback is sent once.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from types import SimpleNamespace
from typing import Any, cast

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from altershield.api.kinds import ChangePodStatus, PodState
from altershield.api.policy import Phase
from reconciler.batches.check_run import Answer, Step
from reconciler.batches.conclusion import SERVER_CHECK
from reconciler.batches.nodes import awaits, awaits_node, with_node
from reconciler.batches.plan import SERVER, plan, subject
from reconciler.batches.transitions import BatchSnapshot, decide, received
from reconciler.checks.altershield_server import AlterShieldServer
from reconciler.checks.check import Fail, Pass
from reconciler.server.answers import Polled, ServerVerdict
from reconciler.server.errors import NotAllowedError, UnavailableError
from reconciler.server.messages import BatchFinish, BatchStart, Order, Stage
from tests.unit.reconciler.builders import NOW, change_pod, release

PRE, POST = Phase
_PHASES = {Stage.PRE: PRE, Stage.POST: POST}
TIMEOUT = 120


class Fate(Enum):
    """What happens to a request."""

    ANSWERED = auto()
    NOT_DELIVERED = auto()
    ANSWER_LOST = auto()


@dataclass
class Server:
    """One node of the published server, and the client of it. `results`: how its checks end."""

    results: dict[Phase, bool]
    fates: list[Fate]
    """Of the next requests; later ones are answered."""
    nodes: int = 0
    state: str = ""
    shown: dict[Phase, bool] = field(default_factory=dict)
    """The results that polls show."""
    callbacks: list[tuple[Phase, bool]] = field(default_factory=list)
    """Callbacks under way."""

    async def _request(self, effect: Callable[[], Any]) -> Any:
        fate = self.fates.pop(0) if self.fates else Fate.ANSWERED
        if fate is Fate.NOT_DELIVERED:
            raise UnavailableError("connection refused", delivered=False)
        answer = effect()
        if fate is Fate.ANSWER_LOST:
            raise UnavailableError("no answer", delivered=True)
        return answer

    available = True

    async def create_order(self, _: Order) -> None:
        await self._request(lambda: None)

    async def start_batch(self, _: BatchStart) -> str:
        def start() -> str:
            self.nodes += 1
            self.state = "PRE_AOP"
            return "node-1"

        return cast(str, await self._request(start))

    async def finish_batch(self, finish: BatchFinish) -> bool:
        def end() -> bool:
            if self.state in ("", "PRE_AOP", "POST_AOP", "POST_AOP_SUBMIT"):
                raise NotAllowedError("not allowed", state=self.state, text="")
            ended = self.state == "POST_AOP_FINISH"
            self.state = "POST_AOP_SUBMIT" if ended or not finish.success else "POST_AOP"
            return True

        return cast(bool, await self._request(end))

    async def poll(self, _order: str, _node: str, stage: Stage) -> Polled:
        def verdict() -> Polled:
            phase = _PHASES[stage]
            visible = self.state == "POST_AOP_FINISH" if phase is POST else self.state != "PRE_AOP"
            passed = visible and self.shown.get(phase, False)
            return Polled(True, ServerVerdict.PASS if passed else ServerVerdict.FAIL, "")

        return cast(Polled, await self._request(verdict))

    def complete(self) -> None:
        """The running check ends."""
        phase = {"PRE_AOP": PRE, "POST_AOP": POST}.get(self.state)
        if phase is None:
            return
        self.state += "_FINISH"
        self.shown[phase] = self.results[phase]
        self.callbacks.append((phase, self.results[phase]))


class Crash(Exception):  # noqa: N818  (the process dies)
    pass


@dataclass
class World:
    """One batch that this server checks."""

    server: Server
    status: ChangePodStatus = field(default_factory=ChangePodStatus)
    now: float = NOW
    crash: bool = False
    """Whether the process dies after the next request, before it stores anything."""
    told: set[tuple[Phase, bool]] = field(default_factory=set)
    """The results that callbacks brought and that were of use."""

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """The reconciler begins with nothing in memory."""
        caches = SimpleNamespace(releases=SimpleNamespace(get=lambda *_: release()), workload=lambda _: None)
        self.check = AlterShieldServer(cast(Any, self.server), cast(Any, caches), lambda: self.now)

    def snapshot(self) -> BatchSnapshot:
        return BatchSnapshot(change_pod(1, "a", status=self.status), plan(release(), {SERVER: self.check}))

    async def reconcile(self) -> float | None:
        """One reconcile as BatchReconciler does it. Returns the seconds until the next one."""
        snapshot = self.snapshot()
        for _ in range(20):
            self.status, following = decide(self.status, snapshot, self.now)
            if not following.asks:
                return following.after
            made = change_pod(1, "a", status=self.status)
            answers: dict[tuple[str, Phase], Answer] = dict(snapshot.answers)
            for ask in following.asks:
                what = subject(made, release(), snapshot.plan[0], ask.phase)
                handle = self.status.change_pod_id
                request: Awaitable[Answer] = (
                    self.check.start(what)
                    if ask.step is Step.START
                    else self.check.poll(what, handle, last=ask.step is Step.LAST_POLL)
                )
                answers[ask.key] = await request
            if self.crash:
                raise Crash
            snapshot = replace(snapshot, change_pod=made, answers=answers)
        raise AssertionError("the reconcile does not end")

    async def step(self) -> float | None:
        try:
            return await self.reconcile()
        except Crash:
            self.crash = False
            self.restart()
            return 1.0

    def receive(self, phase: Phase, passed: bool) -> None:
        """A callback arrives, as BatchReconciler.receive stores it."""
        state = self.status
        if awaits_node(state, SERVER_CHECK):
            state = with_node(state, SERVER_CHECK, "node-1")
        if not awaits(state, SERVER_CHECK, phase):
            return
        self.told.add((phase, passed))
        snapshot = replace(
            self.snapshot(),
            change_pod=change_pod(1, "a", status=state),
            answers={(SERVER_CHECK, phase): Pass("fine") if passed else Fail("errors")},
        )
        self.status = received(state, snapshot, self.now)

    @property
    def verdict(self) -> str:
        return next((each.verdict for each in self.status.pod_results), "")


EVENTS = st.sampled_from(
    ["reconcile", "wait", "wait long", "complete", "deliver", "deliver twice", "reorder", "drop", "restart", "crash"]
)


async def _history(world: World, events: list[str]) -> None:
    for event in events:
        match event:
            case "reconcile":
                await world.step()
            case "wait":
                world.now += 4
            case "wait long":
                world.now += 40
            case "complete":
                world.server.complete()
            case "deliver" | "deliver twice" if world.server.callbacks:
                callback = world.server.callbacks.pop(0)
                for _ in range(1 + (event == "deliver twice")):
                    world.receive(*callback)
            case "reorder":
                world.server.callbacks.reverse()
            case "drop" if world.server.callbacks:
                world.server.callbacks.pop(0)
            case "restart":
                world.restart()
            case "crash":
                world.crash = True
            case _:
                pass
    world.crash = False
    for _ in range(200):
        world.server.complete()
        after = await world.step()
        if after is None and world.status.status == PodState.EXECUTE_DONE:
            break
        world.now += max(after or 1.0, 0.5)
    while world.server.callbacks:  # those that come late
        world.receive(*world.server.callbacks.pop(0))


Worlds = st.builds(
    lambda pre, post, fates: World(Server({PRE: pre, POST: post}, fates)),
    st.booleans(),
    st.booleans(),
    st.lists(st.sampled_from(Fate), max_size=8),
)


@settings(max_examples=600, deadline=None)
@given(Worlds, st.lists(EVENTS, max_size=25))
def test_server_fails_exactly_the_batches_that_it_says_and_passes_no_other(world: World, events: list[str]) -> None:
    asyncio.run(_history(world, events))
    real = world.server.results
    assert world.status.status == PodState.EXECUTE_DONE, "each state has a deadline"
    assert world.server.nodes <= 1, "a batch is submitted once"
    if world.verdict == "pass":
        assert all(real.values()), "no pass is invented"
    if world.verdict == "unpass":
        assert not all(real.values()), "no failure is invented"
    if any(not passed for _, passed in world.told):
        assert world.verdict == "unpass", "no failure is lost that a callback told"


@settings(max_examples=200, deadline=None)
@given(st.booleans(), st.booleans(), st.booleans())
def test_without_faults_the_verdict_is_the_servers(pre: bool, post: bool, callbacks: bool) -> None:
    world = World(Server({PRE: pre, POST: post}, []))
    steps = ["reconcile", "complete", "deliver" if callbacks else "drop"] * 4
    asyncio.run(_history(world, steps))
    assert world.verdict == ("pass" if pre and post else "unpass")


def test_pass_is_found_although_the_answer_that_confirms_the_start_and_the_callback_were_lost() -> None:
    """To finish the batch once more would hide the result."""
    world = World(Server({PRE: True, POST: True}, [Fate.ANSWERED, Fate.ANSWERED, Fate.ANSWER_LOST]))
    asyncio.run(_history(world, ["reconcile", "complete", "deliver", "reconcile", "complete", "drop", "wait"]))
    assert world.verdict == "pass"


def test_status_of_the_model_is_one_that_the_api_server_stores() -> None:
    world = World(Server({PRE: True, POST: True}, []))
    asyncio.run(_history(world, []))
    assert msgspec.json.decode(msgspec.json.encode(world.status), type=ChangePodStatus) == world.status
