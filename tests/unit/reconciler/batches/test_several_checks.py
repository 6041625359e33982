"""Batches with several checks: what each outcome leads to, and that no answer is lost or invented."""

from dataclasses import dataclass, field

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from altershield.api.change_pod import ChangePodStatus, PodState
from altershield.api.check_results import CheckResult, CheckState
from altershield.api.check_specs import CheckSpec, HttpCheck, OnUnknown, Phase, PrometheusCheck, ServerCheck
from altershield.api.condition_types import Giver
from altershield.api.meta import find_condition
from altershield.api.policy import MAX_CHECKS
from reconciler.batches.check_run import Answer, Planned, Step, with_result
from reconciler.batches.repetition import NO_SOAK, Soak
from reconciler.batches.transitions import BatchSnapshot, Next, decide, received
from reconciler.checks.check import Fail, Lost, NotStarted, Pass, Pending, Started, Unknown, entry_of
from reconciler.cluster.verdicts import undecided
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


def test_all_checks_pass_and_each_is_started_once() -> None:
    done = batch((http(), OK), (prometheus(), OK)).run()
    assert done.outcome == ("ExecuteDone", "PostFinish", "pass")
    assert done.status.pod_results[0].message == "smoke: fine; errors: fine"
    starts = [name for name, _, step in done.asked if step is Step.START]
    assert starts.count("smoke") == 1
    assert [each.phase for each in done.status.checks] == ["Post", "Post"]


@pytest.mark.parametrize("other", [OK, NOTHING])
def test_one_failed_check_fails_the_batch_and_names_itself(other: list[Answer]) -> None:
    done = batch((http(), other), (prometheus(), BAD)).run()
    assert done.outcome == ("ExecuteDone", "PostFinish", "unpass")
    assert done.verified[:2] == ("False", Giver.CHECK)
    assert "errors: 3 of 9 requests failed" in done.verified[2]
    assert all(each.state != CheckState.RUNNING for each in done.status.checks)


def test_failure_before_the_batch_stops_the_checks_after_it() -> None:
    done = batch((http("before", PRE), BAD), (prometheus("after", POST), OK)).run()
    assert done.outcome == ("ExecuteDone", "PreFailed", "unpass")
    assert {name for name, _, _ in done.asked} == {"before"}


def test_phase_after_the_batch_begins_when_all_checks_before_it_passed() -> None:
    done = batch((http("a", PRE), OK), (http("b", PRE), NOTHING), (prometheus("c", POST), OK)).run()
    assert done.outcome == ("ExecuteDone", "PreTimeout", "")
    began = {each.name: each.start_time_unix for each in done.status.checks}
    assert began["c"] >= began["b"] + 60


@pytest.mark.parametrize(
    ("on_unknown", "outcome", "reason"),
    [
        (OnUnknown.PASS, ("ExecuteDone", "PostTimeout", ""), ("True", "NotChecked")),
        (OnUnknown.FAIL, ("ExecuteDone", "PostFinish", "unpass"), ("False", Giver.CHECK)),
        (OnUnknown.HOLD, ("PostSubmitted", "", ""), ("Unknown", "Held")),
    ],
)
def test_check_without_a_result_leads_to_what_the_policy_says(
    on_unknown: OnUnknown, outcome: tuple[str, str, str], reason: tuple[str, str]
) -> None:
    done = batch((http("smoke", on_unknown=on_unknown), NOTHING), (prometheus(), OK)).run()
    assert done.outcome == outcome
    assert done.verified[:2] == reason
    if reason[1] != "NotChecked":
        assert "no data" in done.verified[2]


def test_held_batch_ends_with_the_verdict_of_a_person() -> None:
    held = batch((http(on_unknown=OnUnknown.HOLD), NOTHING)).run()
    results = tuple(
        msgspec.structs.replace(pod, verdict="pass") for pod in change_pod(1, *"ab", status=held.status).spec.pod_infos
    )
    held.status = msgspec.structs.replace(held.status, pod_results=results)
    assert held.run().outcome == ("ExecuteDone", "PostFinish", "pass")
    assert held.verified[:2] == ("True", "PodsPassed")


