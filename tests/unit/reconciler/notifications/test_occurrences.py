"""What there is to tell about a release."""

import msgspec
import pytest

from altershield.api.change_pod import ChangePodStatus, PodState
from altershield.api.change_workload import ChangeWorkloadStatus, WorkloadState
from altershield.api.condition_types import ConditionType
from altershield.api.meta import Condition
from altershield.api.pod_verdicts import PodInfo
from altershield.api.rollout import Phase, RolloutStatus
from altershield.api.workload_requests import Action
from kube_base.times import rfc3339
from reconciler.cluster import batch
from reconciler.cluster import release as projection
from reconciler.cluster.batch import Batch
from reconciler.cluster.release import Release
from reconciler.notifications.occurrences import Occurrence, approval_needed, occurrences
from tests.unit.altershield.releases import builders
from tests.unit.altershield.releases.builders import NOW, V1


def release(status: ChangeWorkloadStatus) -> Release:
    return projection.read(msgspec.json.encode(builders.release(V1, status)))


def condition(type_: ConditionType, reason: str, at: int = NOW + 5, *, status: str = "True") -> Condition:
    return Condition(type_, status, reason, f"message of {reason}", rfc3339(at))


def batch_of(number: int, *conditions: Condition, done: bool = False) -> Batch:
    state = PodState.EXECUTE_DONE if done else PodState.POST_SUBMITTED
    return batch.project(builders.change_pod(number, "a", status=ChangePodStatus(state, conditions=conditions)))


HELD = condition(ConditionType.VERIFIED, "Held", status="Unknown")


def events(status: ChangeWorkloadStatus, *batches: Batch) -> list[tuple[str, int, str, str]]:
    return [(each.event, each.since, each.reason, each.message) for each in occurrences(release(status), batches)]


@pytest.mark.parametrize("state", sorted(set(WorkloadState) - {WorkloadState.SUSPEND, WorkloadState.SUCCESS}))
def test_release_in_another_state_has_nothing_to_tell(state: WorkloadState) -> None:
    assert events(ChangeWorkloadStatus(state, entry_time_unix=NOW)) == []


def test_suspension_has_the_time_of_the_state_and_the_failed_pods() -> None:
    status = ChangeWorkloadStatus(
        WorkloadState.SUSPEND,
        entry_time_unix=NOW + 7,
        defense_check_fail_pods=(PodInfo("web-1", verdict="unpass", message="find error"),),
        conditions=(condition(ConditionType.VERIFIED, "FailedByPerson", status="False"),),
    )
    assert events(status) == [("suspended", NOW + 7, "FailedByPerson", "failed: web-1 (find error)")]


def test_rollback_is_told_when_it_is_done() -> None:
    for status, told in (("False", 0), ("True", 1)):
        undone = condition(ConditionType.ROLLED_BACK, "PodsNotUp", status=status)
        assert len(events(ChangeWorkloadStatus(WorkloadState.FAILED, conditions=(undone,)))) == told
    assert events(ChangeWorkloadStatus(WorkloadState.FAILED, conditions=(undone,))) == [
        ("rolled-back", NOW + 5, "PodsNotUp", "message of PodsNotUp")
    ]


def test_ungated_release_is_told_once_in_any_state() -> None:
    past = condition(ConditionType.UNGATED, "NoVersion")
    for state in (WorkloadState.RUNNING, WorkloadState.FAILED):
        assert events(ChangeWorkloadStatus(state, conditions=(past,))) == [
            ("ungated", NOW + 5, "NoVersion", "message of NoVersion")
        ]


def test_overrides_that_let_a_release_pass_together_are_one_event() -> None:
    def action(name: str, at: int = NOW + 5, verb: str = "Override") -> Action:
        return Action(verb, "ann", f"why {name}", rfc3339(at), "Done", f"ReleaseOverride {name}")

    actions = (action("shop/one"), action("system/two"), action("", verb="Retry"), action("shop/three", NOW + 60))
    assert events(ChangeWorkloadStatus(WorkloadState.RUNNING, actions=actions)) == [
        (
            "override-used",
            NOW + 5,
            "OverrideUsed",
            "asked for by ann (why shop/one): ReleaseOverride shop/one; asked for by ann (why system/two): "
            "ReleaseOverride system/two",
        ),
        ("override-used", NOW + 60, "OverrideUsed", "asked for by ann (why shop/three): ReleaseOverride shop/three"),
    ]


def test_override_that_is_recorded_later_than_another_one_of_the_same_moment_is_told_too() -> None:
    def ids(*names: str) -> list[str]:
        actions = tuple(
            Action("Override", "ann", "why", rfc3339(NOW), "Done", f"ReleaseOverride {each}") for each in names
        )
        return [each.id for each in occurrences(release(ChangeWorkloadStatus(actions=actions)), ())]

    first, both = ids("shop/one"), ids("shop/one", "system/two")
    assert len({*first, *both}) == 2
    assert ids("system/two") == both, "the first action is dropped after many others"


