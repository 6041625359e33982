"""Whether the current release of a workload is under way, or how it ended."""

from collections.abc import Iterable
from enum import Enum

from altershield.api.change_workload import WorkloadState
from altershield.releases.release import Release, is_current, rolled_back, state
from altershield.workloads.workload import Workload


class Outcome(Enum):
    """How the current release ended, or that it is under way."""

    SUCCEEDED = "succeeded"
    UNDER_WAY = "under way"
    SUSPENDED = "suspended"
    ROLLED_BACK = "rolled back"


def outcome(workload: Workload, own_releases: Iterable[Release]) -> Outcome:
    """The outcome for a workload that has a version. `own_releases`: the ChangeWorkloads of all its versions.

    Only the current release counts. A repair is under way until it succeeds, although the workload is still suspended.
    """
    own_releases = list(own_releases)
    present = next((release for release in own_releases if is_current(release, workload)), None)
    if present is None:
        return Outcome.UNDER_WAY  # admitted, but the reconciler has not created its ChangeWorkload yet
    match state(present):
        case WorkloadState.SUCCESS:
            if workload.suspended:
                return Outcome.UNDER_WAY  # the reconciler removes the suspension next
            others = (release for release in own_releases if release is not present)
            return Outcome.ROLLED_BACK if any(map(rolled_back, others)) else Outcome.SUCCEEDED
        case WorkloadState.SUSPEND:
            return Outcome.SUSPENDED
        case WorkloadState.FAILED:
            return Outcome.ROLLED_BACK
        case _:
            return Outcome.UNDER_WAY
