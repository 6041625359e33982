"""Checks before a step, and after a release: they are tried again, and they decide."""

from dataclasses import dataclass, field, replace

import msgspec
import pytest

from altershield.api.change_pod import ChangePod, ChangePodSpec, ChangePodStatus, PodState
from altershield.api.check_results import CheckState
from altershield.api.check_specs import CheckPhase, CheckSpec, HttpCheck, OnUnknown, Phase, ServerCheck
from altershield.api.condition_types import ConditionType, Giver
from altershield.api.meta import Condition, find_condition
from kube_base.meta import ObjectMeta
from reconciler.batches import release_checks
from reconciler.batches.check_run import Answer, Planned
from reconciler.batches.transitions import BatchSnapshot, Next, decide, received
from reconciler.checks.check import Fail, NotStarted, Pass, Pending, Started, Unknown
from tests.unit.altershield.releases.builders import NOW

PRE_RELEASE, PRE_BATCH, _, POST_RELEASE = CheckPhase
REPEATABLE = frozenset(Phase)


def http(name: str = "smoke", on_unknown: OnUnknown | None = None, every: int | None = None) -> Planned:
    spec = CheckSpec(
        name,
        timeout_seconds=60,
        on_unknown=on_unknown,
        every_seconds=every,
        phase=PRE_BATCH,
        http=HttpCheck("http://a"),
    )
    return Planned(spec, repeatable=REPEATABLE)


@dataclass
class Checks:
    """A ChangePod without pods, whose checks answer as told; the last answer is repeated."""

    plan: tuple[Planned, ...]
    said: dict[str, list[Answer]]
    phase: CheckPhase = PRE_RELEASE
    status: ChangePodStatus = field(default_factory=ChangePodStatus)
    asked: bool = True
    now: float = NOW
    starts: int = 0
    writes: int = 0
    crash_before: int = -1

    @property
    def change_pod(self) -> ChangePod:
        spec = ChangePodSpec("web--x--1", "", int(NOW), (), phase=self.phase, step=1)
        return ChangePod(ObjectMeta(name="web--x--1--x--1", namespace="shop"), spec, self.status)

    @property
    def verified(self) -> Condition:
        found = find_condition(self.status.conditions, ConditionType.VERIFIED)
        assert found is not None
        return found

    @property
    def done(self) -> bool:
        return self.status.status == PodState.EXECUTE_DONE

    def reconcile(self) -> Next | None:
        """One reconcile as BatchReconciler does it; None if the process died."""
        answers: dict[tuple[str, Phase], Answer] = {}
        for _ in range(20):
            plan = tuple(replace(each, spec=msgspec.structs.replace(each.spec, phase=self.phase)) for each in self.plan)
            snapshot = BatchSnapshot(self.change_pod, plan, answers, asked=self.asked)
            state, following = decide(self.status, snapshot, self.now)
            if state != self.status:
                self.writes += 1
                if self.writes - 1 == self.crash_before:
                    return None
                self.status = state
            if not following.asks:
                return following
            for ask in following.asks:
                self.starts += 1
                answers[ask.key] = self.answer(ask.name)
        raise AssertionError("the reconcile does not end")

    def answer(self, name: str) -> Answer:
        left = self.said[name]
        return left.pop(0) if len(left) > 1 else left[0]

    def run(self, seconds: int) -> None:
        end = self.now + seconds
        while self.now <= end:
            following = self.reconcile()
            if following is not None and following.after is None:
                return
            self.now += max(1.0, following.after or 0.0) if following is not None else 1.0


def test_check_that_passes_ends() -> None:
    checks = Checks((http(),), {"smoke": [Pass("all good")]})
    checks.run(0)
    assert checks.done
    assert (checks.verified.status, checks.verified.message) == ("True", "all checks passed; smoke: all good")


@pytest.mark.parametrize("phase", [PRE_RELEASE, PRE_BATCH])
def test_check_that_fails_is_tried_again_at_its_interval(phase: CheckPhase) -> None:
    checks = Checks((http(every=30),), {"smoke": [Fail("no column"), Fail("no column"), Pass()]}, phase)
    checks.reconcile()
    assert (checks.verified.status, checks.verified.message) == ("Unknown", "smoke: no column")
    checks.now += 29
    checks.reconcile()
    assert checks.starts == 1
    checks.now += 1
    checks.reconcile()
    assert (checks.starts, checks.status.checks[0].previous_time_unix) == (2, int(NOW))
    checks.run(30)
    assert checks.done
    assert checks.verified.status == "True"


def test_interval_is_a_minute_by_default() -> None:
    checks = Checks((http(),), {"smoke": [Fail("no")]})
    following = checks.reconcile()
    assert following is not None
    assert following.after == 60


def test_what_a_check_said_stays_while_it_is_tried_again() -> None:
    checks = Checks((http(every=10),), {"smoke": [Fail("no column"), Started("1"), Pending()]})
    checks.reconcile()
    checks.now += 10
    checks.reconcile()
    assert checks.status.checks[0].state == CheckState.RUNNING
    assert checks.verified.message == "smoke: no column"


