"""How the present release of a workload ended, or that it is still under way."""

from collections.abc import Iterable
from enum import Enum

from altershield.api.kinds import WorkloadState
from altershield.releases.release import Release, is_current, rolled_back, state
from altershield.workloads.workload import Workload


class Outcome(Enum):
    SUCCEEDED = "succeeded"
    UNDER_WAY = "under way"
    SUSPENDED = "suspended"
    ROLLED_BACK = "rolled back"


def outcome(workload: Workload, all_releases: Iterable[Release]) -> Outcome:
    """The outcome of a workload that has a version; `records` are those of its versions.

    The present release decides. A repair is under way although the suspension that it repairs lasts until it succeeds.
    """
    all_releases = list(all_releases)
    present = next((release for release in all_releases if is_current(release, workload)), None)
    if present is None:
        return Outcome.UNDER_WAY  # admitted, and not recorded yet
    match state(present):
        case WorkloadState.SUCCESS:
            if workload.suspended:
                return Outcome.UNDER_WAY  # the suspension is taken off next
            others = (release for release in all_releases if release is not present)
            return Outcome.ROLLED_BACK if any(map(rolled_back, others)) else Outcome.SUCCEEDED
        case WorkloadState.SUSPEND:
            return Outcome.SUSPENDED
        case WorkloadState.FAILED:
            return Outcome.ROLLED_BACK
        case _:
            return Outcome.UNDER_WAY
