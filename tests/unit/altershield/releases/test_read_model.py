"""The values that all components read from a ChangeWorkload in the same way."""

from typing import Any

import msgspec
import pytest

from altershield import releases
from altershield.api.change_workload import ChangeWorkload, ChangeWorkloadStatus, SourceRef, WorkloadRef, WorkloadState
from altershield.api.meta import Condition
from altershield.api.pod_verdicts import PodInfo
from tests.support.workloads import BY_NAME
from tests.unit.altershield.releases.builders import NOW, V1, V2, V3, release, workload

each_kind = pytest.mark.parametrize("kind", sorted(BY_NAME))


def condition(type_: str, status: str = "True", reason: str = "Because", message: str = "why") -> Condition:
    return Condition(type_, status, reason, message)


def with_status(state: str = "Running", *conditions: Condition, **fields: Any) -> ChangeWorkload:
    return release(V1, ChangeWorkloadStatus(status=state, conditions=conditions, **fields))


def test_version_comes_from_the_name_and_not_from_the_label() -> None:
    made = release(V1)
    forged = msgspec.structs.replace(made.metadata, labels={"version": V2})
    assert releases.version_of(msgspec.structs.replace(made, metadata=forged)) == V1


@pytest.mark.parametrize("state", list(WorkloadState))
def test_every_state_is_known(state: WorkloadState) -> None:
    assert releases.state(release(V1, state)) is state


@pytest.mark.parametrize("odd", ["", "success", "Unknown", "\n"])
def test_unknown_state_counts_as_init(odd: str) -> None:
    assert releases.state(release(V1, odd)) is WorkloadState.INIT


@each_kind
def test_release_is_current_if_its_version_is_processed_and_nothing_is_being_deleted(kind: str) -> None:
    made = release(V1, kind=kind)
    assert releases.is_current(made, workload(V1, kind=kind))
    assert not releases.is_current(made, workload(V2, kind=kind))
    assert not releases.is_current(made, None)
    unprocessed = msgspec.structs.replace(workload(V1, kind=kind), processed=False)
    assert not releases.is_current(made, unprocessed)
    ends = msgspec.structs.replace(workload(V1).metadata, deleting=True)
    assert not releases.is_current(made, msgspec.structs.replace(workload(V1), metadata=ends))
    gone = msgspec.structs.replace(made.metadata, deletion_timestamp="2026-08-21T07:29:49Z")
    assert not releases.is_current(msgspec.structs.replace(made, metadata=gone), workload(V1, kind=kind))


def test_since_is_the_entry_time_or_the_creation_time() -> None:
    assert releases.since(release(V1)) == NOW
    assert releases.since(with_status(entry_time_unix=NOW + 5)) == NOW + 5


def test_only_a_successful_release_passed() -> None:
    assert [state for state in WorkloadState if releases.passed(release(V1, state))] == [WorkloadState.SUCCESS]


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (with_status("Rollback"), True),
        (with_status("Failed", condition("RolledBack")), True),
        (with_status("Failed", condition("RolledBack", "False")), False),
        (with_status("Failed"), False),
        (with_status("Running"), False),
    ],
)
def test_release_counts_as_rolled_back_during_and_after_a_rollback(made: ChangeWorkload, expected: bool) -> None:
    assert releases.rolled_back(made) is expected


def test_template_is_recognised_by_the_version_or_the_fingerprint() -> None:
    made = with_status(source=SourceRef(fingerprint=V2))
    assert releases.is_of_template(made, V1)
    assert releases.is_of_template(made, V2)
    assert not releases.is_of_template(made, V3)


@pytest.mark.parametrize(
    ("status", "reason", "by"),
    [
        ("False", "FailedByPerson", "person"),
        ("False", "FailedByServer", "server"),
        ("False", "FailedByHealth", "health"),
        ("True", "FailedByPerson", ""),
        ("False", "anything else", ""),
    ],
)
def test_failed_by_follows_from_the_reason_of_verified(status: str, reason: str, by: str) -> None:
    assert releases.failed_by(with_status("Suspend", condition("Verified", status, reason))) == by
    assert releases.failed_by(with_status("Suspend")) == ""


def test_stalled_and_ungated_return_the_condition_if_it_is_true() -> None:
    stalled, ungated = condition("Stalled"), condition("Ungated")
    assert releases.stalled(with_status("Running", stalled)) == stalled
    assert releases.stalled(with_status("Running", condition("Stalled", "False"))) is None
    assert releases.ungated(with_status("Running", ungated)) == ungated
    assert releases.ungated(with_status()) is None


@pytest.mark.parametrize(
    ("made", "present", "expected"),
    [
        (with_status("Success"), V1, False),
        (with_status("Running"), V1, True),
        (with_status("Suspend"), V1, True),
        (with_status("Suspend"), V2, False),
        (with_status("Failed", condition("RolledBack")), V2, True),
        (with_status("Failed", condition("RolledBack", "False")), V2, False),
    ],
)
def test_release_needs_attention_unless_it_succeeded_or_was_replaced(
    made: ChangeWorkload, present: str, expected: bool
) -> None:
    assert releases.wants_attention(made, workload(present)) is expected
    assert not releases.wants_attention(made, None)


