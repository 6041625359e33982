"""A model of gatekeepers, leaders and API servers: the counts hold whatever happens between any two steps.

Gatekeepers have caches of any age and clocks that differ. They are killed between a write and its answer, requests are
doubled, and answers take effect late or never. Leaders confirm counts with clocks of their own, and stop halfway.
"""

from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from altershield.api.flow_control import BreakerMode, BreakerState, FlowControlStatus, LimitRule, PodDeletionFlowControl
from altershield.flow_control import breaker as breakers
from altershield.flow_control import decision, settling, windows
from altershield.flow_control.decision import Working, in_order, step, undo
from altershield.flow_control.deletion import Deletion
from altershield.flow_control.rules import rules_of
from altershield.flow_control.settling import Question, Seen
from tests.unit.altershield.flow_control.builders import NOW, deletion, policy

CLOCKS = (-1.0, 0.0, 1.0)
"""The errors of the clocks of three gatekeepers. Two leaders have the first and the last one."""
IN_EFFECT = 34.0
PODS = 5
AFTER = st.sampled_from([0.0, 0.0, 2.5, 6.0, 21.0, 36.0])
"""Seconds that pass before a step."""


@dataclass(eq=False)
class Answer:
    """A request on its way through a gatekeeper, or its answer. `since`: when the API server began to wait. `admitted`:
    the times of the counts that it relies on, by policy."""

    deletion: Deletion
    gatekeeper: int
    since: float
    left: list[str]
    admitted: dict[str, float] = field(default_factory=dict)
    counted: list[str] = field(default_factory=list)
    base: PodDeletionFlowControl | None = None
    """The policy that the present decision rests on; None: not decided yet."""
    live: bool = False
    """The next decision reads the API server, because of a conflict."""
    undoing: bool = False


@dataclass
class Leader:
    error: float
    policy: str = ""
    questions: list[Question] = field(default_factory=list)
    read: dict[str, Seen] = field(default_factory=dict)
    base: PodDeletionFlowControl | None = None
    live: bool = False


