"""Decides when the releases of a workload are suspended and resumed.

The label `suspend` is written after the status that explains it, and removed before that status is replaced. So a label
always has an explanation. Only a success, or a person's request, removes the label. While a repair is under way, the
suspension stays.
"""

from altershield.api import labels
from altershield.api.change_workload import WorkloadState
from altershield.releases import state
from altershield.releases.release import version_of
from altershield.releases.texts import ONLY_REPAIRS
from reconciler.releases.findings.failure import is_resumed
from reconciler.releases.pods.group import Group
from reconciler.releases.terms.effects import Announce, Resume, Suspend
from reconciler.releases.terms.snapshot import Snapshot


def resume(snapshot: Snapshot, next_state: WorkloadState) -> tuple[Resume, ...]:
    """Remove the label if the release succeeds."""
    return (Resume(),) if snapshot.workload.suspended and next_state is WorkloadState.SUCCESS else ()


def suspend(snapshot: Snapshot, next_state: WorkloadState, now: float) -> tuple[Suspend | Announce, ...]:
    """Write the label if the release fails and the setting `blocking` is on.

    After a person has resumed releases, only another failed pod suspends them again."""
    wanted = next_state is WorkloadState.SUSPEND and snapshot.settings.blocking
    if not wanted or snapshot.workload.suspended:
        return ()
    if not is_resumed(snapshot):
        return (Suspend(int(now)),)
    known, groups = set(snapshot.release.status.resumption.pods), snapshot.groups
    failed = groups.pods_in(Group.FAILED) if groups is not None else ()
    other = next((each.pod.metadata for each in failed if each.pod.metadata.uid not in known), None)
    if other is None:
        return ()
    own = version_of(snapshot.release)
    message = f"version {own} is suspended again: pod {other.name} failed after a person had resumed the releases"
    return Suspend(int(now)), Announce("ReleaseSuspended", message)


def inherited(snapshot: Snapshot, next_state: WorkloadState) -> tuple[Suspend, ...]:
    """Suspend a workload that was deleted with `--cascade=orphan` and created again, if it was suspended before."""
    if snapshot.workload.suspended or not snapshot.settings.blocking or next_state is WorkloadState.SUCCESS:
        return ()
    if is_resumed(snapshot):
        return ()
    orphans = [each for each in snapshot.others if each.metadata.controller is None]
    since = [each.status.entry_time_unix for each in orphans if state(each) is WorkloadState.SUSPEND]
    return (Suspend(min(since)),) if since else ()


def announce(snapshot: Snapshot, next_state: WorkloadState, message: str) -> tuple[Announce, ...]:
    """The Event of a suspension or of its end."""
    before, own = state(snapshot.release), version_of(snapshot.release)
    if next_state is WorkloadState.SUSPEND and before is not next_state:
        consequence = (
            f"{ONLY_REPAIRS} with the label {labels.IGNORED_SUSPEND}=true"
            if snapshot.settings.blocking
            else f"further releases are admitted, because {snapshot.settings.blocking_off}"
        )
        return (Announce("ReleaseSuspended", f"version {own} is suspended: {message}; {consequence}"),)
    if snapshot.workload.suspended and next_state is WorkloadState.SUCCESS:
        return (
            Announce(
                "ReleaseResumed", f"version {own} succeeded: {message}; further releases are admitted", warning=False
            ),
        )
    return ()