@pytest.mark.parametrize(("on_unknown", "goes_on"), [(None, False), ("pass", True), ("hold", False), ("fail", False)])
def test_check_without_a_result_is_tried_again_unless_it_counts_as_passed(on_unknown: str, goes_on: bool) -> None:
    planned = http(on_unknown=OnUnknown(on_unknown) if on_unknown else None)
    checks = Checks((planned,), {"smoke": [Unknown("no answer")]})
    checks.reconcile()
    assert checks.done is goes_on
    expected = "True", release_checks.UNCHECKED
    assert (checks.verified.status, checks.verified.reason) == (
        expected if goes_on else ("Unknown", release_checks.TRIED_AGAIN)
    )
    assert "smoke: no answer" in checks.verified.message


def test_all_checks_of_the_phase_have_to_pass_and_only_those_that_failed_run_again() -> None:
    checks = Checks((http("a", every=10), http("b", every=10)), {"a": [Pass()], "b": [Fail("no"), Pass()]})
    checks.reconcile()
    assert not checks.done
    checks.run(10)
    assert checks.done
    assert checks.starts == 3


def test_release_that_goes_on_ends_its_checks_without_a_verdict() -> None:
    checks = Checks((http(),), {"smoke": [Fail("no column")]})
    checks.reconcile()
    checks.asked = False
    assert checks.reconcile() == Next()
    assert checks.done
    assert (checks.verified.status, checks.verified.reason) == ("Unknown", release_checks.NOT_NEEDED)
    checks.asked = True
    checks.now += 600
    checks.reconcile()
    assert checks.starts == 1


def test_check_after_the_release_runs_once_and_fails_it() -> None:
    checks = Checks((http(),), {"smoke": [Fail("12 % of requests fail")]}, POST_RELEASE)
    checks.run(600)
    assert checks.done
    assert checks.starts == 1
    assert (checks.verified.status, checks.verified.reason) == ("False", Giver.CHECK)
    assert checks.verified.message == "smoke: 12 % of requests fail"
    assert [each.phase for each in checks.status.checks] == [Phase.POST]


@pytest.mark.parametrize(("on_unknown", "status"), [("pass", "True"), ("hold", "Unknown"), ("fail", "False")])
def test_check_after_the_release_without_a_result_does_what_the_policy_says(on_unknown: str, status: str) -> None:
    checks = Checks((http(on_unknown=OnUnknown(on_unknown)),), {"smoke": [Unknown("no answer")]}, POST_RELEASE)
    checks.run(600)
    assert (checks.verified.status, checks.done) == (status, status != "Unknown")
    if status == "Unknown":
        assert "waits for the verdict of a person" in checks.verified.message


def test_person_lets_the_release_go_on() -> None:
    checks = Checks((http(),), {"smoke": [Fail("no column")]})
    checks.reconcile()
    checks.status = release_checks.approved(checks.status, checks.change_pod, "approved by anna", checks.now)
    checks.now += 600
    assert checks.reconcile() == Next()
    assert (checks.done, checks.verified.status, checks.verified.reason) == (True, "True", release_checks.APPROVED)


def test_server_gets_a_new_node_for_each_try_until_it_passes() -> None:
    server = Planned(CheckSpec("server", server=ServerCheck()), repeatable=frozenset({Phase.POST}))
    said: list[Answer] = [Started("node-1", unique=True), Fail("rule"), Started("node-2", unique=True), Pass()]
    checks = Checks((server,), {"server": said})
    nodes = set()
    for _ in range(60):
        checks.reconcile()
        nodes.add(checks.status.change_pod_id)
        checks.now += 3
    assert checks.done
    assert nodes == {"node-1", "node-2"}


def test_start_that_had_no_effect_is_repeated() -> None:
    checks = Checks((http(),), {"smoke": [NotStarted("no route"), Pass()]})
    checks.run(60)
    assert checks.done


def test_callback_is_stored_and_starts_nothing() -> None:
    checks = Checks((http("a"), http("b")), {"a": [Started("1"), Pending()], "b": [Fail("no"), Pass()]})
    checks.reconcile()
    plan = tuple(replace(each, spec=msgspec.structs.replace(each.spec, phase=PRE_RELEASE)) for each in checks.plan)
    checks.now += 60  # `b` is due
    snapshot = BatchSnapshot(checks.change_pod, plan, {("a", Phase.PRE): Pass("ok")}, asked=True)
    checks.status = received(checks.status, snapshot, checks.now)
    assert {each.name: each.state for each in checks.status.checks}["a"] == CheckState.PASSED
    checks.run(60)
    assert checks.done


@dataclass
class FailsFirst(Checks):
    """The first run fails, and each later one passes, however often it is asked for its result."""

    def answer(self, name: str) -> Answer:
        (entry,) = (each for each in self.status.checks if each.name == name)
        return Pass("yes") if entry.previous_time_unix else Fail("no")


@pytest.mark.parametrize("crash", range(6))
def test_killed_reconciler_neither_loses_nor_doubles_a_result(crash: int) -> None:
    checks = FailsFirst((http(every=10),), {}, crash_before=crash)
    checks.run(60)
    assert checks.done
    (entry,) = checks.status.checks
    assert (entry.state, entry.reason, entry.previous_time_unix >= NOW) == (CheckState.PASSED, "yes", True)
    assert checks.now <= NOW + 13, "one further run"
