"""The decision about the current release of a workload. `decide` is pure; the other modules of this package decide its
parts."""

from dataclasses import replace

from altershield.api.change_workload import WorkloadState
from altershield.api.condition_types import ConditionType
from altershield.releases import state
from altershield.releases.release import version_of
from altershield.releases.texts import NOT_ROLLED_BACK
from reconciler.releases.decisions import pause, requests, rollback, suspension
from reconciler.releases.decisions.advance import advance
from reconciler.releases.findings import failure, verification
from reconciler.releases.findings.ending import (
    automatic_target,
    cause_unknown,
    ending,
    health_verdict,
    no_rollback_reason,
)
from reconciler.releases.terms.draft import begin_with, with_update_time
from reconciler.releases.terms.effects import After, Announce, Before, Decision
from reconciler.releases.terms.snapshot import RollbackReason, Snapshot


def decide(snapshot: Snapshot, now: float) -> Decision:
    """The next step of the release, at `now` (Unix seconds). The same input gives the same decision."""
    request = snapshot.release.status.request
    if request is not None:
        return requests.answer(snapshot, request, now)
    match state(snapshot.release):
        case WorkloadState.FAILED:
            return Decision()  # an end state
        case WorkloadState.ROLLBACK:
            step = rollback.next_step(snapshot, now)
            return _while_refused(snapshot, step, now) if rollback.write_refused(snapshot.release) else step
        case _:
            return (
                _refused(snapshot, now)
                or _repeat_lost_batch(snapshot)
                or _fail(snapshot, now)
                or _end(snapshot, now)
                or advance(snapshot, (), now)
            )


def _refused(snapshot: Snapshot, now: float) -> Decision | None:
    """Fail a release whose order the AlterShield server refuses. No pod is verified."""
    reported = snapshot.reported
    if reported is None or reported.status != "False":
        return None
    draft = begin_with(snapshot, now).enter(WorkloadState.FAILED)
    message = f"version {version_of(snapshot.release)} is not verified: {reported.message}"
    draft = draft.condition(ConditionType.VERIFIED, None, "OrderRefused", message)
    return Decision(with_update_time(draft.status, now), after=(Announce("ReleaseRefused", message),))


def _repeat_lost_batch(snapshot: Snapshot) -> Decision | None:
    """Create the ChangePod of failed pods again if somebody deleted it: a verdict lasts as long as its pod."""
    groups = snapshot.groups
    if groups is None:
        return None
    lost = verification.failed_without_batch(snapshot.release, groups)
    return (
        Decision(before=(verification.repeat_batch(snapshot.release, groups, lost),), requeue_after=0.0)
        if lost
        else None
    )


def _fail(snapshot: Snapshot, now: float) -> Decision | None:
    """Roll back a release that failed verification, if its policy says so: at once, or at the end of a pause. None if
    the policy does not say so."""
    pause_is_over = pause.wants_rollback(snapshot, now)
    if not pause_is_over and not failure.wants_rollback(snapshot):
        return None
    if snapshot.workload.held and snapshot.targets is None:
        return Decision(read_live=True)  # somebody else may have changed the pause
    why, refusal = failure.why(snapshot), failure.no_rollback_reason(snapshot)
    if pause_is_over:
        why = f"{why}; {pause.end_text(snapshot)}"
    if refusal in ("", snapshot.settings.rollback_off):
        if snapshot.targets is None:
            return Decision(read_live=True)
        target = automatic_target(snapshot, snapshot.targets)
        if isinstance(target, str):
            refusal = target
        elif not refusal:
            step = rollback.store_intent(snapshot, target, RollbackReason.VERIFICATION_FAILED, why, now)
            return replace(step, after=(pause.ended_with_rollback(snapshot), *step.after)) if pause_is_over else step
    return advance(snapshot, (), now, f"{why}{NOT_ROLLED_BACK}{refusal}")


def _end(snapshot: Snapshot, now: float) -> Decision | None:
    """Roll back or suspend a release whose pods do not come up; None if the release does not end now."""
    if snapshot.targets is None and cause_unknown(snapshot, now):
        return Decision(read_live=True)
    found = ending(snapshot, now)
    if found is None or snapshot.groups is None:
        return None
    targets = snapshot.targets
    if targets is None:
        return Decision(read_live=True)
    refusal = no_rollback_reason(snapshot, targets)
    if refusal in ("", snapshot.settings.rollback_off):
        target = automatic_target(snapshot, targets)
        if isinstance(target, str):
            refusal = target
        elif not refusal:
            return rollback.store_intent(snapshot, target, RollbackReason.POD_NOT_UP, found.why, now)
    failing = [
        verification.failed_now(snapshot.groups, tracked, health_verdict(snapshot, tracked, now))
        for tracked in found.pods
    ]
    return advance(snapshot, failing, now, f"{found.why}{NOT_ROLLED_BACK}{refusal}")


def _while_refused(snapshot: Snapshot, step: Decision, now: float) -> Decision:
    """While the API server refuses the write of a rollback, go on verifying pods, and suspend the workload."""
    groups = snapshot.groups
    if step.read_live or step.status is not None or groups is None:
        return step
    ready = verification.batches(snapshot, groups, now)
    before: tuple[Before, ...] = (
        *verification.marks(snapshot, groups, now),
        *verification.create_batches(groups, ready.full),
    )
    # the label comes first, because a refused write ends this reconcile
    after: tuple[After, ...] = (*suspension.suspend(snapshot, WorkloadState.SUSPEND, now), *step.after)
    return Decision(None, before, after, requeue_after=ready.left)