def test_held_batch_goes_on_if_the_result_comes_late() -> None:
    held = batch((SERVER, [Started("n"), Pass()])).run(1)
    held.plan = (msgspec_replaced(SERVER, OnUnknown.HOLD),)
    held.said["gate", PRE] = [Pending()]
    held.run()
    assert held.verified[:2] == ("Unknown", "Held")
    late = BatchSnapshot(change_pod(1, *"ab", status=held.status), held.plan, {("gate", PRE): Pass()})
    held.status = received(held.status, late, held.now)
    assert held.run().outcome == ("ExecuteDone", "PostFinish", "pass")


def msgspec_replaced(planned: Planned, on_unknown: OnUnknown) -> Planned:
    spec = msgspec.structs.replace(planned.spec, on_unknown=on_unknown)
    return Planned(spec, planned.availability, planned.repeatable)


def test_server_is_not_asked_for_its_second_check_if_it_has_no_result_of_the_first() -> None:
    done = batch((SERVER, NOTHING), (prometheus(), OK)).run()
    assert ("gate", POST, Step.START) not in done.asked
    assert done.outcome == ("ExecuteDone", "PreTimeout", "")
    assert {(each.name, each.state) for each in done.status.checks} == {("gate", "Unknown"), ("errors", "Passed")}


def test_start_that_never_arrives_ends_at_the_deadline_of_its_phase() -> None:
    done = batch((http(), [NotStarted("no such host")])).run()
    assert done.outcome == ("ExecuteDone", "PostFailed", "")
    assert 60 <= done.now - NOW <= 70


def test_start_whose_outcome_is_not_known_is_made_once() -> None:
    done = batch((http(), [Lost("timeout")])).run()
    assert done.outcome == ("ExecuteDone", "PostFailed", "")
    assert len(done.asked) == 1


@pytest.mark.parametrize("state", [CheckState.PASSED, CheckState.FAILED])
def test_result_is_not_replaced_by_a_second_one(state: CheckState) -> None:
    entry = CheckResult("smoke", POST, state, "first")
    for answer in (Pass("second"), Fail("second"), Unknown("second")):
        assert with_result(entry, answer, NOW) == entry


def test_checks_of_earlier_releases_of_the_version_are_forgotten() -> None:
    """The version was released again and again while a batch waited, each time with another DefensePolicy. The API
    server refuses a longer list, so the batch would never end."""
    made = Batch((), {})
    for round_ in range(4):
        plan = tuple(http(f"check-{round_}-{number}", *Phase) for number in range(MAX_CHECKS))
        made.plan, made.release_began = plan, made.now
        made.said = {(each.spec.name, phase): [Lost("timeout")] for each in plan for phase in Phase}
        made.run(90)
        assert made.status.status != PodState.EXECUTE_DONE
        assert {each.name for each in made.status.checks} == {each.spec.name for each in plan}
        msgspec.convert(msgspec.to_builtins(made.status), ChangePodStatus)  # which checks the length of the list
    last = (prometheus("last"),)
    made.plan, made.said = last, {("last", phase): list(OK) for phase in Phase}
    assert made.run().outcome == ("ExecuteDone", "PostFinish", "pass"), "the unknown ones do not count"


# any behaviour of the checks, with a crash before any write

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


@settings(max_examples=400, deadline=None)
@given(behaviours())
def test_no_verdict_is_lost_or_invented_and_every_batch_ends(made: Batch) -> None:
    assert_consistent(made.run(2000))


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


@settings(max_examples=400, deadline=None)
@given(later_answers())
def test_no_verdict_is_lost_or_invented_if_callbacks_come_at_any_time(
    drawn: tuple[Batch, list[Callback]],
) -> None:
    """Early, late, twice and contradicting ones, between any two writes of the leader."""
    made, callbacks = drawn
    failed = False
    for after, (name, phase), result in callbacks:
        made.run(NOW + after - made.now)
        made.now = max(made.now, NOW + after)
        before = made.status
        awaited = entry_of(before.checks, name, phase)
        open_ = awaited is not None and awaited.state in (CheckState.RUNNING, CheckState.UNKNOWN)
        changed = made.receive(name, phase, result)
        assert changed or made.status == before
        if awaited is not None and awaited.state == CheckState.RUNNING:
            assert changed, "a check that runs takes any result"
        if isinstance(result, Fail) and open_ and undecided(before, change_pod(1, *"ab", status=before)):
            assert changed, "a failure of a batch without a verdict counts, also a late one"
            failed = True
    done = made.run(2000)
    if failed:
        assert {each.verdict for each in done.status.pod_results} == {"unpass"}
    assert_consistent(done)


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


