"""The outcome of the present release of a workload."""

import pytest
from msgspec.structs import replace

from altershield.api import labels
from altershield.api.change_workload import ChangeWorkload, ChangeWorkloadStatus, SourceRef, WorkloadState
from altershield.releases import Outcome, outcome
from tests.unit.altershield.views.builders import DONE, ROLLED_BACK, RUNNING, SUSPENDED, V1, V2, release, workload

SUSPEND = {labels.SUSPEND: "1700000000"}


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (WorkloadState.INIT, Outcome.UNDER_WAY),
        (WorkloadState.RUNNING, Outcome.UNDER_WAY),
        (WorkloadState.TIME_OUT_PRE_THRESHOLD, Outcome.UNDER_WAY),
        (WorkloadState.ROLLBACK, Outcome.UNDER_WAY),
        (WorkloadState.SUCCESS, Outcome.SUCCEEDED),
        (WorkloadState.SUSPEND, Outcome.SUSPENDED),
        (WorkloadState.FAILED, Outcome.ROLLED_BACK),
    ],
)
def test_outcome_follows_from_the_state_of_the_present_release(state: WorkloadState, expected: Outcome) -> None:
    assert outcome(workload(), [release(ChangeWorkloadStatus(status=state))]) is expected


@pytest.mark.parametrize("own_releases", [[], [release(DONE, version=V2)]])
def test_version_without_a_change_workload_is_under_way(own_releases: list[ChangeWorkload]) -> None:
    assert outcome(workload(), own_releases) is Outcome.UNDER_WAY


def test_older_change_workload_does_not_count_until_the_release_is_processed() -> None:
    assert outcome(workload(**{labels.DEFENSE_STATUS: ""}), [release(DONE)]) is Outcome.UNDER_WAY


def test_repair_is_under_way_while_the_workload_is_suspended() -> None:
    repair, failed = release(RUNNING, version=V2), release(SUSPENDED)
    assert outcome(workload(version=V2, **SUSPEND), [failed, repair]) is Outcome.UNDER_WAY


def test_successful_repair_is_under_way_until_the_suspend_label_is_removed() -> None:
    assert outcome(workload(**SUSPEND), [release(DONE)]) is Outcome.UNDER_WAY
    assert outcome(workload(), [release(DONE)]) is Outcome.SUCCEEDED


def test_success_after_a_rollback_is_reported_as_rolled_back() -> None:
    assert outcome(workload(), [release(DONE), release(ROLLED_BACK, version=V2)]) is Outcome.ROLLED_BACK
    assert outcome(workload(), [release(DONE), release(SUSPENDED, version=V2)]) is Outcome.SUCCEEDED


def test_template_that_changed_without_the_version_label_is_under_way() -> None:
    changed = replace(workload(), fingerprint="f" * 32)
    assert outcome(changed, [release(DONE)]) is Outcome.UNDER_WAY
    assert outcome(changed, [release(SUSPENDED)]) is Outcome.UNDER_WAY
    assert outcome(changed, [release(DONE, version="f" * 32)]) is Outcome.UNDER_WAY, "the label is the old one"
    lost = replace(workload(), version="", processed=False)
    assert outcome(lost, [release(DONE)]) is Outcome.UNDER_WAY


def test_template_with_new_defaults_of_the_api_server_is_still_the_verified_one() -> None:
    known = replace(DONE, source=SourceRef(fingerprint="f" * 32))
    assert outcome(replace(workload(), fingerprint="f" * 32), [release(known)]) is Outcome.SUCCEEDED
    assert outcome(replace(workload(), fingerprint=V1), [release(known)]) is Outcome.SUCCEEDED


def test_version_that_the_user_asked_for_is_a_success_after_a_rollback() -> None:
    rolled_back = release(ROLLED_BACK, version=V2)
    assert outcome(workload(), [release(DONE), rolled_back], {V1}) is Outcome.SUCCEEDED
    assert outcome(workload(), [release(DONE), rolled_back], {workload().fingerprint}) is Outcome.SUCCEEDED
    assert outcome(workload(), [release(DONE), rolled_back], {V2}) is Outcome.ROLLED_BACK
    assert outcome(workload(), [release(RUNNING), rolled_back], {V1}) is Outcome.UNDER_WAY
    assert outcome(workload(**SUSPEND), [release(DONE), rolled_back], {V1}) is Outcome.UNDER_WAY
    assert outcome(workload(), [release(SUSPENDED), rolled_back], {V1}) is Outcome.SUSPENDED
