"""What is decided about a batch, with an AlterShield server and without; and what is kept of it."""

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


def kept_of(made: ChangePod) -> batch.Batch:
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


def test_without_a_server_one_write_ends_it() -> None:
    status, following = run(ChangePodStatus(), server=False)

    assert (status.status, status.message, status.pod_results) == ("ExecuteDone", "PreFailed", ())
    assert following is None
    condition = find_condition(status.conditions, "Verified")
    assert condition is not None
    assert (condition.status, condition.reason) == ("True", "NotChecked")
    assert run(status, server=False, now=NOW + 99) == (status, None)


def test_the_whole_way_with_a_server_that_passes() -> None:
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
def test_an_explicit_failure_fails_the_batch(state: str, message: str) -> None:
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
def test_what_gets_no_answer_ends_at_the_deadline_in_the_status_and_passes(
    state: str, deadline: int, message: str
) -> None:
    before, following = run(at(state), NoResult(), now=NOW + deadline - 1)
    assert before.status == state
    assert following == Later(1)

    status, following = run(at(state), now=NOW + deadline)
    assert (status.status, status.message, status.pod_results, following) == ("ExecuteDone", message, (), None)


@pytest.mark.parametrize(("state", "message"), [("PreWait", "PreFailed"), ("PostWait", "PostFailed")])
def test_a_refusal_passes_at_once(state: str, message: str) -> None:
    status, _ = run(at(state), Refused("unknown scene"))

    assert (status.status, status.message, status.pod_results) == ("ExecuteDone", message, ())


@pytest.mark.parametrize("state", list(PodState))
def test_a_persons_verdict_on_every_pod_ends_it_and_stays(state: str) -> None:
    results = (PodInfo("a", verdict="unpass", message="find error"), PodInfo("b", verdict="pass"))

    status, following = run(at(state, pod_results=results, message="I looked"), FAILED)

    assert (status.status, status.message, status.pod_results, following) == (
        "ExecuteDone",
        "I looked",
        results,
        None,
    )


def test_the_server_speaks_only_of_pods_that_nobody_has_judged() -> None:
    verdict = PodInfo("a", verdict="pass", message="I looked")

    status, _ = run(at("PostSubmitted", pod_results=(verdict, PodInfo("b", message="?"))), FAILED)

    assert status.pod_results == (verdict, PodInfo("b", "b-uid", verdict="unpass", message="error rate 12 %"))


def test_a_verdict_after_the_end_only_changes_the_condition() -> None:
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
def test_a_state_on_the_way_that_somebody_stored_has_an_exit(state: str) -> None:
    status, _ = run(at(state))

    assert (status.status, status.message) == ("ExecuteDone", state)


def test_a_server_that_is_no_longer_configured_leaves_nothing_hanging() -> None:
    assert run(at("PreSubmitted"), server=False)[0].message == "PreFailed"
    assert run(at("PostSubmitted"), server=False)[0].message == "PostFailed"


# verdicts that a batch is made with


def born_failed(*pods: str) -> ChangePod:
    return change_pod(1, *pods, verdict="unpass")


def test_a_batch_of_pods_that_were_not_up_is_made_with_the_verdict_on_them() -> None:
    made = born_failed("a", "b")
    status, following = decide(made.status, BatchSnapshot(made, True, None, 120, 90), NOW)

    assert (status.status, status.message, following) == ("ExecuteDone", "PostFinish", None)
    assert [(result.pod, result.verdict) for result in status.pod_results] == [("a", "unpass"), ("b", "unpass")]
    assert reason(status) == ("False", Giver.HEALTH)


def test_a_person_overrules_what_a_batch_was_made_with() -> None:
    made = born_failed("a", "b")
    written = ChangePodStatus(pod_results=(PodInfo("a", verdict="pass"),))
    status, _ = decide(written, BatchSnapshot(made, False, None, 120, 90), NOW)

    assert [(result.pod, result.verdict) for result in status.pod_results] == [("a", "pass"), ("b", "unpass")]
    assert reason(status) == ("False", Giver.HEALTH)
    kept = kept_of(msgspec.structs.replace(made, status=status))
    assert [(member.verdict, member.overruled) for member in kept.members] == [("pass", True), ("unpass", False)]