class Model(RuleBasedStateMachine):
    breaker = BreakerMode.OFF

    def __init__(self) -> None:
        super().__init__()
        self.now = float(NOW)
        self.versions: dict[str, list[PodDeletionFlowControl]] = {}
        for each in (
            policy("60s/2", "90s/3", name="a", breaker=self.breaker, cooldown="30s"),
            policy("40s/1", name="b"),
        ):
            self.versions[each.metadata.name] = [each]
        self.caches: list[dict[str, int]] = [dict.fromkeys(self.versions, 0) for _ in CLOCKS]
        self.alive = [f"p{number}" for number in range(PODS)]
        self.created = PODS
        self.counted_at: dict[tuple[str, str], float] = {}
        """When a policy counted a pod last, true time."""
        self.deleted: dict[str, list[tuple[str, float]]] = {name: [] for name in self.versions}
        """For each policy, the pods that were deleted, and when the count was made that admitted it."""
        self.requests: list[Answer] = []
        self.answers: list[Answer] = []
        self.leaders = [Leader(CLOCKS[0]), Leader(CLOCKS[-1])]
        self.claims = 0

    # the API server

    def stored(self, name: str) -> PodDeletionFlowControl:
        return self.versions[name][-1]

    def put(self, base: PodDeletionFlowControl, status: FlowControlStatus) -> bool:
        """Write a status. False: the policy has changed since `base`."""
        name = base.metadata.name
        if self.stored(name).metadata.resource_version != base.metadata.resource_version:
            return False
        self.store(msgspec.structs.replace(base, status=status))
        return True

    def store(self, changed: PodDeletionFlowControl) -> None:
        versions = self.versions[changed.metadata.name]
        metadata = msgspec.structs.replace(changed.metadata, resource_version=str(len(versions) + 1))
        stored = msgspec.structs.replace(changed, metadata=metadata)
        versions.append(msgspec.json.decode(msgspec.json.encode(stored), type=PodDeletionFlowControl))

    # requests

    @rule(
        pod=st.integers(0, PODS - 1), gatekeeper=st.integers(0, 2), dry=st.sampled_from([False] * 5 + [True]),
        both=st.booleans(),
        steps=st.sampled_from([0, 1, 2, 9, 9]),
    )  # fmt: skip
    def ask(self, pod: int, gatekeeper: int, dry: bool, both: bool, steps: int) -> None:
        """The API server asks a gatekeeper about a pod, possibly about the same pod as another request. The gatekeeper
        does the first steps at once."""
        uid = self.alive[pod]
        if len(self.requests) > 5:
            return
        self.claims += 1
        names = ["a", "b"] if both else ["a"]
        asked = deletion(uid, claim=str(self.claims), dry_run=dry, shared=both)
        cached = [self.versions[name][self.caches[gatekeeper][name]] for name in names]
        order = in_order(cached, asked, self.now + CLOCKS[gatekeeper])
        request = Answer(asked, gatekeeper, self.now, [each.metadata.name for each in order])
        self.requests.append(request)
        while steps and request in self.requests:
            self.go_on(self.requests.index(request))
            steps -= 1

    @rule(gatekeeper=st.integers(0, 2), both=st.booleans(), first=st.integers(0, PODS - 1), after=AFTER)
    def ask_about_many(self, gatekeeper: int, both: bool, first: int, after: float) -> None:
        """A gatekeeper with new caches decides about several pods, which uses up the limits."""
        self.now += after
        self.refresh_cache(gatekeeper, 1.0)
        for pod in range(PODS):
            self.ask((first + pod) % PODS, gatekeeper, False, both, 9)

    @precondition(lambda self: self.requests)
    @rule(number=st.integers(0, 5))
    def go_on(self, number: int) -> None:
        """One step of a request: decide on the cache or, after a conflict, on what the API server has; or write."""
        request = self.requests[number % len(self.requests)]
        if request.undoing:
            self.undo(request)
        elif not request.left:
            self.requests.remove(request)
            self.answers.append(request)
        elif request.base is None:
            name = request.left[0]
            newest = len(self.versions[name]) - 1
            if request.live:
                self.caches[request.gatekeeper][name] = newest
            request.base = self.versions[name][self.caches[request.gatekeeper][name]]
        else:
            self.write(request, request.base)

    def write(self, request: Answer, base: PodDeletionFlowControl) -> None:
        """Decide on `base` and write."""
        name, uid, now = base.metadata.name, request.deletion.uid, self.now + CLOCKS[request.gatekeeper]
        request.base = None
        done = step(base, [request.deletion], now)
        (verdict,) = done.verdicts
        if request.deletion.dry_run:
            assert done.status is None
        if done.status is not None and not self.put(base, done.status):
            request.live = True
            return
        if verdict.refusal:
            request.undoing = bool(request.counted)
            if not request.undoing:
                self.requests.remove(request)
            return
        request.left.remove(name)
        if request.deletion.dry_run:
            return
        if done.status is not None:
            self.caches[request.gatekeeper][name] = len(self.versions[name]) - 1
            before = base.status.pending.get(uid)
            after = self.stored(name).status.pending[uid]
            if before is None or before.time != after.time or uid not in base.status.pending:
                self.counted_at[name, uid] = self.now
                self.check_limits(name, uid)
        if verdict.counted:
            request.counted.append(name)
        request.admitted[name] = self.counted_at[name, uid]

    def check_limits(self, name: str, uid: str) -> None:
        """A count was made: with it, no window of true time has more deletions than its limit, if every answer that can
        still take effect does."""
        counts = dict(self.deleted[name])
        for each in (*self.answers, *self.requests):
            if name in each.admitted and self.now <= each.since + IN_EFFECT and not each.undoing:
                pod = each.deletion.uid
                counts[pod] = max(counts.get(pod, 0.0), each.admitted[name])
        counts[uid] = self.now
        for limit in rules_of(self.stored(name).spec):
            inside = [pod for pod, time in counts.items() if time > self.now - limit.seconds]
            assert len(inside) <= limit.limit, (name, str(limit), inside)

    def undo(self, request: Answer) -> None:
        name = request.counted[-1]
        base = self.stored(name) if request.live else self.versions[name][self.caches[request.gatekeeper][name]]
        request.live = False
        status = undo(base, request.deletion.uid, request.deletion.claim, self.now + CLOCKS[request.gatekeeper])
        if status is not None and not self.put(base, status):
            request.live = True
            return
        request.counted.pop()
        if not request.counted:
            self.requests.remove(request)

    @precondition(lambda self: self.requests or self.answers)
    @rule(number=st.integers(0, 20), happens=st.sampled_from([True, True, False]), kill=st.booleans())
    def take_effect(self, number: int, happens: bool, kill: bool) -> None:
        """The API server deletes the pod. Or another webhook, a budget or a conflict refuses this, or the gatekeeper is
        killed before it answers."""
        if self.requests and (kill or not self.answers):
            del self.requests[number % len(self.requests)]
            return
        answer = self.answers.pop(number % len(self.answers))
        uid = answer.deletion.uid
        if not happens or uid not in self.alive or answer.deletion.dry_run or self.now > answer.since + IN_EFFECT:
            return
        for name, time in answer.admitted.items():
            self.deleted[name].append((uid, time))
        self.alive.remove(uid)
        self.alive.append(f"p{self.created}")
        self.created += 1

    # the others

    @rule(gatekeeper=st.integers(0, 2), share=st.sampled_from([0.5, 1.0, 1.0]))
    def refresh_cache(self, gatekeeper: int, share: float) -> None:
        for name, versions in self.versions.items():
            known = self.caches[gatekeeper][name]
            self.caches[gatekeeper][name] = known + int((len(versions) - 1 - known) * share)

    @rule(
        leader=st.integers(0, 1),
        name=st.sampled_from(["a", "a", "b"]),
        steps=st.sampled_from([1, 2, 9, 9]),
        after=AFTER,
    )
    def lead(self, leader: int, name: str, steps: int, after: float) -> None:
        """Some steps of a leader. Another one may be at it too."""
        self.now += after
        for _ in range(steps):
            self.lead_on(self.leaders[leader], name)

    def lead_on(self, found: Leader, name: str) -> None:
        """One step: list the pods to read, read one, take the policy, or decide and write."""
        now = self.now + found.error
        if not found.policy:
            found.policy = name
            found.questions = settling.questions(self.stored(name), {}, now)
        elif found.questions:
            question = found.questions.pop()
            if question.uid not in self.alive:
                found.read[question.uid] = Seen.ENDING
            elif question.decisive:
                found.read[question.uid] = Seen.ALIVE
        elif found.base is None:
            found.base = self.stored(found.policy)
        else:
            work = Working(found.base, now)
            settling.settle(work, found.read)
            if self.put(found.base, work.status()):
                found.policy, found.read = "", {}
            found.base = None

    @precondition(lambda self: self.breaker == BreakerMode.MANUAL)
    @rule(whole=st.booleans())
    def reset(self, whole: bool) -> None:
        stored = self.stored("a")
        old = stored.status.breaker
        new = (
            breakers.reset_by("ann", int(self.now))
            if whole
            else msgspec.structs.replace(old, state=BreakerState.CLOSED)
        )
        self.store(msgspec.structs.replace(stored, status=msgspec.structs.replace(stored.status, breaker=new)))

    @rule(limit=st.integers(2, 4))
    def change_the_interval(self, limit: int) -> None:
        """Only a longer limit or interval than before, so that what was admitted before fits."""
        stored = self.stored("b")
        first = stored.spec.limit_rules[0]
        if limit > first.limit:
            spec = msgspec.structs.replace(stored.spec, limit_rules=(LimitRule(first.interval, limit),))
            self.store(msgspec.structs.replace(stored, spec=spec))

    @invariant()
    def windows_are_consistent(self) -> None:
        for versions in self.versions.values():
            status = versions[-1].status
            for window in status.windows:
                assert window.used == sum(window.buckets.values())
                assert window.used >= 0

    def teardown(self) -> None:
        """Every count of a deletion that did not happen is given back, and in the end a deletion passes."""
        self.requests.clear()
        self.answers.clear()
        self.now += 45.0
        for name in self.versions:
            base = self.stored(name)
            read = {uid: Seen.ALIVE if uid in self.alive else Seen.ENDING for uid in base.status.pending}
            work = Working(base, self.now)
            settling.settle(work, read)
            assert self.put(base, work.status())
            assert self.stored(name).status.pending == {}
            for tally in work.tallies:
                longest = tally.rule.seconds + tally.size + 6
                really = [uid for uid, _ in self.deleted[name] if self.counted_at[name, uid] > self.now - longest]
                assert tally.used <= len(really), (name, str(tally.rule), tally.used, really)
        self.now += 200.0
        if self.breaker != BreakerMode.MANUAL or self.stored("a").status.breaker.state == BreakerState.CLOSED:
            assert step(self.stored("a"), [deletion("last")], self.now).verdicts[0].refusal == ""
        assert step(self.stored("b"), [deletion("last")], self.now).verdicts[0].refusal == ""


