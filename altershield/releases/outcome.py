"""Whether the current release of a workload is under way, or how it ended."""

from collections.abc import Container, Iterable
from enum import Enum

from altershield.api.change_workload import WorkloadState
from altershield.releases.release import Release, is_current, is_of_present_template, rolled_back, state
from altershield.workloads.workload import Workload


class Outcome(Enum):
    """How the current release ended, or that it is under way."""

    SUCCEEDED = "succeeded"
    UNDER_WAY = "under way"
    SUSPENDED = "suspended"
    ROLLED_BACK = "rolled back"


def outcome(workload: Workload, own_releases: Iterable[Release], asked: Container[str] = ()) -> Outcome:
    """The outcome for a workload that has a version or had one. `own_releases`: the ChangeWorkloads of all its
    versions. `asked`: versions whose success is what the user asked for, although another version was rolled back.

    Only the current release counts. A repair is under way until it succeeds, although the workload is still suspended.
    """
    own_releases = list(own_releases)
    present = next((release for release in own_releases if is_current(release, workload)), None)
    if present is None or not is_of_present_template(present, workload):
        return Outcome.UNDER_WAY  # the reconciler has not begun to verify the present template yet
    match state(present):
        case WorkloadState.SUCCESS:
            if workload.suspended:
                return Outcome.UNDER_WAY  # the reconciler removes the suspension next
            if workload.version in asked or workload.fingerprint in asked:
                return Outcome.SUCCEEDED
            others = (release for release in own_releases if release is not present)
            return Outcome.ROLLED_BACK if any(map(rolled_back, others)) else Outcome.SUCCEEDED
        case WorkloadState.SUSPEND:
            return Outcome.SUSPENDED
        case WorkloadState.FAILED:
            return Outcome.ROLLED_BACK
        case _:
            return Outcome.UNDER_WAY