def reason(status: ChangePodStatus) -> tuple[str, str]:
    found = find_condition(status.conditions, "Verified")
    assert found is not None
    return found.status, found.reason


# whose verdict it is


def looked(status: ChangePodStatus, answer: Checked | None = None) -> ChangePodStatus:
    return run(status, answer, pods="abc")[0]


Results = st.dictionaries(st.sampled_from("abc"), st.sampled_from(["pass", "unpass", "error", ""]))


@given(st.lists(Results, min_size=1, max_size=6), st.data())
def test_what_a_person_writes_is_never_taken_for_the_servers_verdict(
    written: list[dict[str, str]], data: st.DataObject
) -> None:
    """A person writes verdicts, the reconciler looks whenever it likes, and the server never answers."""
    status = ChangePodStatus()
    for results in written:
        judged = tuple(PodInfo(pod, verdict=verdict) for pod, verdict in results.items())
        status = msgspec.structs.replace(status, pod_results=judged)
        if data.draw(st.booleans(), label="looks"):
            status = looked(status)
    reasons = {condition.reason for condition in looked(status).conditions}
    failed = any(verdict not in ("pass", "") for verdict in written[-1].values())
    assert (Giver.PERSON in reasons) == failed
    assert Giver.SERVER not in reasons


def test_the_servers_verdict_is_told_as_its_own_however_often_it_is_looked_at() -> None:
    failed = looked(at("PreSubmitted"), Checked(False, "error rate 12 %"))
    assert reason(failed) == ("False", Giver.SERVER)
    assert looked(failed) == failed
    assert kept_of(change_pod(1, *"abc", status=failed)).giver == Giver.SERVER


def test_a_batch_that_a_person_failed_first_stays_theirs_when_the_server_fails_the_rest() -> None:
    judged = looked(at("PreSubmitted", pod_results=(PodInfo("a", verdict="unpass"),)))
    assert reason(judged) == ("False", Giver.PERSON)
    both = looked(judged, Checked(False, "error rate 12 %"))
    assert len(both.pod_results) == 3
    assert reason(both) == ("False", Giver.PERSON)


# what is kept of a batch


def test_what_is_kept_of_a_batch_at_work_is_all_of_it() -> None:
    made = change_pod(7, "a")
    kept = kept_of(made)

    assert (kept.number, kept.unfinished, kept.done, kept.giver) == (7, made, False, "")
    assert kept.release == ("default", made.spec.change_workload_id)
    assert [(member.pod, member.uid, member.verdict) for member in kept.members] == [("a", "a-uid", "")]


def test_what_is_kept_of_a_batch_at_its_end_is_little() -> None:
    done, _ = run(ChangePodStatus(), server=False)
    made = change_pod(1, *"ab", status=done)
    assert not needs_work(made)
    assert kept_of(made).unfinished is None
    assert kept_of(made).done


def test_a_verdict_after_the_end_is_work() -> None:
    done, _ = run(ChangePodStatus(), server=False)
    written = msgspec.structs.replace(done, pod_results=(PodInfo("a", verdict="x", message="m" * 999),))
    made = change_pod(1, *"ab", status=written)
    assert needs_work(made)
    kept = kept_of(made)
    assert (kept.members[0].verdict, len(kept.members[0].message), kept.giver) == ("x", 200, Giver.PERSON)
    assert kept.members[1].verdict == ""


def test_a_result_without_a_verdict_says_nothing() -> None:
    status = ChangePodStatus(status="ExecuteDone", pod_results=(PodInfo("a", message="looks odd"),))
    assert kept_of(change_pod(1, "a", status=status)).members[0].verdict == ""


def test_a_batch_of_which_one_pod_was_checked_was_not_checked() -> None:
    for results, said in ((("a",), "NotChecked"), (("a", "b"), "PodsPassed")):
        judged = tuple(PodInfo(pod, verdict="pass") for pod in results)
        status, _ = run(ChangePodStatus(pod_results=judged), server=False)
        assert reason(status) == ("True", said)


def test_a_remark_without_a_verdict_takes_back_none() -> None:
    remark = ChangePodStatus(pod_results=(PodInfo("a", message="I am on it"),))
    made = msgspec.structs.replace(born_failed("a"), status=remark)
    assert kept_of(made).members[0].verdict == "unpass"
