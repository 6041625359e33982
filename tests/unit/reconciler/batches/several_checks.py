"""A batch with several checks, whose answers the test gives."""

from dataclasses import dataclass, field

import msgspec
from hypothesis import strategies as st

from altershield.api.change_pod import ChangePodStatus, PodState
from altershield.api.check_results import CheckState
from altershield.api.check_specs import CheckSpec, HttpCheck, OnUnknown, Phase, PrometheusCheck, ServerCheck
from altershield.api.meta import find_condition
from reconciler.batches.check_run import Answer, Planned, Step
from reconciler.batches.repetition import NO_SOAK, Soak
from reconciler.batches.transitions import BatchSnapshot, Next, decide, received
from reconciler.checks.check import Fail, Lost, NotStarted, Pass, Pending, Started, Unknown, entry_of
from tests.unit.altershield.releases.builders import NOW, change_pod

PRE, POST = Phase


def http(name: str = "smoke", *phases: Phase, on_unknown: OnUnknown = OnUnknown.PASS, timeout: int = 60) -> Planned:
    """A check whose start must not be repeated."""
    spec = CheckSpec(
        name, phases or (POST,), timeout_seconds=timeout, on_unknown=on_unknown, http=HttpCheck("http://a.b.svc")
    )
    return Planned(spec)


def prometheus(name: str = "errors", *phases: Phase, on_unknown: OnUnknown = OnUnknown.PASS) -> Planned:
    """A check whose start may be repeated."""
    spec = CheckSpec(
        name, phases or (POST,), timeout_seconds=60, on_unknown=on_unknown, prometheus=PrometheusCheck("", "up")
    )
    return Planned(spec, repeatable=frozenset(Phase))


SERVER = Planned(CheckSpec(name="gate", server=ServerCheck()), repeatable=frozenset({POST}))


@dataclass
class Batch:
    """A batch whose checks answer as told. `said`: by name and phase, the answers that are left, the last of which
    is repeated."""

    plan: tuple[Planned, ...]
    said: dict[tuple[str, Phase], list[Answer]]
    status: ChangePodStatus = field(default_factory=ChangePodStatus)
    now: float = NOW
    asked: list[tuple[str, Phase, Step]] = field(default_factory=list)
    """All requests so far."""
    given: dict[tuple[str, Phase], list[Answer]] = field(default_factory=dict)
    release_began: float = 0.0
    soak: Soak = NO_SOAK
    crash_before: int = -1
    """Before which write the process dies, counted from 0."""
    writes: int = 0

    def reconcile(self) -> Next | None:
        """One reconcile as BatchReconciler does it; None if it crashed."""
        answers: dict[tuple[str, Phase], Answer] = {}
        for _ in range(20):
            made = change_pod(1, *"ab", status=self.status)
            snapshot = BatchSnapshot(made, self.plan, answers, release_began=self.release_began, soak=self.soak)
            state, following = decide(self.status, snapshot, self.now)
            if state != self.status:
                self.writes += 1
                if self.writes - 1 == self.crash_before:
                    return None
                self.status = state
            if not following.asks:
                return following
            for ask in following.asks:
                answers[ask.key] = self._answer(*ask.key, ask.step)
        raise AssertionError("the reconcile does not end")

    def _answer(self, name: str, phase: Phase, step: Step) -> Answer:
        self.asked.append((name, phase, step))
        left = self.said[name, phase]
        starts = isinstance(left[0], Started | NotStarted | Lost)
        if (step is Step.START) != starts and not isinstance(left[0], Pass | Fail | Unknown):
            answer: Answer = Started("handle") if step is Step.START else Pending()
        else:
            answer = left.pop(0) if len(left) > 1 else left[0]
        self.given.setdefault((name, phase), []).append(answer)
        return answer

    def receive(self, name: str, phase: Phase, result: Pass | Fail | Unknown) -> bool:
        """A callback as BatchReconciler stores it; whether it changes something."""
        found = entry_of(self.status.checks, name, phase)
        if found is None or found.state not in (CheckState.RUNNING, CheckState.UNKNOWN):
            return False
        answers: dict[tuple[str, Phase], Answer] = {(name, phase): result}
        made = change_pod(1, *"ab", status=self.status)
        snapshot = BatchSnapshot(made, self.plan, answers, release_began=self.release_began, soak=self.soak)
        status = received(self.status, snapshot, self.now)
        if status.checks == self.status.checks:
            return False
        self.status = status
        self.given.setdefault((name, phase), []).append(result)
        return True

    def run(self, seconds: float = 1000) -> "Batch":
        """Reconcile whenever something is due, for so long."""
        until = self.now + seconds
        while self.now < until:
            following = self.reconcile()
            if following is not None and following.after is None:
                break
            self.now += max(following.after or 0.0, 0.01) if following is not None else 1.0
        return self

    @property
    def outcome(self) -> tuple[str, str, str]:
        """State, message, and the verdict on the pods."""
        verdicts = {each.verdict for each in self.status.pod_results} or {""}
        (verdict,) = verdicts
        return self.status.status, self.status.message, verdict

    @property
    def verified(self) -> tuple[str, str, str]:
        condition = find_condition(self.status.conditions, "Verified")
        assert condition is not None
        return condition.status, condition.reason, condition.message