@pytest.mark.parametrize("phase", Phase)
def test_check_that_begins_late_because_no_reconciler_ran_is_asked_nevertheless(phase: Phase) -> None:
    """The batch was created, and the reconciler stopped for longer than the timeout of its checks."""
    batch = Batch((prometheus("errors", phase),), {("errors", phase): [Fail("5 % errors")]}, now=NOW + 1000)
    batch.run()
    assert [each.verdict for each in batch.status.pod_results] == ["unpass", "unpass"]
    assert batch.status.checks[0].state == CheckState.FAILED


def test_check_that_was_not_started_because_no_reconciler_ran_begins_again_with_its_whole_time() -> None:
    """The reconciler stopped after it stored the begin of the check, for longer than the timeout."""
    stopped = Batch((prometheus(),), {("errors", POST): [Lost()]})
    stopped.reconcile()
    (begun,) = stopped.status.checks
    assert (begun.state, begun.handle) == ("Running", "")
    answers: list[Answer] = [NotStarted("it does not exist"), Started("1", unique=True), Pending(), Pass("fine")]
    later = Batch(stopped.plan, {("errors", POST): answers}, status=stopped.status, now=NOW + 1000)
    later.reconcile()
    (begun,) = later.status.checks
    assert (begun.state, begun.handle, begun.start_time_unix) == ("Running", "1", NOW + 1000)
    assert later.run().outcome == ("ExecuteDone", "PostFinish", "pass")


def test_check_whose_start_is_refused_until_its_deadline_does_not_begin_again() -> None:
    refused = Batch((prometheus(),), {("errors", POST): [NotStarted("too many requests")]})
    assert refused.run().outcome == ("ExecuteDone", "PostFailed", "")
    assert refused.status.checks[0].reason == "too many requests"
    assert 60 <= refused.now - NOW <= 100


def test_check_that_may_be_started_once_only_does_not_begin_after_its_deadline() -> None:
    batch = Batch((http("smoke", PRE),), {("smoke", PRE): [Fail("late")]}, now=NOW + 1000)
    batch.run()
    assert batch.asked == []
    assert batch.status.checks[0].reason == "the check could not be started in time"


@pytest.mark.parametrize("unique", [False, True])
def test_handle_that_a_second_start_may_not_find_is_stored_at_once(unique: bool) -> None:
    """A Job that is deleted and replaced by one of the same name, within seconds, is not believed."""
    batch = Batch((prometheus(),), {("errors", POST): [Started("uid", unique=unique), Pending()]})
    batch.reconcile()
    assert batch.status.checks[0].handle == ("uid" if unique else "")


def test_answer_of_a_poll_may_replace_the_handle() -> None:
    """After the answer that a callback comes, the request is not repeated."""
    batch = Batch((prometheus(),), {("errors", POST): [Started("h", unique=True), Pending(handle="callback")]})
    batch.reconcile()
    batch.now += 10
    batch.reconcile()
    assert batch.status.checks[0].handle == "callback"


def test_callback_does_not_begin_a_check_that_only_the_leader_may_start() -> None:
    """Its start is made once. Stored as begun by a replica that sends no requests, it would never be asked."""
    waiting = batch((http("a", PRE), [Started("h"), Pending()]), (http("b", POST), OK))
    waiting.reconcile()
    assert waiting.receive("a", PRE, Pass("p"))
    assert [(each.name, each.state) for each in waiting.status.checks] == [("a", "Passed")]
    assert waiting.run().outcome == ("ExecuteDone", "PostFinish", "pass")
    assert ("b", POST, Step.START) in waiting.asked
