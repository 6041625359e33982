"""Decisions about a batch, with and without an AlterShield server, and what the cache keeps of a batch."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from altershield.api.kinds import ChangePod, ChangePodStatus, Giver, PodInfo, PodState
from altershield.api.meta import find_condition
from reconciler.batches import batch
from reconciler.batches.transitions import (
    POLL_INTERVAL,
    Accepted,
    Answer,
    Ask,
    BatchSnapshot,
    Call,
    Checked,
    Later,
    Next,
    NoResult,
    Refused,
    decide,
    needs_work,
)
from tests.unit.reconciler.builders import NOW, change_pod

PASSED, FAILED = Checked(True, "fine"), Checked(False, "error rate 12 %")


def run(
    status: ChangePodStatus, answer: Answer | None = None, *, now: float = NOW, server: bool = True, pods: str = "ab"
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
    status, following = run(ChangePodStatus(), server=False)

    assert (status.status, status.message, status.pod_results) == ("ExecuteDone", "PreFailed", ())
    assert following is None
    condition = find_condition(status.conditions, "Verified")
    assert condition is not None
    assert (condition.status, condition.reason) == ("True", "NotChecked")
    assert run(status, server=False, now=NOW + 99) == (status, None)


def test_batch_goes_through_all_states_with_a_server_that_passes_it() -> None:
    status, following = run(ChangePodStatus())
    assert (status.status, following) == (PodState.PRE_WAIT, Ask(Call.SUBMIT_PRE))
    assert (status.pre_timeout_threshold, status.post_timeout_threshold) == (120, 90)

    status, following = run(status, Accepted("node-1"))
    assert (status.status, status.change_pod_id, following) == ("PreSubmitted", "node-1", Later(POLL_INTERVAL))

    assert run(status) == (status, Ask(Call.POLL_PRE))
    assert run(status, NoResult()) == (status, Later(POLL_INTERVAL))

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
        ("PreSubmitted", 120, "PreTimeout"),
        ("PostWait", 90, "PostFailed"),
        ("PostSubmitted", 90, "PostTimeout"),
    ],
)
def test_check_without_an_answer_ends_at_the_deadline_and_passes(state: str, deadline: int, message: str) -> None:
    before, following = run(at(state), NoResult(), now=NOW + deadline - 1)
    assert before.status == state
    assert following == Later(1)

    status, following = run(at(state), now=NOW + deadline)
    assert (status.status, status.message, status.pod_results, following) == ("ExecuteDone", message, (), None)


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
    done, _ = run(ChangePodStatus(), server=False)
    judged = msgspec.structs.replace(
        done,
        message="PostFinish",
        pod_results=(PodInfo("a", verdict="unpass", message="find error"), PodInfo("typo", verdict="unpass")),
    )

    status, _ = run(judged, server=False, now=NOW + 50)

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
    assert run(at("PreSubmitted"), server=False)[0].message == "PreFailed"
    assert run(at("PostSubmitted"), server=False)[0].message == "PostFailed"


# verdicts that a batch is created with


def created_failed(*pods: str) -> ChangePod:
    return change_pod(1, *pods, verdict="unpass")


def test_batch_created_with_verdicts_ends_in_one_write() -> None:
    made = created_failed("a", "b")
    status, following = decide(made.status, BatchSnapshot(made, True, None, 120, 90), NOW)

    assert (status.status, status.message, following) == ("ExecuteDone", "PostFinish", None)
    assert [(result.pod, result.verdict) for result in status.pod_results] == [("a", "unpass"), ("b", "unpass")]
    assert reason(status) == ("False", Giver.HEALTH)


def test_person_overrules_the_verdict_that_a_batch_was_created_with() -> None:
    made = created_failed("a", "b")
    written = ChangePodStatus(pod_results=(PodInfo("a", verdict="pass"),))
    status, _ = decide(written, BatchSnapshot(made, False, None, 120, 90), NOW)

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
    done, _ = run(ChangePodStatus(), server=False)
    made = change_pod(1, *"ab", status=done)
    assert not needs_work(made)
    assert projected(made).unfinished is None
    assert projected(made).done


def test_verdict_after_the_end_needs_work() -> None:
    done, _ = run(ChangePodStatus(), server=False)
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
        status, _ = run(ChangePodStatus(pod_results=judged), server=False)
        assert reason(status) == ("True", said)


def test_result_without_a_verdict_does_not_remove_the_initial_verdict() -> None:
    remark = ChangePodStatus(pod_results=(PodInfo("a", message="I am on it"),))
    made = msgspec.structs.replace(created_failed("a"), status=remark)
    assert projected(made).members[0].verdict == "unpass"
