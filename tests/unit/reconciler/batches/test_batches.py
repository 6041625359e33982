"""Decisions about a batch, with and without an AlterShield server, and what the cache keeps of a batch."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from altershield.api.change_pod import ChangePod, ChangePodStatus, PodState
from altershield.api.check_results import CheckResult, CheckState
from altershield.api.check_specs import CheckSpec, Phase, ServerCheck
from altershield.api.condition_types import Giver
from altershield.api.meta import find_condition
from altershield.api.ops_config import MAX_BATCH
from altershield.api.pod_verdicts import PodInfo
from reconciler.batches.check_run import POLL_INTERVAL, Answer, Ask, Planned, Step
from reconciler.batches.conclusion import SERVER_CHECK
from reconciler.batches.nodes import awaits
from reconciler.batches.transitions import DONE, BatchSnapshot, Next, decide
from reconciler.checks.check import (
    Availability,
    Fail,
    Lost,
    NotStarted,
    Pass,
    Pending,
    Started,
    Unknown,
)
from reconciler.cluster import batch
from reconciler.cluster.verdicts import needs_work
from tests.unit.altershield.releases.builders import NOW, change_pod

PASSED, FAILED = Pass("fine"), Fail("error rate 12 %")
AVAILABLE, NO_SERVER, UNREACHABLE, SWITCHED_OFF = Availability
PRE, POST = Phase
SERVER = CheckSpec(name=SERVER_CHECK, server=ServerCheck())


def start(phase: Phase, name: str = SERVER_CHECK) -> Next:
    """The next step is to start a check."""
    return Next((Ask(name, phase, Step.START),))


def poll(phase: Phase, step: Step = Step.POLL) -> Next:
    return Next((Ask(SERVER_CHECK, phase, step),))


def later(seconds: float) -> Next:
    return Next(after=seconds)


def snapshot_of(made: ChangePod, answer: Answer | None = None, *, server: Availability = AVAILABLE) -> BatchSnapshot:
    """The answer is the one to the last request to the server's check."""
    phase = POST if made.status.post_submit_time_unix else PRE
    answers = {(SERVER_CHECK, phase): answer} if answer is not None else {}
    plan = () if server is NO_SERVER else (Planned(SERVER, server, frozenset({POST})),)
    return BatchSnapshot(made, plan, answers, pre_timeout=120, post_timeout=90)


def run(
    status: ChangePodStatus,
    answer: Answer | None = None,
    *,
    now: float = NOW,
    server: Availability = AVAILABLE,
    pods: str = "ab",
) -> tuple[ChangePodStatus, Next]:
    return decide(status, snapshot_of(change_pod(1, *pods, status=status), answer, server=server), now)


def projected(made: ChangePod) -> batch.Batch:
    return batch.read(msgspec.json.encode(made))


def check(phase: Phase, state: CheckState = CheckState.RUNNING, handle: str = "node-1") -> CheckResult:
    return CheckResult(SERVER_CHECK, phase, state, start_time_unix=NOW, handle=handle)


_CHECKS = {
    "PreWait": (check(PRE, handle=""),),
    "PreSubmitted": (check(PRE),),
    "PreTimeout": (check(PRE, CheckState.UNKNOWN),),
    "PostWait": (check(PRE, CheckState.PASSED), check(POST, handle="")),
    "PostSubmitted": (check(PRE, CheckState.PASSED), check(POST)),
    "PostTimeout": (check(PRE, CheckState.PASSED), check(POST, CheckState.UNKNOWN)),
    "PostFailed": (check(PRE, CheckState.PASSED), check(POST, CheckState.UNKNOWN, handle="")),
}


def at(state: str, **fields: object) -> ChangePodStatus:
    """A batch in this state, or with this message at its end."""
    checks = _CHECKS.get(str(fields.get("message", state)), ())
    begun = ChangePodStatus(
        status=state,
        pre_submit_time_unix=NOW,
        pre_timeout_threshold=120,
        post_submit_time_unix=NOW if any(each.phase == POST for each in checks) else 0,
        post_timeout_threshold=90,
        checks=checks,
    )
    return msgspec.structs.replace(begun, **fields)


