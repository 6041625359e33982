"""When a workload's releases are suspended, and when no longer.

The label goes on after the status that explains it is stored, and comes off before that status goes: so where there is
a label, there is a reason. A success alone takes it off. While a repair runs, the suspension that it repairs stays.
"""

from altershield.api.kinds import WorkloadState
from altershield.releases import state
from altershield.releases.release import version
from reconciler.releases.effects import Announce, Resume, Suspend
from reconciler.releases.snapshot import Snapshot


def resume(snapshot: Snapshot, target: WorkloadState) -> tuple[Resume, ...]:
    return (Resume(),) if snapshot.workload.suspended and target is WorkloadState.SUCCESS else ()


def suspend(snapshot: Snapshot, target: WorkloadState, now: float) -> tuple[Suspend, ...]:
    wanted = target is WorkloadState.SUSPEND and snapshot.settings.blocking
    return (Suspend(int(now)),) if wanted and not snapshot.workload.suspended else ()


def inherited(snapshot: Snapshot, target: WorkloadState) -> tuple[Suspend, ...]:
    """A workload that was deleted with `--cascade=orphan` and made anew is as suspended as it was."""
    if snapshot.workload.suspended or not snapshot.settings.blocking or target is WorkloadState.SUCCESS:
        return ()
    orphans = [each for each in snapshot.others if each.metadata.controller is None]
    since = [each.status.entry_time_unix for each in orphans if state(each) is WorkloadState.SUSPEND]
    return (Suspend(min(since)),) if since else ()


def announce(snapshot: Snapshot, target: WorkloadState, message: str) -> tuple[Announce, ...]:
    before, own = state(snapshot.release), version(snapshot.release)
    if target is WorkloadState.SUSPEND and before is not target:
        consequence = (
            "further releases are denied until it is repaired"
            if snapshot.settings.blocking
            else "the setting `blocking` is off, so further releases are let through"
        )
        return (Announce("ReleaseSuspended", f"version {own}: {message}; {consequence}"),)
    if snapshot.workload.suspended and target is WorkloadState.SUCCESS:
        return (Announce("ReleaseResumed", f"version {own}: {message}", warning=False),)
    return ()
