"""What is decided about a ChangeWorkload, state by state."""

from collections.abc import Sequence

import msgspec
import pytest

from altershield.api.kinds import (
    ChangePod,
    ChangePodStatus,
    ChangeWorkload,
    ChangeWorkloadStatus,
    PodInfo,
    WorkloadState,
)
from altershield.api.meta import Condition, find_condition
from altershield.api.ops_config import Settings
from altershield.api.views import Deployment, Pod
from reconciler.decisions import pods as facts
from reconciler.decisions.change_workloads import (
    KEPT_RECORDS,
    LISTS_INTERVAL,
    PROGRESS,
    PROGRESS_INTERVAL,
    Observed,
    decide,
    judge,
)
from reconciler.decisions.effects import (
    Announce,
    CreateChangePod,
    Effect,
    Remove,
    Requeue,
    Resume,
    SetThreshold,
    Suspend,
)
from tests.unit.reconciler.builders import NOW, V1, V2, V3, change_pod, change_workload, deployment, pod

DONE = ChangePodStatus(status="ExecuteDone", message="PreFailed")
DEFAULTS = Settings()
BATCHES = Settings(branch=True, content="2")
PASSED = ChangePodStatus(status="ExecuteDone", pod_results=(PodInfo("a", verdict="pass"),))


def failed(
    name: str, message: str = "find error", verdict: str = "unpass", status: str = "ExecuteDone"
) -> ChangePodStatus:
    return ChangePodStatus(status=status, pod_results=(PodInfo(pod=name, verdict=verdict, message=message),))


def observe(
    record: ChangeWorkload | None = None,
    target: Deployment | None = None,
    pods: Sequence[Pod] = (),
    change_pods: Sequence[ChangePod] = (),
    *,
    others: Sequence[ChangeWorkload] = (),
    settings: Settings = DEFAULTS,
) -> Observed:
    return Observed(
        change_workload=record or change_workload(),
        deployment=target or deployment(),
        pods=pods,
        change_pods=change_pods,
        highest_number=len(change_pods),
        others=others,
        settings=settings,
    )


def run(observed: Observed, now: float = NOW) -> tuple[ChangeWorkloadStatus, tuple[Effect, ...]]:
    return decide(observed.change_workload.status, observed, now)


def up(*names: str, finished: int = NOW) -> list[Pod]:
    return [pod(name, finished=finished, ready=True) for name in names]


def verified(status: ChangeWorkloadStatus) -> Condition:
    condition = find_condition(status.conditions, "Verified")
    assert condition is not None
    return condition


def names_of(pods: Sequence[PodInfo]) -> list[str]:
    return [info.pod for info in pods]


@pytest.mark.parametrize("state", ["", "Init"])
def test_a_release_begins_to_run_at_once(state: str) -> None:
    status, _ = run(observe(change_workload(status=state), pods=[pod("a")]))

    assert status.status == WorkloadState.RUNNING
    assert (status.entry_time_unix, status.entry_time) == (NOW, "2023-11-14 22:13:20")
    assert verified(status).status == "Unknown"
    assert verified(status).message == "0 of 3 pods passed, 3 not up"


def test_each_pod_that_came_up_is_verified_on_its_own() -> None:
    status, effects = run(observe(pods=[*up("a", "b"), pod("c")]))

    created = [effect for effect in effects if isinstance(effect, CreateChangePod)]
    assert [(each.number, names_of(each.pods)) for each in created] == [(1, ["a"]), (2, ["b"])]
    info = created[0].pods[0]
    assert (info.app, info.host_name, info.work_space, info.namespace) == ("sleep", "a", "default", "default")
    assert names_of(status.defense_checking_pods) == ["a", "b"]


def test_numbers_go_on_from_the_highest_in_use() -> None:
    seen = observe(pods=up("a", "b"), change_pods=[change_pod(1, "a", status=DONE)])

    _, effects = run(seen)

    assert [effect.number for effect in effects if isinstance(effect, CreateChangePod)] == [2]


def test_success_once_every_pod_passed() -> None:
    old = change_workload(V2, "Suspend", created=NOW - 100)
    change_pods = [change_pod(number, name, status=DONE) for number, name in enumerate("abc", start=1)]

    status, effects = run(observe(pods=up("a", "b", "c"), change_pods=change_pods, others=[old]))

    assert status.status == WorkloadState.SUCCESS
    assert verified(status).status == "True"
    assert names_of(status.defense_check_pass_pods) == ["a", "b", "c"]
    assert effects == (Remove(old),)