@pytest.mark.parametrize("new", [ChangePodStatus(), ChangePodStatus(status="Init", message="Init")])
def test_batch_without_a_server_ends_in_one_write(new: ChangePodStatus) -> None:
    """The CRD sets the state and the message of a new ChangePod to Init."""
    status, following = run(new, server=NO_SERVER)

    assert (status.status, status.message, status.pod_results) == ("ExecuteDone", "PreFailed", ())
    assert following == DONE
    condition = find_condition(status.conditions, "Verified")
    assert condition is not None
    assert (condition.status, condition.reason) == ("True", "NotChecked")
    assert run(status, server=NO_SERVER, now=NOW + 99) == (status, DONE)


def test_batch_goes_through_all_states_with_a_server_that_passes_it() -> None:
    status, following = run(ChangePodStatus())
    assert (status.status, following) == (PodState.PRE_WAIT, start(PRE))
    assert (status.pre_timeout_threshold, status.post_timeout_threshold) == (120, 90)

    status, following = run(status, Started("node-1"))
    assert (status.status, status.change_pod_id, following) == ("PreSubmitted", "node-1", later(POLL_INTERVAL))

    assert run(status)[1] == later(POLL_INTERVAL)
    assert run(status, now=NOW + 3)[1] == poll(PRE)
    assert run(status, Pending(), now=NOW + 3)[1] == later(POLL_INTERVAL)

    status, following = run(status, PASSED, now=NOW + 5)
    assert (status.status, status.post_submit_time_unix, following) == ("PostWait", NOW + 5, start(POST))

    assert run(status, Started("node-1"), now=NOW + 5) == (status, later(POLL_INTERVAL))
    status, _ = run(status, Started("node-1"), now=NOW + 8)
    assert status.status == "PostSubmitted"

    status, following = run(status, PASSED, now=NOW + 9)
    assert (status.status, status.message, following) == ("ExecuteDone", "PostFinish", DONE)
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
    before, following = run(at(state), Lost(), now=NOW + deadline - 1)
    assert before.status == state
    assert following == later(1)

    status, following = run(at(state), Lost(), now=NOW + deadline)
    assert (status.status, status.message, status.pod_results, following) == ("ExecuteDone", message, (), DONE)


@pytest.mark.parametrize(
    ("state", "deadline", "phase", "message"),
    [("PreSubmitted", 120, PRE, "PreTimeout"), ("PostSubmitted", 90, POST, "PostTimeout")],
)
def test_check_without_a_result_is_polled_once_more_at_the_deadline_and_then_passes(
    state: str, deadline: int, phase: Phase, message: str
) -> None:
    assert run(at(state), now=NOW + deadline - 1)[1] == poll(phase)
    assert run(at(state), Pending(), now=NOW + deadline - 1)[1] == later(1)
    assert run(at(state), now=NOW + deadline)[1] == poll(phase, Step.LAST_POLL)
    assert run(at(state), FAILED, now=NOW + deadline)[0].pod_results[0].verdict == "unpass"

    status, following = run(at(state), Pending(), now=NOW + deadline)
    assert (status.status, status.message, status.pod_results, following) == ("ExecuteDone", message, (), DONE)
    assert reason(status) == ("True", "NotChecked")


@pytest.mark.parametrize(("elapsed", "wait"), [(0, 3), (12, 3), (40, 10), (80, 20)])
def test_polls_come_at_longer_intervals(elapsed: int, wait: int) -> None:
    assert run(at("PreSubmitted"), Pending(), now=NOW + elapsed)[1] == later(wait)


def test_submission_with_an_unknown_outcome_is_not_repeated() -> None:
    """It may have reached the server, where it would start another check."""
    assert run(at("PreWait"), Lost(), now=NOW + 20)[1] == later(100)
    assert run(at("PreWait"), now=NOW + 20)[1] == later(100)  # after a restart


def test_start_that_is_repeatable_is_repeated_after_a_restart() -> None:
    assert run(at("PostWait"), now=NOW + 20)[1] == start(POST)
    assert run(at("PostWait"), server=UNREACHABLE, now=NOW + 20)[1] == later(5)


