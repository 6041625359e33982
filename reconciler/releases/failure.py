"""What a failed verification leads to besides the suspension, if the DefensePolicy says so: a rollback, or a pause of
the rollout. Pure functions.

Overdue pods are not meant here: `ending` decides about them.
"""

from collections.abc import Sequence

from altershield.api.kinds import ConditionType, Giver, WorkloadState
from altershield.api.meta import has_reason
from altershield.api.policy import OnFailure
from altershield.releases.release import version
from altershield.workloads.workload import Strategy
from reconciler.releases import suspension, verification
from reconciler.releases.effects import After, Announce, Pause, Suspend, Unpause
from reconciler.releases.pod_groups import Group
from reconciler.releases.snapshot import RollbackReason, Snapshot


def has_failed(snapshot: Snapshot) -> bool:
    """Whether pods that exist failed verification by a person, a server or a check."""
    groups = snapshot.groups
    return groups is not None and groups.count(Group.FAILED) > 0 and verification.giver(groups) is not Giver.HEALTH


def wants_rollback(snapshot: Snapshot) -> bool:
    """Whether the release is to be rolled back because it failed verification.

    There is one attempt for each failed version: none after a rollback was not possible or was withdrawn, until the
    release succeeds, and none after a person resumed releases.
    """
    return (
        snapshot.settings.on_failure is OnFailure.ROLLBACK
        and has_failed(snapshot)
        and not suspension.is_resumed(snapshot)
        and not _was_tried(snapshot)
    )


def _was_tried(snapshot: Snapshot) -> bool:
    status = snapshot.release.status
    if has_reason(status.conditions, ConditionType.ROLLED_BACK, RollbackReason.NOT_UNDONE):
        return True
    withdrawn = has_reason(status.conditions, ConditionType.ROLLED_BACK, RollbackReason.WITHDRAWN)
    return withdrawn and status.rollback_reason == RollbackReason.VERIFICATION_FAILED


def no_rollback_reason(snapshot: Snapshot) -> str:
    """Why the release is not rolled back although it failed verification; empty if it may be.

    The strategy does not matter, unlike for overdue pods: the policy asks for the rollback.
    """
    if snapshot.workload.paused:
        return "the rollout is paused"
    if has_reason(snapshot.release.status.conditions, ConditionType.ROLLED_BACK, RollbackReason.RELEASED_AGAIN):
        return "this version was rolled back once before and then released again"
    if not snapshot.settings.rollback:
        return snapshot.settings.rollback_off
    return ""


def pause(snapshot: Snapshot, target: WorkloadState, after: Sequence[After], why: str) -> tuple[After, ...]:
    """Pause the rollout of a release that is suspended because it failed verification, or end the pause.

    `after`: the effects that are already decided. A rollout that a person paused stays as it is, and so does one that a
    person continued while the annotation of AlterShield says that it is paused.
    """
    workload, own = snapshot.workload, version(snapshot.release)
    suspended = target is WorkloadState.SUSPEND and (
        bool(workload.suspended) or any(isinstance(each, Suspend) for each in after)
    )
    if workload.held:
        if suspended or _is_verified_while_paused(snapshot, target):
            return ()
        message = f"the rollout continues: AlterShield had paused it, and version {own} is not suspended"
        return Unpause(), Announce("RolloutContinued", message, warning=False)
    wanted = suspended and snapshot.settings.on_failure is OnFailure.PAUSE and has_failed(snapshot)
    if not wanted or workload.paused or workload.strategy is Strategy.ON_DELETE:
        return ()
    message = (
        f"the rollout of version {own} is paused: {why}; it continues after a person approves or resumes the release, "
        "or when another version is released"
    )
    return Pause(own, why), Announce("RolloutPaused", message)


def _is_verified_while_paused(snapshot: Snapshot, target: WorkloadState) -> bool:
    """Whether the version for which the rollout was paused still has pods that have not passed, after its failed pods
    were deleted or are verified again. Releases are suspended until then."""
    workload, groups = snapshot.workload, snapshot.groups
    return (
        bool(workload.suspended)
        and target is not WorkloadState.SUCCESS
        and workload.held_version == version(snapshot.release)
        and groups is not None
        and groups.count(Group.PASSED) < len(groups)
    )