@pytest.mark.parametrize(
    "pods",
    [
        up("a", "b"),
        [*up("a", "b"), pod("c")],
        [*up("a", "b"), pod("c", finished=NOW, waiting=("CrashLoopBackOff", "back-off"))],
        [*up("a", "b"), pod("c", finished=NOW, terminating=True)],
        [*up("a", "b"), pod("c", finished=NOW, phase="Failed")],
    ],
    ids=["too few", "one not up", "one crashing", "one terminating", "one evicted"],
)
def test_no_success_before_all_replicas_are_there_and_well(pods: list[Pod]) -> None:
    change_pods = [change_pod(number, name, status=DONE) for number, name in enumerate("abc", start=1)]

    status, _ = run(observe(pods=pods, change_pods=change_pods))

    assert status.status == WorkloadState.RUNNING


def test_nothing_to_run_is_a_success() -> None:
    status, _ = run(observe(target=deployment(replicas=0)))

    assert status.status == WorkloadState.SUCCESS


def test_the_first_failure_suspends_while_the_others_are_still_verified() -> None:
    change_pods = [change_pod(1, "a", status=failed("a"))]

    status, effects = run(observe(pods=up("a", "b"), change_pods=change_pods), now=NOW + 9)

    assert status.status == WorkloadState.SUSPEND
    assert status.defense_check_fail_pods == (PodInfo(pod="a", verdict="unpass", message="find error"),)
    assert verified(status).message == "1 of 2 pods failed verification: a (find error)"
    assert Suspend(NOW + 9) in effects
    assert [effect.number for effect in effects if isinstance(effect, CreateChangePod)] == [2]
    announced = [effect for effect in effects if isinstance(effect, Announce)]
    assert [(each.reason, each.warning) for each in announced] == [("ReleaseSuspended", True)]


@pytest.mark.parametrize("verdict", ["unpass", "fail", "PASS", "x"])
@pytest.mark.parametrize("state", ["", "Init", "PreWait", "PostSubmitted", "ExecuteDone"])
def test_any_verdict_but_pass_fails_a_pod_in_every_state_of_its_change_pod(verdict: str, state: str) -> None:
    change_pods = [change_pod(1, "a", status=failed("a", verdict=verdict, status=state))]

    status, _ = run(observe(pods=up("a"), change_pods=change_pods))

    assert status.status == WorkloadState.SUSPEND


def test_a_failure_after_the_success_suspends_as_well() -> None:
    change_pods = [change_pod(1, "a", status=failed("a"))]

    status, effects = run(observe(change_workload(status="Success"), pods=up("a"), change_pods=change_pods))

    assert status.status == WorkloadState.SUSPEND
    assert Suspend(NOW) in effects


def test_with_blocking_off_a_failure_is_told_but_puts_no_label() -> None:
    observed = observe(
        pods=up("a"), change_pods=[change_pod(1, "a", status=failed("a"))], settings=Settings(blocking=False)
    )

    status, effects = run(observed)

    assert status.status == WorkloadState.SUSPEND
    assert not any(isinstance(effect, Suspend) for effect in effects)
    assert any(isinstance(effect, Announce) for effect in effects)


def test_blocking_switched_on_labels_what_is_suspended_already() -> None:
    observed = observe(
        change_workload(status="Suspend"), pods=up("a"), change_pods=[change_pod(1, "a", status=failed("a"))]
    )

    _, effects = run(observed)

    assert Suspend(NOW) in effects
    assert not any(isinstance(effect, Announce) for effect in effects)


@pytest.mark.parametrize(
    ("pods", "status"),
    [
        (up("b"), failed("a")),
        (up("a"), ChangePodStatus(status="ExecuteDone", pod_results=(PodInfo("a", verdict="pass"),))),
    ],
    ids=["failed pod gone", "judged anew"],
)
def test_the_suspension_ends_when_the_failure_does(pods: list[Pod], status: ChangePodStatus) -> None:
    observed = observe(
        change_workload(status="Suspend"),
        deployment(suspended=True),
        pods=pods,
        change_pods=[change_pod(1, "a", status=status)],
    )

    decided, effects = run(observed)

    assert decided.status == WorkloadState.RUNNING
    assert Resume() in effects
    assert [effect.reason for effect in effects if isinstance(effect, Announce)] == ["ReleaseResumed"]