def test_submission_that_did_not_reach_the_server_is_repeated() -> None:
    status, following = run(at("PreWait"), NotStarted(), now=NOW + 5)
    assert (status.status, status.checks, following) == ("Init", (), later(POLL_INTERVAL))
    assert run(status, now=NOW + 8)[1] == start(PRE)


def test_nothing_is_written_while_the_server_is_unreachable_until_the_deadline() -> None:
    before, following = run(ChangePodStatus(), server=UNREACHABLE, now=NOW + 50)
    assert before.status == ""
    assert following == later(POLL_INTERVAL)
    status, following = run(ChangePodStatus(), server=UNREACHABLE, now=NOW + 120)
    assert (status.status, status.message, following) == ("ExecuteDone", "PreFailed", DONE)


def test_batch_ends_if_the_server_is_switched_off() -> None:
    status, following = run(ChangePodStatus(), server=SWITCHED_OFF)
    assert (status.status, status.message, following) == ("ExecuteDone", "PreFailed", DONE)


def test_checks_tell_what_happened() -> None:
    status = run(ChangePodStatus())[0]
    for answer in (Started("node-1"), PASSED, Started("node-1"), FAILED):
        status = run(status, answer)[0]
    assert [(each.name, each.phase, each.state, each.reason) for each in status.checks] == [
        ("server", "Pre", "Passed", "fine"),
        ("server", "Post", "Failed", "error rate 12 %"),
    ]
    assert all(each.start_time and each.end_time for each in status.checks)


def test_result_of_the_second_check_may_come_before_the_answer_to_its_request() -> None:
    status, following = run(at("PostWait"), FAILED)
    assert (status.message, status.pod_results[0].verdict, following) == ("PostFinish", "unpass", DONE)


@pytest.mark.parametrize("message", ["PostTimeout", "PostFailed"])
def test_result_that_comes_after_the_timeout_still_counts(message: str) -> None:
    ended = run(at("ExecuteDone", message=message))[0]
    failed = run(ended, FAILED, now=NOW + 500)[0]
    assert (failed.status, failed.message, reason(failed)) == ("ExecuteDone", message, ("False", Giver.SERVER))
    passed = run(ended, PASSED, now=NOW + 500)[0]
    assert reason(passed) == ("True", "PodsPassed")


def test_pass_of_the_first_check_after_its_timeout_proves_nothing() -> None:
    ended = run(at("PreSubmitted"), Pending(), now=NOW + 120)[0]
    assert run(ended, PASSED, now=NOW + 500)[0] == ended
    assert reason(run(ended, FAILED, now=NOW + 500)[0]) == ("False", Giver.SERVER)


def test_late_result_does_not_replace_the_verdict_of_a_person() -> None:
    verdict = PodInfo("a", verdict="pass", message="I looked")
    ended = run(at("ExecuteDone", message="PostTimeout", pod_results=(verdict,)))[0]
    late = run(ended, FAILED)[0]
    assert [(each.pod, each.verdict) for each in late.pod_results] == [("a", "pass"), ("b", "unpass")]


@pytest.mark.parametrize(
    ("state", "phase", "expected"),
    [
        ("PreWait", "Pre", False),
        ("PreSubmitted", "Pre", True),
        ("PreSubmitted", "Post", False),
        ("PostWait", "Pre", False),
        ("PostWait", "Post", True),
        ("PostSubmitted", "Pre", False),
        ("PostSubmitted", "Post", True),
        ("PreTimeout", "Pre", True),
        ("PostTimeout", "Pre", False),
        ("PostTimeout", "Post", True),
    ],
)
def test_result_of_a_phase_that_is_over_is_of_no_use(state: str, phase: str, expected: bool) -> None:
    assert awaits(at(state), SERVER_CHECK, Phase(phase)) is expected
    assert not awaits(at(state), "another", Phase(phase))


def test_result_of_the_first_check_is_of_no_use_once_the_second_one_has_begun() -> None:
    unknown = CheckResult(name=SERVER_CHECK, phase=Phase.PRE, state=CheckState.UNKNOWN, handle="node")
    running = CheckResult(name=SERVER_CHECK, phase=Phase.POST, state=CheckState.RUNNING, handle="node")
    assert awaits(ChangePodStatus(checks=(unknown,)), SERVER_CHECK, Phase.PRE)
    assert not awaits(ChangePodStatus(checks=(unknown, running)), SERVER_CHECK, Phase.PRE)


