"""How the present release of a workload ended."""

import pytest

from altershield.api import labels
from altershield.api.kinds import ChangeWorkload, ChangeWorkloadStatus, WorkloadState
from altershield.releases import Outcome, outcome
from tests.unit.commands.status.builders import (
    DONE,
    ROLLED_BACK,
    RUNNING,
    SUSPENDED,
    V2,
    release,
    workload,
)

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
def test_the_state_of_the_present_release_decides(state: WorkloadState, expected: Outcome) -> None:
    assert outcome(workload(), [release(ChangeWorkloadStatus(status=state))]) is expected


@pytest.mark.parametrize("all_releases", [[], [release(DONE, version=V2)]])
def test_a_version_without_a_record_is_under_way(all_releases: list[ChangeWorkload]) -> None:
    assert outcome(workload(), all_releases) is Outcome.UNDER_WAY


def test_a_record_of_before_does_not_count_until_the_release_is_processed() -> None:
    assert outcome(workload(**{labels.DEFENSE_STATUS: ""}), [release(DONE)]) is Outcome.UNDER_WAY


def test_a_repair_is_under_way_although_the_suspension_that_it_repairs_lasts() -> None:
    repair, failed = release(RUNNING, version=V2), release(SUSPENDED)
    assert outcome(workload(version=V2, **SUSPEND), [failed, repair]) is Outcome.UNDER_WAY


def test_a_repair_has_ended_when_the_suspension_is_taken_off() -> None:
    assert outcome(workload(**SUSPEND), [release(DONE)]) is Outcome.UNDER_WAY
    assert outcome(workload(), [release(DONE)]) is Outcome.SUCCEEDED


def test_a_success_after_a_rollback_tells_of_the_rollback() -> None:
    assert outcome(workload(), [release(DONE), release(ROLLED_BACK, version=V2)]) is Outcome.ROLLED_BACK
    assert outcome(workload(), [release(DONE), release(SUSPENDED, version=V2)]) is Outcome.SUCCEEDED