def test_a_repair_keeps_the_suspension_until_it_succeeds() -> None:
    target = deployment(V2, suspended=True, replicas=1)
    repair = change_workload(V2, created=NOW)
    running = observe(repair, target, pods=up("a"))
    done = observe(repair, target, pods=up("a"), change_pods=[change_pod(1, "a", version=V2, status=DONE)])

    assert Resume() not in run(running)[1]
    assert Resume() in run(done)[1]


def test_the_newest_change_pod_of_a_pod_counts() -> None:
    verdicts = judge(up("a"), [change_pod(10, "a", status=DONE), change_pod(9, "a", status=failed("a"))], "sleep")

    assert names_of(verdicts.passed) == ["a"]


def test_a_result_without_a_verdict_or_for_a_stranger_says_nothing() -> None:
    results = (PodInfo(pod="a", message="looks odd"), PodInfo(pod="stranger", verdict="unpass"))
    record = change_pod(1, "a", status=ChangePodStatus(status="ExecuteDone", pod_results=results))

    status, _ = run(observe(target=deployment(replicas=1), pods=up("a"), change_pods=[record]))

    assert status.status == WorkloadState.SUCCESS


def test_pods_after_a_success_are_verified_without_taking_it_back() -> None:
    observed = observe(
        change_workload(status="Success"),
        pods=up("a", "b"),
        change_pods=[change_pod(1, "a", status=DONE)],
    )

    status, effects = run(observed)

    assert status.status == WorkloadState.SUCCESS
    assert any(isinstance(effect, CreateChangePod) for effect in effects)


@pytest.mark.parametrize("state", ["Failed", "Rollback"])
def test_a_closed_record_stays_as_it_is(state: str) -> None:
    observed = observe(
        change_workload(status=state), pods=up("a"), change_pods=[change_pod(1, "a", status=failed("a"))]
    )

    assert run(observed) == (observed.change_workload.status, ())


# batches


def test_a_batch_is_taken_when_it_is_full() -> None:
    observed = observe(change_workload(threshold=2), pods=up("a", "b", "c"), settings=BATCHES)

    status, effects = run(observed)

    assert [names_of(effect.pods) for effect in effects if isinstance(effect, CreateChangePod)] == [["a", "b"]]
    assert names_of(status.defense_preparing_pods) == ["c"]
    assert Requeue(60) in effects


def test_an_incomplete_batch_times_out_and_is_then_taken() -> None:
    waited = observe(change_workload(threshold=2), pods=up("a"), settings=BATCHES)

    timed_out, effects = run(waited, now=NOW + 60)

    assert timed_out.status == WorkloadState.TIME_OUT_PRE_THRESHOLD
    assert effects == (Requeue(0),)

    taking = observe(change_workload(status=timed_out, threshold=2), pods=up("a"), settings=BATCHES)
    running, effects = run(taking, now=NOW + 60)

    assert running.status == WorkloadState.RUNNING
    assert [names_of(effect.pods) for effect in effects if isinstance(effect, CreateChangePod)] == [["a"]]


@pytest.mark.parametrize("state", ["Success", "Suspend"])
def test_outside_of_running_an_incomplete_batch_is_taken_without_a_time_out_state(state: str) -> None:
    change_pods = [change_pod(1, "z", status=failed("z"))] if state == "Suspend" else []
    pods = [*up("a"), *(up("z") if state == "Suspend" else [])]

    status, effects = run(
        observe(change_workload(status=state, threshold=2), pods=pods, change_pods=change_pods, settings=BATCHES),
        now=NOW + 60,
    )

    assert status.status == state
    assert [names_of(effect.pods) for effect in effects if isinstance(effect, CreateChangePod)] == [["a"]]


def test_a_pod_whose_mark_is_unreadable_waits_to_be_marked_anew() -> None:
    strange = pod("a", ready=True)
    strange.metadata.labels["altershield.defense.antgroup.com/operate-finished"] = "yesterday"

    status, effects = run(observe(change_workload(), pods=[strange]))

    assert not facts.finished(strange)
    assert (status.status, [effect for effect in effects if isinstance(effect, CreateChangePod)]) == ("Running", [])


