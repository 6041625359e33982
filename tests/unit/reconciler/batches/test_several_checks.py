"""Batches with several checks: what each outcome leads to, and that no answer is lost or invented."""

import msgspec
import pytest
from hypothesis import given, settings

from altershield.api.change_pod import ChangePodStatus, PodState
from altershield.api.check_results import CheckResult, CheckState
from altershield.api.check_specs import OnUnknown, Phase
from altershield.api.condition_types import Giver
from altershield.api.policy import MAX_CHECKS
from reconciler.batches.check_run import Answer, Step, with_result
from reconciler.batches.transitions import BatchSnapshot, received
from reconciler.checks.check import Fail, Lost, NotStarted, Pass, Pending, Started, Unknown, entry_of
from reconciler.cluster.verdicts import undecided
from tests.unit.altershield.releases.builders import NOW, change_pod
from tests.unit.reconciler.batches.several_checks import (
    BAD,
    NOTHING,
    OK,
    POST,
    PRE,
    SERVER,
    Batch,
    Callback,
    assert_consistent,
    batch,
    behaviours,
    http,
    later_answers,
    msgspec_replaced,
    prometheus,
)


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


@settings(max_examples=400, deadline=None)
@given(behaviours())
def test_no_verdict_is_lost_or_invented_and_every_batch_ends(made: Batch) -> None:
    assert_consistent(made.run(2000))


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