def batch(*checks: tuple[Planned, list[Answer]]) -> Batch:
    said = {(planned.spec.name, phase): list(answers) for planned, answers in checks for phase in Phase}
    return Batch(tuple(planned for planned, _ in checks), said)


OK: list[Answer] = [Started("1"), Pass("fine")]
BAD: list[Answer] = [Started("1"), Fail("3 of 9 requests failed")]
NOTHING: list[Answer] = [Started("1"), Pending("no data")]


def msgspec_replaced(planned: Planned, on_unknown: OnUnknown) -> Planned:
    spec = msgspec.structs.replace(planned.spec, on_unknown=on_unknown)
    return Planned(spec, planned.availability, planned.repeatable)


STARTS = st.sampled_from([Started("h"), NotStarted("refused"), Lost("timeout"), Pass("p"), Fail("f"), Unknown("u")])
POLLS = st.sampled_from([Pending("wait"), Pass("p"), Fail("f"), Unknown("u")])


@st.composite
def behaviours(draw: st.DrawFn) -> Batch:
    plan, said = [], {}
    for name in draw(st.sampled_from(["a", "ab", "abc"])):
        phases = draw(st.sampled_from([(PRE,), (POST,), (PRE, POST)]))
        on_unknown = draw(st.sampled_from(OnUnknown))
        make = draw(st.sampled_from([http, prometheus]))
        plan.append(make(name, *phases, on_unknown=on_unknown))
        for phase in Phase:
            said[name, phase] = [*draw(st.lists(STARTS, max_size=2)), *draw(st.lists(POLLS, min_size=1, max_size=3))]
    return Batch(tuple(plan), said, crash_before=draw(st.integers(-1, 8)))


Callback = tuple[int, tuple[str, Phase], Pass | Fail | Unknown]
"""After how many seconds it comes, about which check, and its verdict."""


@st.composite
def later_answers(draw: st.DrawFn) -> tuple[Batch, list[Callback]]:
    """Checks whose receivers mostly answer by callbacks."""
    plan, said = [], {}
    for name in draw(st.sampled_from(["a", "ab", "abc"])):
        phases = draw(st.sampled_from([(PRE,), (POST,), (PRE, POST)]))
        make = draw(st.sampled_from([http, prometheus]))
        plan.append(make(name, *phases, on_unknown=draw(st.sampled_from(OnUnknown))))
        for phase in phases:
            start = draw(st.sampled_from([Started("h"), Started("h", unique=True), Lost("timeout")]))
            end = draw(st.sampled_from([[], [], [Pass("p")], [Fail("f")]]))
            said[name, phase] = [start, Pending("wait"), *end]
    keys = [(each.spec.name, phase) for each in plan for phase in each.spec.phases]
    results = st.sampled_from([Pass("p"), Pass("p"), Fail("f"), Unknown("u")])
    callbacks = draw(st.lists(st.tuples(st.integers(1, 150), st.sampled_from(keys), results), min_size=1, max_size=8))
    made = Batch(tuple(plan), said, crash_before=draw(st.integers(-1, 8)))
    return made, sorted(callbacks, key=lambda each: each[0])


def assert_consistent(done: Batch) -> None:
    """The verdict on the pods is the one that the answers of the checks have, and nothing is started too often."""
    entries = done.status.checks
    by_name = {each.spec.name: each.spec for each in done.plan}
    failed = [each for each in entries if each.state == CheckState.FAILED]
    unknown = [each for each in entries if each.state == CheckState.UNKNOWN]
    verdict = {each.verdict for each in done.status.pod_results} or {""}

    held = any(by_name[each.name].on_unknown is OnUnknown.HOLD for each in unknown)
    assert done.status.status == PodState.EXECUTE_DONE or held, "every batch ends, or waits for a person"
    for (name, phase), answers in done.given.items():
        starts = [step for n, p, step in done.asked if (n, p, step) == (name, phase, Step.START)]
        refused = [each for each in answers if isinstance(each, NotStarted)]
        if by_name[name].http is not None:
            assert len(starts) <= len(refused) + 1, "a start that may have had an effect is not repeated"
    if verdict == {"pass"}:
        wanted = {(spec.name, phase) for spec in by_name.values() for phase in spec.phases}
        assert {(each.name, each.phase) for each in entries if each.state == CheckState.PASSED} == wanted
        assert all(Pass("p") in done.given[key] for key in wanted)
    if verdict == {"unpass"}:
        assert failed or any(by_name[each.name].on_unknown is OnUnknown.FAIL for each in unknown)
        assert all(Fail("f") in done.given[each.name, Phase(each.phase)] for each in failed)
    if failed:
        assert verdict == {"unpass"}
