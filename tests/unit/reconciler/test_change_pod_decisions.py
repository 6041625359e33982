"""What is decided about a ChangePod, with an AlterShield server and without."""

import msgspec
import pytest

from altershield.api.kinds import ChangePodStatus, PodInfo, PodState
from altershield.api.meta import find_condition
from reconciler.decisions.change_pods import POLL_INTERVAL, Accepted, Answer, Checked, NotYet, Observed, Refused, decide
from reconciler.decisions.effects import Ask, Call, Effect, Requeue
from tests.unit.reconciler.builders import NOW, change_pod

PASSED, FAILED = Checked(True, "fine"), Checked(False, "error rate 12 %")


def run(
    status: ChangePodStatus, answer: Answer | None = None, *, now: float = NOW, server: bool = True, pods: str = "ab"
) -> tuple[ChangePodStatus, tuple[Effect, ...]]:
    record = change_pod(1, *pods, status=status)
    return decide(status, Observed(record, server, answer, pre_timeout=120, post_timeout=90), now)


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
    status, effects = run(ChangePodStatus(), server=False)

    assert (status.status, status.message, status.pod_results) == ("ExecuteDone", "PreFailed", ())
    assert effects == ()
    condition = find_condition(status.conditions, "Verified")
    assert condition is not None
    assert (condition.status, condition.reason) == ("True", "NotChecked")
    assert run(status, server=False, now=NOW + 99) == (status, ())


def test_the_whole_way_with_a_server_that_passes() -> None:
    status, effects = run(ChangePodStatus())
    assert (status.status, effects) == (PodState.PRE_WAIT, (Ask(Call.SUBMIT_PRE),))
    assert (status.pre_timeout_threshold, status.post_timeout_threshold) == (120, 90)

    status, effects = run(status, Accepted("node-1"))
    assert (status.status, status.change_pod_id, effects) == ("PreSubmitted", "node-1", (Requeue(POLL_INTERVAL),))

    assert run(status) == (status, (Ask(Call.POLL_PRE),))
    assert run(status, NotYet()) == (status, (Requeue(POLL_INTERVAL),))

    status, effects = run(status, PASSED, now=NOW + 5)
    assert (status.status, status.post_submit_time_unix, effects) == ("PostWait", NOW + 5, (Ask(Call.SUBMIT_POST),))

    status, _ = run(status, Accepted("node-1"), now=NOW + 5)
    assert status.status == "PostSubmitted"

    status, effects = run(status, PASSED, now=NOW + 9)
    assert (status.status, status.message, effects) == ("ExecuteDone", "PostFinish", ())
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
    before, effects = run(at(state), NotYet(), now=NOW + deadline - 1)
    assert before.status == state
    assert effects == (Requeue(1),)

    status, effects = run(at(state), now=NOW + deadline)
    assert (status.status, status.message, status.pod_results, effects) == ("ExecuteDone", message, (), ())


@pytest.mark.parametrize(("state", "message"), [("PreWait", "PreFailed"), ("PostWait", "PostFailed")])
def test_a_refusal_passes_at_once(state: str, message: str) -> None:
    status, _ = run(at(state), Refused("unknown scene"))

    assert (status.status, status.message, status.pod_results) == ("ExecuteDone", message, ())


@pytest.mark.parametrize("state", PodState.ALL)
def test_a_persons_verdict_on_every_pod_ends_it_and_stays(state: str) -> None:
    results = (PodInfo("a", verdict="unpass", message="find error"), PodInfo("b", verdict="pass"))

    status, effects = run(at(state, pod_results=results, message="PostFinish"), FAILED)

    assert (status.status, status.message, status.pod_results, effects) == ("ExecuteDone", "PostFinish", results, ())


def test_the_server_speaks_only_of_pods_that_nobody_has_judged() -> None:
    verdict = PodInfo("a", verdict="pass", message="I looked")

    status, _ = run(at("PostSubmitted", pod_results=(verdict, PodInfo("b", message="?"))), FAILED)

    assert status.pod_results == (verdict, PodInfo("b", verdict="unpass", message="error rate 12 %"))


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
        "1 of 2 pods failed: a (find error); results for pods that are not in this batch are ignored: typo"
    )


@pytest.mark.parametrize("state", ["PreFailed", "PreTimeout", "PostFailed", "PostTimeout", "PostFinish"])
def test_a_state_on_the_way_that_somebody_stored_has_an_exit(state: str) -> None:
    status, _ = run(at(state))

    assert (status.status, status.message) == ("ExecuteDone", state)


def test_a_server_that_is_no_longer_configured_leaves_nothing_hanging() -> None:
    assert run(at("PreSubmitted"), server=False)[0].message == "PreFailed"
    assert run(at("PostSubmitted"), server=False)[0].message == "PostFailed"
