"""Decisions about a batch, with and without an AlterShield server, and what the cache keeps of a batch."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from altershield.api.kinds import ChangePod, ChangePodStatus, Giver, PodInfo, PodState
from altershield.api.meta import find_condition
from altershield.api.policy import Phase
from reconciler.batches import batch
from reconciler.batches.transitions import (
    POLL_INTERVAL,
    Accepted,
    Answer,
    Ask,
    Availability,
    BatchSnapshot,
    Call,
    Checked,
    Later,
    Next,
    NoResult,
    NotSent,
    Refused,
    awaits,
    decide,
    needs_work,
)
from tests.unit.reconciler.builders import NOW, change_pod

PASSED, FAILED = Checked(True, "fine"), Checked(False, "error rate 12 %")
NO_SERVER, UNREACHABLE, SWITCHED_OFF, AVAILABLE = Availability


def run(
    status: ChangePodStatus,
    answer: Answer | None = None,
    *,
    now: float = NOW,
    server: Availability = AVAILABLE,
    pods: str = "ab",
) -> tuple[ChangePodStatus, Next]:
    release = change_pod(1, *pods, status=status)
    return decide(status, BatchSnapshot(release, server, answer, pre_timeout=120, post_timeout=90), now)


def projected(made: ChangePod) -> batch.Batch:
    return batch.read(msgspec.json.encode(made))


def at(state: str, **fields: object) -> ChangePodStatus:
    begun = ChangePodStatus(
        status=state,
        pre_submit_time_unix=NOW,
        pre_timeout_threshold=120,
        post_submit_time_unix=NOW,
        post_timeout_threshold=90,
    )
    return msgspec.structs.replace(begun, **fields)


def test_batch_without_a_server_ends_in_one_write() -> None:
    status, following = run(ChangePodStatus(), server=NO_SERVER)

    assert (status.status, status.message, status.pod_results) == ("ExecuteDone", "PreFailed", ())
    assert following is None
    condition = find_condition(status.conditions, "Verified")
    assert condition is not None
    assert (condition.status, condition.reason) == ("True", "NotChecked")
    assert run(status, server=NO_SERVER, now=NOW + 99) == (status, None)


def test_batch_goes_through_all_states_with_a_server_that_passes_it() -> None:
    status, following = run(ChangePodStatus())
    assert (status.status, following) == (PodState.PRE_WAIT, Ask(Call.SUBMIT_PRE))
    assert (status.pre_timeout_threshold, status.post_timeout_threshold) == (120, 90)

    status, following = run(status, Accepted("node-1"))
    assert (status.status, status.change_pod_id, following) == ("PreSubmitted", "node-1", Later(POLL_INTERVAL))

    assert run(status)[1] == Later(POLL_INTERVAL)
    assert run(status, now=NOW + 3)[1] == Ask(Call.POLL_PRE)
    assert run(status, NoResult(), now=NOW + 3)[1] == Later(POLL_INTERVAL)

    status, following = run(status, PASSED, now=NOW + 5)
    assert (status.status, status.post_submit_time_unix, following) == ("PostWait", NOW + 5, Ask(Call.SUBMIT_POST))

    status, _ = run(status, Accepted("node-1"), now=NOW + 5)
    assert status.status == "PostSubmitted"

    status, following = run(status, PASSED, now=NOW + 9)
    assert (status.status, status.message, following) == ("ExecuteDone", "PostFinish", None)
    assert [(result.pod, result.verdict) for result in status.pod_results] == [("a", "pass"), ("b", "pass")]


@pytest.mark.parametrize(("state", "message"), [("PreSubmitted", "PreFailed"), ("PostSubmitted", "PostFinish")])
def test_failed_check_fails_the_batch(state: str, message: str) -> None:
    status, _ = run(at(state), FAILED)

    assert (status.status, status.message) == ("ExecuteDone", message)
    assert {(result.verdict, result.message) for result in status.pod_results} == {("unpass", "error rate 12 %")}


@pytest.mark.parametrize(
    ("state", "deadline", "message"),
    [
        ("PreWait", 120, "PreFailed"),
        ("PostWait", 90, "PostFailed"),
    ],
)
def test_request_without_an_answer_ends_the_batch_at_the_deadline_and_it_passes(
    state: str, deadline: int, message: str
) -> None:
    before, following = run(at(state), NoResult(), now=NOW + deadline - 1)
    assert before.status == state
    assert following == Later(1)

    status, following = run(at(state), now=NOW + deadline)
    assert (status.status, status.message, status.pod_results, following) == ("ExecuteDone", message, (), None)


@pytest.mark.parametrize(
    ("state", "deadline", "poll", "last_poll", "message"),
    [
        ("PreSubmitted", 120, Call.POLL_PRE, Call.END_PRE, "PreTimeout"),
        ("PostSubmitted", 90, Call.POLL_POST, Call.END_POST, "PostTimeout"),
    ],
)
def test_check_without_a_result_is_polled_once_more_at_the_deadline_and_then_passes(
    state: str, deadline: int, poll: Call, last_poll: Call, message: str
) -> None:
    assert run(at(state), now=NOW + deadline - 1)[1] == Ask(poll)
    assert run(at(state), NoResult(), now=NOW + deadline - 1)[1] == Later(1)
    assert run(at(state), now=NOW + deadline)[1] == Ask(last_poll)
    assert run(at(state), FAILED, now=NOW + deadline)[0].pod_results[0].verdict == "unpass"

    status, following = run(at(state), NoResult(), now=NOW + deadline)
    assert (status.status, status.message, status.pod_results, following) == ("ExecuteDone", message, (), None)
    assert reason(status) == ("True", "NotChecked")


@pytest.mark.parametrize(("elapsed", "wait"), [(0, 3), (12, 3), (40, 10), (80, 20)])
def test_polls_come_at_longer_intervals(elapsed: int, wait: int) -> None:
    assert run(at("PreSubmitted"), NoResult(), now=NOW + elapsed)[1] == Later(wait)


def test_submission_with_an_unknown_outcome_is_not_repeated() -> None:
    """It may have reached the server, where it would start another check."""
    assert run(at("PreWait"), NoResult(), now=NOW + 20)[1] == Later(100)
    assert run(at("PreWait"), now=NOW + 20)[1] == Later(100)  # after a restart


def test_submission_that_did_not_reach_the_server_is_repeated() -> None:
    status, following = run(at("PreWait"), NotSent(), now=NOW + 5)
    assert (status.status, status.checks, following) == ("Init", (), Later(POLL_INTERVAL))
    assert run(status, now=NOW + 8)[1] == Ask(Call.SUBMIT_PRE)


def test_nothing_is_written_while_the_server_is_unreachable_until_the_deadline() -> None:
    before, following = run(ChangePodStatus(), server=UNREACHABLE, now=NOW + 50)
    assert before.status == ""
    assert following == Later(POLL_INTERVAL)
    status, following = run(ChangePodStatus(), server=UNREACHABLE, now=NOW + 120)
    assert (status.status, status.message, following) == ("ExecuteDone", "PreFailed", None)


def test_batch_ends_if_the_server_is_switched_off() -> None:
    status, following = run(ChangePodStatus(), server=SWITCHED_OFF)
    assert (status.status, status.message, following) == ("ExecuteDone", "PreFailed", None)


def test_checks_tell_what_happened() -> None:
    status = run(ChangePodStatus())[0]
    for answer in (Accepted("node-1"), PASSED, Accepted("node-1"), FAILED):
        status = run(status, answer)[0]
    assert [(each.name, each.phase, each.state, each.reason) for each in status.checks] == [
        ("server", "Pre", "Passed", "fine"),
        ("server", "Post", "Failed", "error rate 12 %"),
    ]
    assert all(each.start_time and each.end_time for each in status.checks)


def test_result_of_the_second_check_may_come_before_the_answer_to_its_request() -> None:
    status, following = run(at("PostWait"), FAILED)
    assert (status.message, status.pod_results[0].verdict, following) == ("PostFinish", "unpass", None)


@pytest.mark.parametrize("message", ["PostTimeout", "PostFailed"])
def test_result_that_comes_after_the_timeout_still_counts(message: str) -> None:
    ended = run(at("ExecuteDone", message=message))[0]
    failed = run(ended, FAILED, now=NOW + 500)[0]
    assert (failed.status, failed.message, reason(failed)) == ("ExecuteDone", message, ("False", Giver.SERVER))
    passed = run(ended, PASSED, now=NOW + 500)[0]
    assert reason(passed) == ("True", "PodsPassed")


def test_pass_of_the_first_check_after_its_timeout_proves_nothing() -> None:
    ended = run(at("PreSubmitted", post_submit_time_unix=0), NoResult(), now=NOW + 120)[0]
    assert run(ended, PASSED, now=NOW + 500)[0] == ended
    assert reason(run(ended, FAILED, now=NOW + 500)[0]) == ("False", Giver.SERVER)


def test_late_result_does_not_replace_the_verdict_of_a_person() -> None:
    verdict = PodInfo("a", verdict="pass", message="I looked")
    ended = run(at("ExecuteDone", message="PostTimeout", pod_results=(verdict,)))[0]
    late = run(ended, FAILED)[0]
    assert [(each.pod, each.verdict) for each in late.pod_results] == [("a", "pass"), ("b", "unpass")]


@pytest.mark.parametrize(
    ("state", "began", "phase", "expected"),
    [
        ("PreWait", 0, "Pre", False),
        ("PreSubmitted", 0, "Pre", True),
        ("PreSubmitted", 0, "Post", False),
        ("PostWait", NOW, "Pre", False),
        ("PostWait", NOW, "Post", True),
        ("PostSubmitted", NOW, "Pre", False),
        ("PostSubmitted", NOW, "Post", True),
        ("ExecuteDone", 0, "Pre", True),
        ("ExecuteDone", NOW, "Pre", False),
        ("ExecuteDone", NOW, "Post", True),
    ],
)
def test_result_of_a_phase_that_is_over_is_of_no_use(state: str, began: int, phase: str, expected: bool) -> None:
    assert awaits(at(state, post_submit_time_unix=began), Phase(phase)) is expected


@pytest.mark.parametrize(("state", "message"), [("PreWait", "PreFailed"), ("PostWait", "PostFailed")])
def test_refused_check_passes_immediately(state: str, message: str) -> None:
    status, _ = run(at(state), Refused("unknown scene"))

    assert (status.status, status.message, status.pod_results) == ("ExecuteDone", message, ())


@pytest.mark.parametrize("state", list(PodState))
def test_verdict_of_a_person_on_every_pod_ends_the_batch(state: str) -> None:
    results = (PodInfo("a", verdict="unpass", message="find error"), PodInfo("b", verdict="pass"))

    status, following = run(at(state, pod_results=results, message="I decided"), FAILED)

    assert (status.status, status.message, status.pod_results, following) == (
        "ExecuteDone",
        "I decided",
        results,
        None,
    )


def test_server_verdict_applies_only_to_pods_without_a_verdict_of_a_person() -> None:
    verdict = PodInfo("a", verdict="pass", message="I decided")

    status, _ = run(at("PostSubmitted", pod_results=(verdict, PodInfo("b", message="?"))), FAILED)

    assert status.pod_results == (verdict, PodInfo("b", "b-uid", verdict="unpass", message="error rate 12 %"))


def test_verdict_after_the_end_changes_only_the_condition() -> None:
    done, _ = run(ChangePodStatus(), server=NO_SERVER)
    judged = msgspec.structs.replace(
        done,
        message="PostFinish",
        pod_results=(PodInfo("a", verdict="unpass", message="find error"), PodInfo("typo", verdict="unpass")),
    )

    status, _ = run(judged, server=NO_SERVER, now=NOW + 50)

    assert (status.status, status.message, status.pod_results) == ("ExecuteDone", "PostFinish", judged.pod_results)
    condition = find_condition(status.conditions, "Verified")
    assert condition is not None
    assert (condition.status, condition.reason) == ("False", "FailedByPerson")
    assert condition.message == (
        "1 of 2 pods failed: a (find error); these pods are not in this batch, and their results are ignored: typo"
    )


@pytest.mark.parametrize("state", ["PreFailed", "PreTimeout", "PostFailed", "PostTimeout", "PostFinish"])
def test_batch_with_a_final_message_as_its_state_ends(state: str) -> None:
    status, _ = run(at(state))

    assert (status.status, status.message) == ("ExecuteDone", state)


def test_batch_ends_if_the_server_is_no_longer_configured() -> None:
    assert run(at("PreSubmitted"), server=NO_SERVER)[0].message == "PreFailed"
    assert run(at("PostSubmitted"), server=NO_SERVER)[0].message == "PostFailed"


# verdicts that a batch is created with


def created_failed(*pods: str) -> ChangePod:
    return change_pod(1, *pods, verdict="unpass")


def test_batch_created_with_verdicts_ends_in_one_write() -> None:
    made = created_failed("a", "b")
    status, following = decide(made.status, BatchSnapshot(made, AVAILABLE, None, 120, 90), NOW)

    assert (status.status, status.message, following) == ("ExecuteDone", "PostFinish", None)
    assert [(result.pod, result.verdict) for result in status.pod_results] == [("a", "unpass"), ("b", "unpass")]
    assert reason(status) == ("False", Giver.HEALTH)


def test_person_overrules_the_verdict_that_a_batch_was_created_with() -> None:
    made = created_failed("a", "b")
    written = ChangePodStatus(pod_results=(PodInfo("a", verdict="pass"),))
    status, _ = decide(written, BatchSnapshot(made, NO_SERVER, None, 120, 90), NOW)

    assert [(result.pod, result.verdict) for result in status.pod_results] == [("a", "pass"), ("b", "unpass")]
    assert reason(status) == ("False", Giver.HEALTH)
    kept = projected(msgspec.structs.replace(made, status=status))
    assert [(member.verdict, member.overruled) for member in kept.members] == [("pass", True), ("unpass", False)]


def reason(status: ChangePodStatus) -> tuple[str, str]:
    found = find_condition(status.conditions, "Verified")
    assert found is not None
    return found.status, found.reason


# who gave the verdict


def decided(status: ChangePodStatus, answer: Checked | None = None) -> ChangePodStatus:
    return run(status, answer, pods="abc")[0]


Results = st.dictionaries(st.sampled_from("abc"), st.sampled_from(["pass", "unpass", "error", ""]))


@given(st.lists(Results, min_size=1, max_size=6), st.data())
def test_verdict_of_a_person_is_never_attributed_to_the_server(
    written: list[dict[str, str]], data: st.DataObject
) -> None:
    """A person writes verdicts, the reconciler runs at random times, and the server never answers."""
    status = ChangePodStatus()
    for results in written:
        judged = tuple(PodInfo(pod, verdict=verdict) for pod, verdict in results.items())
        status = msgspec.structs.replace(status, pod_results=judged)
        if data.draw(st.booleans(), label="reconciles"):
            status = decided(status)
    reasons = {condition.reason for condition in decided(status).conditions}
    failed = any(verdict not in ("pass", "") for verdict in written[-1].values())
    assert (Giver.PERSON in reasons) == failed
    assert Giver.SERVER not in reasons


def test_verdict_of_a_person_who_writes_the_reason_of_the_health_checks_stays_attributed_to_the_person() -> None:
    judged = decided(ChangePodStatus(pod_results=(PodInfo("a", verdict="unpass"),)))
    forged = msgspec.structs.replace(
        judged, conditions=tuple(msgspec.structs.replace(each, reason=Giver.HEALTH) for each in judged.conditions)
    )
    assert reason(forged) == ("False", Giver.HEALTH)
    assert projected(change_pod(1, *"abc", status=forged)).giver == Giver.PERSON
    assert reason(decided(forged)) == ("False", Giver.PERSON)


def test_verdict_of_the_server_stays_attributed_to_the_server() -> None:
    failed = decided(at("PreSubmitted"), Checked(False, "error rate 12 %"))
    assert reason(failed) == ("False", Giver.SERVER)
    assert decided(failed) == failed
    assert projected(change_pod(1, *"abc", status=failed)).giver == Giver.SERVER


def test_batch_failed_by_a_person_stays_attributed_when_the_server_fails_the_rest() -> None:
    judged = decided(at("PreSubmitted", pod_results=(PodInfo("a", verdict="unpass"),)))
    assert reason(judged) == ("False", Giver.PERSON)
    both = decided(judged, Checked(False, "error rate 12 %"))
    assert len(both.pod_results) == 3
    assert reason(both) == ("False", Giver.PERSON)


# what the cache keeps of a batch


def test_unfinished_batch_is_kept_completely() -> None:
    made = change_pod(7, "a")
    kept = projected(made)

    assert (kept.number, kept.unfinished, kept.done, kept.giver) == (7, made, False, "")
    assert kept.release == ("default", made.spec.change_workload_id)
    assert [(member.pod, member.uid, member.verdict) for member in kept.members] == [("a", "a-uid", "")]


def test_finished_batch_is_kept_without_its_change_pod() -> None:
    done, _ = run(ChangePodStatus(), server=NO_SERVER)
    made = change_pod(1, *"ab", status=done)
    assert not needs_work(made)
    assert projected(made).unfinished is None
    assert projected(made).done


def test_verdict_after_the_end_needs_work() -> None:
    done, _ = run(ChangePodStatus(), server=NO_SERVER)
    written = msgspec.structs.replace(done, pod_results=(PodInfo("a", verdict="x", message="m" * 999),))
    made = change_pod(1, *"ab", status=written)
    assert needs_work(made)
    kept = projected(made)
    assert (kept.members[0].verdict, len(kept.members[0].message), kept.giver) == ("x", 200, Giver.PERSON)
    assert kept.members[1].verdict == ""


def test_result_without_a_verdict_gives_no_verdict() -> None:
    status = ChangePodStatus(status="ExecuteDone", pod_results=(PodInfo("a", message="looks odd"),))
    assert projected(change_pod(1, "a", status=status)).members[0].verdict == ""


def test_batch_counts_as_checked_only_if_every_pod_has_a_verdict() -> None:
    for results, said in ((("a",), "NotChecked"), (("a", "b"), "PodsPassed")):
        judged = tuple(PodInfo(pod, verdict="pass") for pod in results)
        status, _ = run(ChangePodStatus(pod_results=judged), server=NO_SERVER)
        assert reason(status) == ("True", said)


def test_result_without_a_verdict_does_not_remove_the_initial_verdict() -> None:
    remark = ChangePodStatus(pod_results=(PodInfo("a", message="I am on it"),))
    made = msgspec.structs.replace(created_failed("a"), status=remark)
    assert projected(made).members[0].verdict == "unpass"