# texts


def pods(count: int) -> tuple[PodInfo, ...]:
    return tuple(PodInfo(f"web-{number}", verdict="unpass", message="find error") for number in range(count))


def test_failed_pods_are_named_with_their_messages_up_to_three() -> None:
    assert releases.named(with_status("Suspend", defense_check_fail_pods=pods(1))) == "web-0 (find error)"
    several = releases.named(with_status("Suspend", defense_check_fail_pods=pods(5)))
    assert several == "web-0, web-1, web-2 (find error) and 2 more"
    odd = (PodInfo("a", verdict="x"), PodInfo("b"))
    assert releases.named(with_status("Suspend", defense_check_fail_pods=odd)) == "a (x); b (no message)"


def test_a_message_that_several_failed_pods_share_appears_once() -> None:
    mixed = (*pods(1), PodInfo("api-0", message="no answer"), PodInfo("web-1", message="find error"))
    text = releases.named(with_status("Suspend", defense_check_fail_pods=mixed))
    assert text == "web-0, web-1 (find error); api-0 (no answer)"


@pytest.mark.parametrize(
    ("made", "current", "text"),
    [
        (with_status("Rollback", condition("RolledBack", "False", message="back")), True, "back"),
        (
            with_status(
                "Success",
                condition("RolledBack", "False", message="no such version", reason="NoTarget"),
                condition("Verified", message="3 of 3 pods passed"),
            ),
            True,
            "3 of 3 pods passed",
        ),
        (with_status("Suspend", defense_check_fail_pods=pods(1)), True, "failed: web-0 (find error)"),
        (
            with_status(
                "Suspend", condition("RolledBack", "False", message="no older pod"), defense_check_fail_pods=pods(1)
            ),
            True,
            "failed: web-0 (find error); no older pod",
        ),
        (
            with_status("Failed", condition("RolledBack", message="undone"), defense_check_fail_pods=pods(1)),
            False,
            "undone",
        ),
        (with_status("Running", condition("Stalled", reason="Unschedulable")), True, "Unschedulable: why"),
        (with_status("Running", condition("NoReplicas", message="none")), True, "none"),
        (with_status("Running", condition("NoReplicas", "False", message="none")), True, ""),
        (with_status("Running", condition("Verified", "Unknown", message="1 of 3")), True, "1 of 3"),
        (with_status("Running"), True, ""),
        (with_status("Running"), False, "superseded"),
        (
            with_status("Running", condition("Ungated", reason="NoVersion"), condition("Verified", message="1 of 3")),
            True,
            "ungated (NoVersion); 1 of 3",
        ),
    ],
)
def test_why_explains_the_state_of_a_release(made: ChangeWorkload, current: bool, text: str) -> None:
    assert releases.why(made, current=current) == text


# which ChangeWorkloads belong to a workload


def reference(kind: str = "Deployment", name: str = "sleep", uid: str = "sleep") -> WorkloadRef:
    return WorkloadRef(BY_NAME[kind].resource.api_version, kind, name, uid)


@each_kind
def test_change_workload_belongs_only_to_its_workload(kind: str) -> None:
    made = release(V1, kind=kind)
    assert releases.belongs(made, reference(kind))
    assert not releases.belongs(made, reference(kind, uid="another"))
    assert releases.release_index_key(made) == releases.workload_index_key("default", reference(kind))
    assert releases.release_index_key(made) != releases.workload_index_key("default", reference(kind, name="other"))


def test_owner_of_another_kind_api_version_or_uid_does_not_count() -> None:
    made = release(V1)
    spec = msgspec.structs.replace(made.spec, workload_ref=WorkloadRef())
    for forged in ({"kind": "StatefulSet"}, {"api_version": "evil/v1"}, {"uid": "other"}):
        owner = msgspec.structs.replace(made.metadata.owner_references[0], **forged)
        metadata = msgspec.structs.replace(made.metadata, owner_references=(owner,))
        assert not releases.belongs(msgspec.structs.replace(made, metadata=metadata, spec=spec), reference())


def test_orphan_belongs_to_the_workload_of_the_same_kind_and_name() -> None:
    made = release(V1)
    orphan = msgspec.structs.replace(made, metadata=msgspec.structs.replace(made.metadata, owner_references=()))
    assert releases.belongs(orphan, reference(uid="recreated"))
    assert not releases.belongs(orphan, reference("StatefulSet", uid="recreated"))
    without_reference = msgspec.structs.replace(
        orphan, spec=msgspec.structs.replace(made.spec, workload_ref=WorkloadRef())
    )
    assert releases.belongs(without_reference, reference(uid="recreated"))