def test_key_of_an_override_with_the_longest_names_fits_into_the_status() -> None:
    outcome = f"ReleaseOverride {'n' * 63}/{'o' * 253} let it pass ReleaseFreeze {'n' * 63}/{'f' * 253}"
    used = Action("Override", "ann", "why", rfc3339(NOW), "Done", outcome)
    (found,) = occurrences(release(ChangeWorkloadStatus(actions=(used,))), ())
    assert len(f"{found.key}/{'r' * 63}/resolved") <= 128


def test_held_batches_of_a_release_are_one_event_with_the_time_of_the_first() -> None:
    later = condition(ConditionType.VERIFIED, "Held", NOW + 90, status="Unknown")
    running = ChangeWorkloadStatus(WorkloadState.RUNNING)
    assert events(running, batch_of(1, later), batch_of(2, HELD), batch_of(3)) == [
        ("approval-needed", NOW + 5, "Held", "message of Held")
    ]
    assert events(running, batch_of(1, later)) == [("approval-needed", NOW + 90, "Held", "message of Held")]


def test_batch_that_is_verified_or_done_is_not_held() -> None:
    assert approval_needed(batch_of(1, HELD)) == HELD
    assert approval_needed(batch_of(1)) is None
    in_progress = condition(ConditionType.VERIFIED, "InProgress", status="Unknown")
    assert approval_needed(batch_of(1, in_progress)) is None
    assert approval_needed(batch_of(1, condition(ConditionType.VERIFIED, "NotChecked"), done=True)) is None


def test_invalid_time_of_a_condition_is_0() -> None:
    past = Condition(ConditionType.UNGATED, "True", "NoVersion", "", "yesterday")
    assert events(ChangeWorkloadStatus(WorkloadState.RUNNING, conditions=(past,))) == [("ungated", 0, "NoVersion", "")]


def test_id_stays_the_same_for_one_event_and_differs_for_each_other() -> None:
    past = condition(ConditionType.UNGATED, "NoVersion")
    first = ChangeWorkloadStatus(WorkloadState.SUSPEND, entry_time_unix=NOW, conditions=(past,))
    again = msgspec.structs.replace(first, entry_time_unix=NOW + 60)
    ids = [{each.id for each in occurrences(release(status), ())} for status in (first, first, again)]
    assert ids[0] == ids[1]
    assert len(ids[0] | ids[2]) == 3


@pytest.mark.parametrize("phase", [each for each in Phase if each not in (Phase.WAITING_FOR_APPROVAL, Phase.STOPPED)])
def test_step_that_goes_on_or_is_held_by_a_person_has_nothing_to_tell(phase: Phase) -> None:
    own = RolloutStatus(phase=phase, step=2, steps=4, phase_time_unix=NOW, waiting_for=("person",))
    assert events(ChangeWorkloadStatus(WorkloadState.RUNNING, rollout=own)) == []


def test_step_that_waits_for_approval_is_told_with_the_time_of_its_phase() -> None:
    own = RolloutStatus(phase=Phase.WAITING_FOR_APPROVAL, step=2, steps=4, pods=3, phase_time_unix=NOW + 9)
    assert events(ChangeWorkloadStatus(WorkloadState.RUNNING, rollout=own)) == [
        (
            "step-waiting",
            NOW + 9,
            "WaitingForApproval",
            "step 2 of 4: its 3 pods are verified, and a person has to promote the release",
        )
    ]


def test_step_whose_labels_no_node_has_is_told() -> None:
    own = RolloutStatus(phase=Phase.HELD, step=1, steps=2, waiting_since_unix=NOW + 9, waiting_for=("nodeSelector",))
    ((event, since, reason, message),) = events(ChangeWorkloadStatus(WorkloadState.RUNNING, rollout=own))
    assert (event, since, reason) == ("step-waiting", NOW + 9, "NoNodes")
    assert "label one, or promote the release" in message


def test_failed_step_is_told_with_its_pods() -> None:
    own = RolloutStatus(phase=Phase.STOPPED, step=2, steps=4, pods=3, updated=3, phase_time_unix=NOW + 9)
    failed = (PodInfo("web-1", verdict="unpass", message="find error"),)
    status = ChangeWorkloadStatus(WorkloadState.RUNNING, rollout=own, defense_check_fail_pods=failed)
    assert events(status) == [
        (
            "step-failed",
            NOW + 9,
            "Stopped",
            "step 2 of 4: stopped, 3 of 3 pods have the version; failed: web-1 (find error)",
        )
    ]


def test_success_is_one_event_of_a_release_that_succeeds_several_times() -> None:
    def succeeded(at: int, reached: int) -> Occurrence:
        status = ChangeWorkloadStatus(WorkloadState.SUCCESS, entry_time_unix=at, reached=reached, replicas=10)
        (found,) = occurrences(release(status), ())
        return found

    first, second = succeeded(NOW + 7200, 3), succeeded(NOW + 9999, 10)
    assert (first.event, first.message, first.time) == ("succeeded", "3 of 10 pods passed", NOW + 7200)
    assert first.id == second.id
