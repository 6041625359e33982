"""Decides whether a release failed verification, and whether it is rolled back for this. Pure functions.

This module does not decide about overdue pods: `ending` does.
"""

from altershield.api.change_workload import WorkloadState
from altershield.api.condition_types import ConditionType, Giver
from altershield.api.meta import find_condition, has_reason
from altershield.api.policy import OnFailure
from altershield.releases import state
from reconciler.releases.findings import release_checks, verification
from reconciler.releases.pods.group import Group
from reconciler.releases.terms.snapshot import RollbackReason, Snapshot

STEP_DEADLINE = "StepDeadlineExceeded"
"""The reason of the condition Verified if a step of a release in steps was not verified in time."""


def has_failed(snapshot: Snapshot) -> bool:
    """Whether pods that exist failed verification by a person, a server or a check.

    If such a failure paused the rollout for a time, the version stays failed in two more cases, because both can be a
    consequence of the pause: the failed pods are gone and no pod of the version has replaced them, or pods of the
    version are overdue.
    """
    groups, pause_ends = snapshot.groups, snapshot.release.status.pause.end_time_unix > 0
    if without_pods(snapshot)[0]:
        return True
    if groups is None:
        return False
    if groups.count(Group.FAILED):
        return pause_ends or verification.giver(groups) is not Giver.HEALTH
    failed = state(snapshot.release) in (WorkloadState.SUSPEND, WorkloadState.ROLLBACK)
    replaced = len(groups) and snapshot.workload.replicas and not verification.unreplaced(snapshot)
    return pause_ends and failed and not replaced


def is_resumed(snapshot: Snapshot) -> bool:
    """Whether a person admitted further releases although this one failed."""
    return bool(snapshot.release.status.resumption.since_unix)


def exceeded_deadline(snapshot: Snapshot) -> bool:
    """Whether the release failed because a step was not verified in time. A person may decide otherwise."""
    status = snapshot.release.status
    ended = status.status in (WorkloadState.SUSPEND, WorkloadState.ROLLBACK)
    return ended and has_reason(status.conditions, ConditionType.VERIFIED, STEP_DEADLINE)


def wants_rollback(snapshot: Snapshot) -> bool:
    """Whether the release is to be rolled back because it failed verification.

    There is one attempt for each failed version. If a rollback was not possible or was withdrawn, there is no other
    attempt until the release succeeds. If a person has resumed releases, there is no attempt.
    """
    return (
        snapshot.settings.on_failure is OnFailure.ROLLBACK
        and has_failed(snapshot)
        and not is_resumed(snapshot)
        and not _was_tried(snapshot)
    )


def _was_tried(snapshot: Snapshot) -> bool:
    status = snapshot.release.status
    if has_reason(status.conditions, ConditionType.ROLLED_BACK, RollbackReason.NOT_UNDONE):
        return True
    withdrawn = has_reason(status.conditions, ConditionType.ROLLED_BACK, RollbackReason.WITHDRAWN)
    return withdrawn and status.rollback_reason == RollbackReason.VERIFICATION_FAILED


def no_rollback_reason(snapshot: Snapshot) -> str:
    """The reason why the release is not rolled back although it failed verification; empty if it may be rolled back.

    The strategy does not matter here, because the policy asks for the rollback. It matters for overdue pods.
    """
    pause_ends = snapshot.release.status.pause.end_time_unix > 0
    if pause_ends and snapshot.workload.held and not snapshot.own_pause:
        return "somebody changed the rollout since AlterShield paused it"
    if snapshot.workload.in_force.paused and not snapshot.own_pause:
        return "the rollout is paused"
    if has_reason(snapshot.release.status.conditions, ConditionType.ROLLED_BACK, RollbackReason.RELEASED_AGAIN):
        return "this version was rolled back once before and then released again"
    if not snapshot.settings.rollback:
        return snapshot.settings.rollback_off
    return ""


def without_pods(snapshot: Snapshot, overdue: str = "") -> tuple[str, str]:
    """The reason and the message of the condition Verified of a release that fails without a failed pod; both empty if
    it does not. `overdue`: why its step is overdue now."""
    if overdue:
        return STEP_DEADLINE, overdue
    checks = release_checks.failed(snapshot) if snapshot.batches else None
    if checks is not None:
        return checks.checks.giver, release_checks.text_of(checks)
    verified = find_condition(snapshot.release.status.conditions, ConditionType.VERIFIED)
    if exceeded_deadline(snapshot) and verified is not None:
        return verified.reason, verified.message
    return "", ""


def why(snapshot: Snapshot) -> str:
    """Why the release failed verification, as a sentence."""
    return without_pods(snapshot)[1] or verification.summary(snapshot)