@pytest.mark.parametrize(("state", "message"), [("PreWait", "PreFailed"), ("PostWait", "PostFailed")])
def test_refused_check_passes_immediately(state: str, message: str) -> None:
    status, _ = run(at(state), Unknown("unknown scene"))

    assert (status.status, status.message, status.pod_results) == ("ExecuteDone", message, ())


@pytest.mark.parametrize("state", list(PodState))
def test_verdict_of_a_person_on_every_pod_ends_the_batch(state: str) -> None:
    results = (PodInfo("a", verdict="unpass", message="find error"), PodInfo("b", verdict="pass"))

    status, following = run(at(state, pod_results=results, message="I decided"), FAILED)

    assert (status.status, status.message, status.pod_results, following) == (
        "ExecuteDone",
        "I decided",
        results,
        DONE,
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
    status, following = decide(made.status, snapshot_of(made), NOW)

    assert (status.status, status.message, following) == ("ExecuteDone", "PostFinish", DONE)
    assert [(result.pod, result.verdict) for result in status.pod_results] == [("a", "unpass"), ("b", "unpass")]
    assert reason(status) == ("False", Giver.HEALTH)


def test_person_overrules_the_verdict_that_a_batch_was_created_with() -> None:
    made = created_failed("a", "b")
    written = ChangePodStatus(pod_results=(PodInfo("a", verdict="pass"),))
    status, _ = decide(written, snapshot_of(made, server=NO_SERVER), NOW)

    assert [(result.pod, result.verdict) for result in status.pod_results] == [("a", "pass"), ("b", "unpass")]
    assert reason(status) == ("False", Giver.HEALTH)
    kept = projected(msgspec.structs.replace(made, status=status))
    assert [(member.verdict, member.overruled) for member in kept.members] == [("pass", True), ("unpass", False)]


def reason(status: ChangePodStatus) -> tuple[str, str]:
    found = find_condition(status.conditions, "Verified")
    assert found is not None
    return found.status, found.reason


# who gave the verdict


def decided(status: ChangePodStatus, answer: Answer | None = None) -> ChangePodStatus:
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
    failed = decided(at("PreSubmitted"), FAILED)
    assert reason(failed) == ("False", Giver.SERVER)
    assert decided(failed) == failed
    assert projected(change_pod(1, *"abc", status=failed)).giver == Giver.SERVER


def test_batch_failed_by_a_person_stays_attributed_when_the_server_fails_the_rest() -> None:
    judged = decided(at("PreSubmitted", pod_results=(PodInfo("a", verdict="unpass"),)))
    assert reason(judged) == ("False", Giver.PERSON)
    both = decided(judged, FAILED)
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


@pytest.mark.parametrize("reason", ["x" * 1000, "验" * 1000])
def test_largest_batch_with_a_long_reason_fits_into_one_object(reason: str) -> None:
    pod = PodInfo(pod="p" * 63, uid="u" * 36, app="a" * 253, host_name="p" * 63, namespace="n" * 63, ip="1" * 39)
    pods = tuple(msgspec.structs.replace(pod, pod=f"{number:063}") for number in range(MAX_BATCH))
    empty = change_pod(1, "a", status=at("PostSubmitted"))
    made = msgspec.structs.replace(empty, spec=msgspec.structs.replace(empty.spec, pod_infos=pods))

    status, _ = decide(made.status, snapshot_of(made, Fail(reason)), NOW + 1)

    assert [result.verdict for result in status.pod_results] == ["unpass"] * MAX_BATCH
    assert status.pod_results[0].message.startswith(reason[:50])
    assert len(msgspec.json.encode(msgspec.structs.replace(made, status=status))) < 1.5 * 2**20
    assert status.checks[-1].reason.startswith(reason[:299]), "the check keeps the whole reason"


@pytest.mark.parametrize("reason", ["x" * 300, "验" * 300])
def test_verdicts_of_a_small_batch_have_the_whole_reason(reason: str) -> None:
    status, _ = run(at("PostSubmitted"), Fail(reason), now=NOW + 1)
    assert {result.message for result in status.pod_results} == {reason}