QUICK = settings(
    max_examples=40,
    stateful_step_count=40,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.generate,),
)


@pytest.mark.parametrize("mode", list(BreakerMode))
def test_counts_never_exceed_a_window_and_every_unused_count_comes_back(mode: BreakerMode) -> None:
    class ModelOfMode(Model):
        breaker = mode

    run_state_machine_as_test(ModelOfMode, settings=QUICK)


def write_without_comparing(self: Model, base: PodDeletionFlowControl, status: FlowControlStatus) -> bool:
    self.store(msgspec.structs.replace(base, status=status))
    return True


@pytest.mark.parametrize(
    ("where", "name", "without"),
    [
        (windows, "CLOCK_ERROR", -2),
        (Model, "put", write_without_comparing),
        (decision, "_repeat", lambda work, deletion, known: decision.Verdict()),
        (settling, "settle", lambda work, read: []),
    ],
    ids=["windows are no longer than intervals", "writes do not compare", "repetitions do not move", "no leader"],
)
def test_model_finds_the_hazard_if_its_cure_is_taken_out(
    monkeypatch: pytest.MonkeyPatch, where: Any, name: str, without: Any
) -> None:
    monkeypatch.setattr(where, name, without)
    with pytest.raises(AssertionError):
        run_state_machine_as_test(Model, settings=settings(QUICK, max_examples=400))