def test_the_threshold_in_the_spec_follows_settings_and_replicas() -> None:
    _, effects = run(observe(change_workload(threshold=1), deployment(replicas=2), settings=Settings(branch=True)))

    assert SetThreshold(2) in effects


# records


def test_success_keeps_the_record_of_what_was_rolled_back_to_it() -> None:
    rolled_back = change_workload(V2, ChangeWorkloadStatus(status="Failed", rollback_to=V1))
    elsewhere = change_workload(V3, ChangeWorkloadStatus(status="Failed", rollback_to=V2))

    _, effects = run(observe(target=deployment(replicas=0), others=[rolled_back, elsewhere]))

    assert [effect for effect in effects if isinstance(effect, Remove)] == [Remove(elsewhere)]


def test_success_never_removes_a_newer_record() -> None:
    newer = change_workload(V2, created=NOW + 1)

    _, effects = run(observe(target=deployment(replicas=0), others=[newer]))

    assert effects == ()


def test_records_of_pods_long_gone_are_pruned() -> None:
    gone = [change_pod(number, f"gone-{number}", status=DONE) for number in range(1, KEPT_RECORDS + 3)]

    _, effects = run(observe(pods=up("a"), change_pods=[*gone, change_pod(99, "a", status=DONE)]))

    assert [effect.record for effect in effects if isinstance(effect, Remove)] == gone[:2]


# writes


def test_nothing_is_written_when_nothing_changed() -> None:
    first, _ = run(observe(pods=[pod("a")]))
    again = observe(change_workload(status=first), pods=[pod("a")])

    status, effects = run(again, now=NOW + 1000)

    assert status is first
    assert effects == ()


def test_much_progress_is_written_earlier() -> None:
    first, _ = run(observe(target=deployment(replicas=9), pods=[pod("a")]))
    passed = [f"pod-{number}" for number in range(PROGRESS)]
    records = [change_pod(number, name, status=DONE) for number, name in enumerate(passed, start=1)]
    later = observe(change_workload(status=first), deployment(replicas=9), pods=up(*passed), change_pods=records)

    assert run(later, now=NOW + 1)[1] == (Requeue(PROGRESS_INTERVAL - 1),)
    assert names_of(run(later, now=NOW + PROGRESS_INTERVAL)[0].defense_check_pass_pods) == passed


def test_lists_are_brought_up_to_date_now_and_then_only() -> None:
    first, _ = run(observe(pods=[pod("a")]))
    later = observe(change_workload(status=first), pods=up("a"), change_pods=[change_pod(1, "a")])

    soon, effects = run(later, now=NOW + 1)
    assert soon is first
    assert effects == (Requeue(LISTS_INTERVAL - 1),)

    due, _ = run(later, now=NOW + LISTS_INTERVAL)
    assert names_of(due.defense_checking_pods) == ["a"]
    assert due.update_time_unix == NOW + LISTS_INTERVAL


def test_a_second_failure_is_written_at_once() -> None:
    one = [change_pod(1, "a", status=failed("a")), change_pod(2, "b", status=DONE)]
    first, _ = run(observe(pods=up("a", "b"), change_pods=one))
    both = [one[0], change_pod(2, "b", status=failed("b"))]

    status, _ = run(observe(change_workload(status=first), pods=up("a", "b"), change_pods=both), now=NOW + 1)

    assert names_of(status.defense_check_fail_pods) == ["a", "b"]


def test_a_huge_deployment_is_listed_in_part_but_counted_in_full() -> None:
    pods = up(*(f"pod-{number:05}" for number in range(5000)))
    records = [change_pod(number, each.metadata.name, status=DONE) for number, each in enumerate(pods, start=1)]
    records[-1] = change_pod(5000, pods[-1].metadata.name, status=failed(pods[-1].metadata.name))

    status, _ = run(observe(target=deployment(replicas=5000), pods=pods, change_pods=records))

    assert names_of(status.defense_check_fail_pods) == ["pod-04999"]
    assert len(msgspec.json.encode(status)) < 1_000_000
    assert verified(status).message.startswith("1 of 5000 pods failed")
