"""Whether a release failed verification, and is rolled back if the DefensePolicy says so. Pure functions.

Overdue pods are not meant here: `ending` decides about them.
"""

from altershield.api.kinds import ConditionType, Giver, WorkloadState
from altershield.api.meta import has_reason
from altershield.api.policy import OnFailure
from altershield.releases import state
from reconciler.releases import suspension, verification
from reconciler.releases.pod_groups import Group
from reconciler.releases.snapshot import RollbackReason, Snapshot


def has_failed(snapshot: Snapshot) -> bool:
    """Whether pods that exist failed verification by a person, a server or a check.

    After such a failure paused the rollout for a time, the version stays failed if these pods are gone and no other pod
    of the version has come in their place, or if its pods are overdue: both can be a consequence of the pause.
    """
    groups, paused = snapshot.groups, snapshot.release.status.pause.end_time_unix > 0
    if groups is None:
        return False
    if groups.count(Group.FAILED):
        return paused or verification.giver(groups) is not Giver.HEALTH
    failed = state(snapshot.release) in (WorkloadState.SUSPEND, WorkloadState.ROLLBACK)
    replaced = len(groups) and snapshot.workload.replicas and not verification.unreplaced(snapshot)
    return paused and failed and not replaced


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
    ends = snapshot.release.status.pause.end_time_unix > 0
    if ends and snapshot.workload.held and not snapshot.own_pause:
        return "somebody changed the rollout since AlterShield paused it"
    if snapshot.workload.paused and not snapshot.own_pause:
        return "the rollout is paused"
    if has_reason(snapshot.release.status.conditions, ConditionType.ROLLED_BACK, RollbackReason.RELEASED_AGAIN):
        return "this version was rolled back once before and then released again"
    if not snapshot.settings.rollback:
        return snapshot.settings.rollback_off
    return ""
