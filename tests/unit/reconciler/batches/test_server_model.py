"""A batch, an AlterShield server, a person and a network between them, each of which may fail at any time.

The server behaves as the published one: a poll says `fail` while a check runs, a batch that is finished a second time
after its check has ended shows no result any more, and a callback is sent once. A callback of a first run that comes
while the check runs again says `pass` without rules. After a skip, the node answers nothing any more.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import AsyncMock

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from altershield.api.change_pod import ChangePod, ChangePodStatus, PodState
from altershield.api.check_results import FailedRule
from altershield.api.check_specs import CheckSpec, OnUnknown, Phase, ServerCheck
from altershield.api.pod_verdicts import Verdict
from altershield.api.policy import AppliedPolicy
from reconciler.batches.check_run import Answer, Step
from reconciler.batches.conclusion import SERVER_CHECK
from reconciler.batches.metrics import BatchMetrics
from reconciler.batches.nodes import awaits, awaits_node, is_of_this_run, with_doubtful_pass, with_node
from reconciler.batches.plan import SERVER, plan, subject
from reconciler.batches.repeating import repeated
from reconciler.batches.skipping import Skipper, requested
from reconciler.batches.transitions import BatchSnapshot, decide, received
from reconciler.checks.altershield_server import AlterShieldServer
from reconciler.checks.check import Fail, Pass, entry_of
from reconciler.cluster.verdicts import is_repeatable, why_waiting
from reconciler.server.answers import Polled, ServerVerdict
from reconciler.server.messages import BatchFinish, BatchStart, Order, Stage
from reconciler.server.server_errors import NotAllowedError, RejectedError, UnavailableError
from tests.unit.altershield.releases.builders import NOW, change_pod, release

PRE, POST = Phase
_PHASES = {Stage.PRE: PRE, Stage.POST: POST}
_HOLD = AppliedPolicy(checks=(CheckSpec(SERVER_CHECK, on_unknown=OnUnknown.HOLD, server=ServerCheck()),))


class Fate(Enum):
    """What happens to a request."""

    ANSWERED = auto()
    NOT_DELIVERED = auto()
    ANSWER_LOST = auto()


@dataclass(frozen=True)
class Callback:
    """A callback under way."""

    node: str
    phase: Phase
    passed: bool
    began: int = 0
    """When its newest rule began; 0: it has no rules."""

    @property
    def result(self) -> Pass | Fail:
        rules = (FailedRule(f"{self.node}-{self.began}", "errors", True),) if self.began else ()
        return Pass("fine", self.began) if self.passed else Fail("errors", self.began, rules)


@dataclass
class Node:
    state: str = "PRE_AOP"
    shown: dict[Phase, bool] = field(default_factory=dict)
    """The results that polls show."""
    results: set[tuple[Phase, bool]] = field(default_factory=set)
    """Of the runs that ended since the last retry. A resubmission whose answer was lost is sent again, and may start
    one more run: each of them counts."""

    def answer(self) -> None:
        if self.state.endswith("_IGNORE"):
            raise RejectedError("refused", code="101", text="exeNodeStateMachine is null")


@dataclass
class Server:
    """The published server, and the client of it. `pre` and `post`: how its checks end, one after the other."""

    pre: Sequence[bool]
    post: bool
    fates: list[Fate]
    """Of the next requests; later ones are answered."""
    nodes: dict[str, Node] = field(default_factory=dict)
    runs: int = 0
    """Completed checks."""
    callbacks: list[Callback] = field(default_factory=list)
    """Callbacks under way."""
    skips: int = 0
    """Skips that arrived."""
    wrong_skips: int = 0
    """Skips while rules ran."""
    dies: Callable[[], None] = lambda: None
    """Called after a skip."""

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
            node = f"node-{len(self.nodes) + 1}"
            self.nodes[node] = Node()
            return node

        return cast(str, await self._request(start))

    async def finish_batch(self, finish: BatchFinish) -> bool:
        def end() -> bool:
            node = self.nodes[finish.node]
            node.answer()
            if node.state in ("PRE_AOP", "POST_AOP", "POST_AOP_SUBMIT"):
                raise NotAllowedError("not allowed", state=node.state, text="")
            ended = node.state == "POST_AOP_FINISH"
            node.state = "POST_AOP_SUBMIT" if ended or not finish.success else "POST_AOP"
            return True

        return cast(bool, await self._request(end))

    async def poll(self, _order: str, node_id: str, stage: Stage) -> Polled:
        def verdict() -> Polled:
            node, phase = self.nodes[node_id], _PHASES[stage]
            node.answer()
            visible = node.state == "POST_AOP_FINISH" if phase is POST else node.state != "PRE_AOP"
            passed = visible and node.shown.get(phase, False)
            return Polled(True, ServerVerdict.PASS if passed else ServerVerdict.FAIL, "")

        return cast(Polled, await self._request(verdict))

    async def resubmit(self, _order: str, node_id: str) -> None:
        def again() -> None:
            node = self.nodes[node_id]
            node.answer()
            if node.state not in ("PRE_AOP", "PRE_AOP_FINISH"):
                raise NotAllowedError("not allowed", state=node.state, text="")
            if node.state == "PRE_AOP_FINISH":
                # the callback of the first run, if its job has not begun yet: the node has left its state
                self.callbacks = [
                    Callback(each.node, PRE, True) if each.node == node_id and each.passed else each
                    for each in self.callbacks
                ]
            node.state, node.shown = "PRE_AOP", {}

        await self._request(again)

    async def skip(self, _order: str, node_id: str, stage: Stage, rules: Sequence[str], *_: str) -> None:
        def ignore() -> None:
            node = self.nodes[node_id]
            assert rules
            self.skips += 1
            self.wrong_skips += node.state in ("PRE_AOP", "POST_AOP")
            node.state = f"{stage}_AOP_IGNORE"

        await self._request(ignore)
        self.dies()

    def complete(self) -> None:
        """The running checks end."""
        for name, node in self.nodes.items():
            phase = {"PRE_AOP": PRE, "POST_AOP": POST}.get(node.state)
            if phase is None:
                continue
            self.runs += 1
            passed = self.post if phase is POST else self.pre[min(self.runs, len(self.pre)) - 1]
            node.state += "_FINISH"
            node.shown[phase] = passed
            node.results.add((phase, passed))
            self.callbacks.append(Callback(name, phase, passed, self.runs))


class Crash(Exception):  # noqa: N818  (the process dies)
    pass


@dataclass
class World:
    """One batch that this server checks. With `holds`, a check without a result waits for a person."""

    server: Server
    holds: bool = False
    status: ChangePodStatus = field(default_factory=ChangePodStatus)
    now: float = NOW
    crash: bool = False
    """Whether the process dies after the next request, before it stores anything."""
    told: set[str] = field(default_factory=set)
    """The nodes about which a callback brought a failure that was of use, since the last repetition."""
    approved: bool = False

    def __post_init__(self) -> None:
        self.metrics = BatchMetrics(CollectorRegistry())
        self.release = release()
        if self.holds:
            spec = msgspec.structs.replace(self.release.spec, policy=_HOLD)
            self.release = msgspec.structs.replace(self.release, spec=spec)
        self.server.dies = self.die
        self.restart()

    def restart(self) -> None:
        """The reconciler begins with nothing in memory."""
        caches = SimpleNamespace(releases=SimpleNamespace(get=lambda *_: self.release), workload=lambda _: None)
        self.check = AlterShieldServer(cast(Any, self.server), cast(Any, caches), lambda: self.now, AsyncMock())
        self.skipper = Skipper(self.check, cast(Any, self), self.metrics, lambda: self.now)

    def die(self) -> None:
        if self.crash:
            raise Crash

    @property
    def batch(self) -> ChangePod:
        return change_pod(1, "a", status=self.status)

    async def save_batch(self, _: ChangePod, status: ChangePodStatus) -> ChangePod:
        self.status = status
        return self.batch

    def snapshot(self) -> BatchSnapshot:
        return BatchSnapshot(self.batch, plan(self.release, {SERVER: self.check}))

    async def reconcile(self) -> float | None:
        """One reconcile as BatchReconciler does it. Returns the seconds until the next one."""
        snapshot = self.snapshot()
        for _ in range(20):
            self.status, following = decide(self.status, snapshot, self.now)
            if not following.asks:
                if self.status.status == PodState.EXECUTE_DONE:
                    return await self.skipper.tell(self.batch, self.release)
                return following.after
            made = self.batch
            answers: dict[tuple[str, Phase], Answer] = dict(snapshot.answers)
            for ask in following.asks:
                what = subject(made, self.release, snapshot.plan[0], ask.phase)
                handle = self.status.change_pod_id
                request: Awaitable[Answer] = (
                    self.check.start(what)
                    if ask.step is Step.START
                    else self.check.poll(what, handle, last=ask.step is Step.LAST_POLL)
                )
                answers[ask.key] = await request
            self.die()
            snapshot = replace(snapshot, change_pod=made, answers=answers)
        raise AssertionError("the reconcile does not end")

    async def step(self) -> float | None:
        try:
            return await self.reconcile()
        except Crash:
            self.crash = False
            self.restart()
            return 1.0

    def receive(self, callback: Callback) -> None:
        """A callback arrives, as CallbackReceiver finds its batch and BatchReconciler.receive stores it."""
        state, phase, result = self.status, callback.phase, callback.result
        if state.change_pod_id not in ("", callback.node):
            return
        if awaits_node(state, SERVER_CHECK):
            state = with_node(state, SERVER_CHECK, callback.node)
        if not awaits(state, SERVER_CHECK, phase):
            return
        entry = entry_of(state.checks, SERVER_CHECK, phase)
        assert entry is not None
        if not is_of_this_run(entry, result):
            if callback.passed and not callback.began and entry.state == "Running":
                self.status = with_doubtful_pass(state, SERVER_CHECK, phase)
            return
        if not callback.passed:
            self.told.add(callback.node)
        snapshot = replace(
            self.snapshot(),
            change_pod=change_pod(1, "a", status=state),
            answers={(SERVER_CHECK, phase): result},
        )
        self.status = received(state, snapshot, self.now)

    # the person

    def retry(self) -> None:
        if is_repeatable(self.batch):
            self.status = repeated(self.batch, self.now)
            self.node.results.clear()
            self.told.clear()

    def approve(self) -> None:
        """Overrule a failing verdict, or decide about a batch that waits, as Executor does."""
        if self.verdict != "unpass" and not why_waiting(self.batch):
            return
        self.approved = True
        result = msgspec.structs.replace(self.batch.spec.pod_infos[0], verdict=Verdict.PASS, by="alice", message="fine")
        failed = self.verdict == "unpass"
        status = msgspec.structs.replace(self.status, pod_results=(result,))
        self.status = requested(status, self.now) if failed else status

    @property
    def verdict(self) -> str:
        return next((each.verdict for each in self.status.pod_results), "")

    @property
    def node(self) -> Node:
        return self.server.nodes[self.status.change_pod_id]


EVENTS = st.sampled_from(
    [
        "reconcile", "wait", "wait long", "complete", "deliver", "deliver twice", "reorder", "drop", "duplicate",
        "restart", "crash", "retry", "approve",
    ]
)  # fmt: skip


_WAITS = {"wait": 4, "wait long": 40}


async def _events(world: World, events: Sequence[str]) -> None:
    for event in events:
        match event:
            case "reconcile":
                await world.step()
            case "wait" | "wait long":
                world.now += _WAITS[event]
            case "complete":
                world.server.complete()
            case "restart":
                world.restart()
            case "crash":
                world.crash = True
            case "retry":
                world.retry()
            case "approve":
                if not world.approved:
                    world.approve()
            case _ if world.server.callbacks:
                _under_way(world, event)


def _under_way(world: World, event: str) -> None:
    """Something happens to the callbacks under way."""
    callbacks = world.server.callbacks
    match event:
        case "deliver" | "deliver twice":
            callback = callbacks.pop(0)
            for _ in range(1 + (event == "deliver twice")):
                world.receive(callback)
        case "reorder":
            callbacks.reverse()
        case "drop":
            callbacks.pop(0)
        case "duplicate":
            callbacks.append(callbacks[0])


async def _history(world: World, events: list[str]) -> None:
    await _events(world, events)
    world.crash = False
    for _ in range(200):
        world.server.complete()
        after = await world.step()
        if after is None and why_waiting(world.batch):
            world.approve()
        elif after is None and world.status.status == PodState.EXECUTE_DONE:
            break
        world.now += max(after or 1.0, 0.5)
    while world.server.callbacks:  # those that come late
        world.receive(world.server.callbacks.pop(0))
    await world.step()


Worlds = st.builds(
    lambda pre, post, fates, holds: World(Server(pre, post, fates), holds),
    st.lists(st.booleans(), min_size=1, max_size=3),
    st.booleans(),
    st.lists(st.sampled_from(Fate), max_size=8),
    st.booleans(),
)


_FAILED = ["reconcile", "complete", "deliver", "reconcile"]
_TOO_LATE = ["reconcile", "wait long", "wait long", "wait long", "wait long", "reconcile", "complete"]
BEGINNINGS = st.sampled_from(
    [
        [],
        [*_FAILED, "retry"],
        [*_FAILED, "retry", "reconcile"],
        [*_FAILED, "approve"],
        [*_FAILED, "approve", "crash", "reconcile"],
        [*_TOO_LATE, "retry"],
        [*_TOO_LATE, "retry", "reconcile"],
        ["reconcile", "complete", "duplicate", "deliver", "reconcile", "retry", "crash", "reconcile"],
        ["reconcile", "complete", "duplicate", "deliver", "reconcile", "retry", "reconcile"],
    ]
)


@settings(max_examples=200, deadline=None)
@given(Worlds, BEGINNINGS, st.lists(EVENTS, max_size=20))
def test_server_fails_exactly_the_batches_that_it_says_and_passes_no_other(
    world: World, beginning: list[str], events: list[str]
) -> None:
    events = [*beginning, *events]
    asyncio.run(_history(world, events))
    assert world.status.status == PodState.EXECUTE_DONE, "each state has a deadline"
    if "retry" not in events:
        assert len(world.server.nodes) <= 1, "a batch is submitted once"
    if world.verdict == "pass" and not world.approved:
        assert {(PRE, True), (POST, True)} <= world.node.results, "no pass is invented, nor taken from an earlier run"
    if world.verdict == "unpass":
        assert {(PRE, False), (POST, False)} & world.node.results, (
            "no failure is invented, nor taken from an earlier run"
        )
    if world.status.change_pod_id in world.told and not world.approved:
        assert world.verdict == "unpass", "no failure is lost that a callback told"
    assert (world.server.skips <= 1, world.server.wrong_skips) == (True, 0), "skips come once, and after the check"
    skips = [each.skip.state for each in world.status.checks if each.skip is not None]
    assert not skips or (world.approved and skips[0] in ("Done", "Failed")), "each skip has an end"
    if skips == ["Done"]:
        assert (world.server.skips, world.verdict) == (1, "pass")


@settings(max_examples=200, deadline=None)
@given(st.booleans(), st.booleans(), st.booleans())
def test_without_faults_the_verdict_is_the_servers(pre: bool, post: bool, callbacks: bool) -> None:
    world = World(Server([pre], post, []))
    steps = ["reconcile", "complete", "deliver" if callbacks else "drop"] * 4
    asyncio.run(_history(world, steps))
    assert world.verdict == ("pass" if pre and post else "unpass")


def test_pass_is_found_although_the_answer_that_confirms_the_start_and_the_callback_were_lost() -> None:
    """To finish the batch once more would hide the result."""
    world = World(Server([True], True, [Fate.ANSWERED, Fate.ANSWERED, Fate.ANSWER_LOST]))
    asyncio.run(_history(world, ["reconcile", "complete", "deliver", "reconcile", "complete", "drop", "wait"]))
    assert world.verdict == "pass"


def run(world: World, *events: str) -> World:
    """Let these events happen, and nothing else."""
    asyncio.run(_events(world, events))
    return world


def failed_first(second: bool, *fates: Fate) -> World:
    """The first check failed by a callback, of which a copy is under way, and the person has requested a retry."""
    world = run(World(Server([False, second], True, [])), "reconcile", "complete", "duplicate", "deliver", "reconcile")
    assert (world.status.status, world.verdict) == (PodState.EXECUTE_DONE, "unpass")
    world.server.fates = list(fates)
    return run(world, "retry")


def late_first(first: bool, second: bool) -> World:
    """The batch waits, because the first check ended too late, and the person has requested a retry. Its callback is
    under way."""
    world = run(World(Server([first, second], True, []), holds=True), *_TOO_LATE)
    assert why_waiting(world.batch)
    return run(world, "retry")


def test_stale_failure_of_a_run_whose_failure_is_known_does_not_decide_the_next_run() -> None:
    world = run(failed_first(True), "reconcile", "deliver")
    assert world.verdict == ""
    run(world, "complete", "deliver", "reconcile", "complete", "deliver", "reconcile")
    assert world.verdict == "pass"


def test_stale_failure_of_a_run_of_which_nothing_is_known_does_not_decide_the_next_run() -> None:
    world = run(late_first(False, True), "reconcile", "deliver")
    assert (world.verdict, world.status.status) == ("", PodState.PRE_SUBMITTED)
    run(world, *["complete", "wait", "reconcile"] * 4)
    assert world.verdict == "pass"


def test_stale_pass_does_not_decide_the_next_run() -> None:
    """The server sends it without rules. It sends the same if the second run times out, so the failure that polls
    show does not count either."""
    world = run(late_first(True, False), "reconcile", "deliver")
    assert (world.verdict, world.status.status) == ("", PodState.PRE_SUBMITTED)
    run(world, "complete", "drop", *["wait long", "reconcile"] * 4)
    assert (world.verdict, bool(why_waiting(world.batch))) == ("", True)


def test_callback_while_the_server_has_not_answered_the_resubmission_decides_nothing() -> None:
    world = run(failed_first(True), "deliver")
    assert world.verdict == ""


def test_second_failure_is_told_by_its_own_callback() -> None:
    world = run(failed_first(False), "reconcile", "drop", "complete", "deliver", "reconcile")
    assert (world.verdict, world.server.runs) == ("unpass", 2)


@pytest.mark.parametrize("fate", [Fate.NOT_DELIVERED, Fate.ANSWER_LOST])
def test_resubmission_is_repeated_until_the_server_answers(fate: Fate) -> None:
    world = run(failed_first(True, fate, fate), *["reconcile", "wait"] * 4)
    (entry,) = world.status.checks
    assert (entry.handle, entry.repeated, len(world.server.nodes)) == ("node-1", True, 1)


def test_resubmission_that_is_late_because_no_reconciler_ran_has_the_whole_time() -> None:
    world = run(failed_first(True), *["wait long"] * 10, "reconcile", "wait", "reconcile")
    assert (world.status.status, world.verdict) == (PodState.PRE_SUBMITTED, "")


def test_batch_gets_a_new_node_if_the_server_has_taken_it_as_finished() -> None:
    world = failed_first(True)
    world.server.nodes["node-1"].state = "POST_AOP_SUBMIT"
    run(world, "reconcile")
    (entry,) = world.status.checks
    assert (world.status.change_pod_id, entry.handle, entry.repeated) == ("node-2", "node-2", False)


def test_new_node_has_the_time_of_a_new_check_also_if_its_start_does_not_arrive_at_first() -> None:
    world = run(failed_first(True), *["wait long"] * 4)
    run(world, "retry")
    world.status = msgspec.structs.replace(world.status, retry_time_unix=int(world.now))
    world.server.nodes["node-1"].state = "POST_AOP_SUBMIT"
    world.server.fates = [Fate.ANSWERED, Fate.NOT_DELIVERED]
    run(world, "reconcile", "wait", "reconcile")
    assert world.status.change_pod_id == "node-2"


def test_callback_about_the_earlier_node_does_not_decide_a_batch_whose_new_node_is_not_known() -> None:
    world = failed_first(True, Fate.ANSWERED, Fate.ANSWER_LOST)
    world.server.nodes["node-1"].state = "POST_AOP_SUBMIT"
    run(world, "reconcile", "deliver")
    assert (world.verdict, len(world.server.nodes)) == ("", 2)


def test_doubtful_pass_does_not_become_a_failure_at_the_deadline() -> None:
    """The server says `pass` and shows `fail` after its own timeout."""
    world = run(failed_first(False), "reconcile")
    world.server.callbacks = [Callback("node-1", PRE, True)]
    run(world, "deliver", "complete", *["wait long", "reconcile"] * 4)
    assert (world.verdict, world.status.message) == ("", PodState.PRE_TIMEOUT)


@pytest.mark.parametrize(
    ("fates", "state", "arrived"),
    [
        ([], "Done", 1),
        ([Fate.NOT_DELIVERED], "Done", 1),
        ([Fate.ANSWER_LOST], "Failed", 1),
    ],
)
def test_skip_is_repeated_only_if_it_surely_did_not_arrive(fates: list[Fate], state: str, arrived: int) -> None:
    world = run(World(Server([False], True, [])), "reconcile", "complete", "deliver", "reconcile")
    world.server.fates = list(fates)
    run(world, "approve", "reconcile", "wait long", "reconcile")
    (entry,) = world.status.checks
    assert entry.skip is not None
    assert (entry.skip.state, world.server.skips, world.verdict) == (state, arrived, "pass")


def test_skip_during_which_the_reconciler_died_is_not_repeated() -> None:
    world = run(World(Server([False], True, [])), "reconcile", "complete", "deliver", "reconcile")
    run(world, "approve", "crash", "reconcile", "reconcile")
    (entry,) = world.status.checks
    assert entry.skip is not None
    assert (entry.skip.state, world.server.skips) == ("Failed", 1)
    assert "not known" in entry.skip.reason


def test_skip_is_given_up_if_the_server_cannot_be_reached_for_ten_minutes() -> None:
    world = run(World(Server([False], True, [])), "reconcile", "complete", "deliver", "reconcile")
    world.server.fates = [Fate.NOT_DELIVERED] * 20
    run(world, "approve", *["reconcile", "wait long"] * 17)
    (entry,) = world.status.checks
    assert entry.skip is not None
    assert (entry.skip.state, world.server.skips, world.verdict) == ("Failed", 0, "pass")


def test_skip_is_not_sent_if_a_pod_failed_again_meanwhile() -> None:
    world = run(World(Server([False], True, [])), "reconcile", "complete", "deliver", "reconcile", "approve")
    pod = msgspec.structs.replace(world.batch.spec.pod_infos[0], verdict=Verdict.UNPASS, message="no")
    world.status = msgspec.structs.replace(world.status, pod_results=(pod,))
    run(world, "reconcile")
    (entry,) = world.status.checks
    assert entry.skip is not None
    assert (entry.skip.state, world.server.skips) == ("Failed", 0)


def test_no_skip_is_requested_if_a_rule_may_not_be_ignored() -> None:
    world = run(World(Server([False], True, [])), "reconcile", "complete", "deliver", "reconcile")
    (entry,) = world.status.checks
    rules = (*entry.rules, FailedRule("another", "another", False))
    world.status = msgspec.structs.replace(world.status, checks=(msgspec.structs.replace(entry, rules=rules),))
    run(world, "approve", "reconcile")
    assert (world.status.checks[0].skip, world.server.skips, world.verdict) == (None, 0, "pass")


def test_status_of_the_model_is_one_that_the_api_server_stores() -> None:
    world = World(Server([True], True, []))
    asyncio.run(_history(world, []))
    assert msgspec.json.decode(msgspec.json.encode(world.status), type=ChangePodStatus) == world.status
