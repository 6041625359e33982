"""The next step of a release that is neither refused nor rolled back: verifies pods that are up, and derives the state,
the conditions and the labels. Pure functions.
"""

from collections.abc import Sequence

from altershield.api.change_workload import Resumption, Settling, WorkloadState
from altershield.api.condition_types import ConditionType, Giver
from altershield.api.meta import find_condition, has_reason
from altershield.api.pod_verdicts import PodInfo
from altershield.releases import state
from altershield.releases.enforcement import only_text
from altershield.releases.release import version_of
from reconciler.cluster.release import Release
from reconciler.releases.decisions import pause, steps, suspension
from reconciler.releases.findings import not_up, release_checks, verification
from reconciler.releases.findings.ending import health_counts
from reconciler.releases.findings.failure import without_pods
from reconciler.releases.findings.waiting import with_settling, with_waits
from reconciler.releases.pods.group import Group
from reconciler.releases.pods.groups import PodGroups
from reconciler.releases.terms.draft import (
    LISTED_FAILED,
    Draft,
    are_short,
    begin_with,
    down_pods,
    failed_pods,
    lists_differ,
    lists_due,
    urgent,
    with_lists,
    with_update_time,
)
from reconciler.releases.terms.effects import After, Announce, Before, Decision, Remove, RestoreLabel, SetThreshold
from reconciler.releases.terms.snapshot import RollbackReason, Snapshot


def advance(snapshot: Snapshot, failing: Sequence[PodInfo], now: float, no_rollback: str = "") -> Decision:
    """Verify pods that are up, and derive the state, the conditions and the labels.

    `failing`: overdue pods that get a failing verdict now. `no_rollback`: why the release is not rolled back.
    """
    release, groups = snapshot.release, snapshot.groups
    next_state = WorkloadState.SUSPEND if failing else verification.next_state(snapshot)
    found = steps.next_progress(snapshot, next_state, now)
    next_state = steps.gated(next_state, snapshot, found)
    next_state, runs = release_checks.after(snapshot, next_state) if release.spec.policy.checks else (next_state, ())
    next_state, taken, wake = _batches(snapshot, next_state, now)
    ask = not_up.ask_due(snapshot, next_state)
    if ask is not None and ask <= now and not snapshot.events_read:
        return Decision(read_events=True)
    overdue = found.overdue if found is not None else ""
    reason, message = without_pods(snapshot, overdue) if next_state is WorkloadState.SUSPEND else ("", "")
    message = verification.summary(snapshot, failing) if failing or not reason else message
    only = only_text(release.spec.policy) if next_state is WorkloadState.SUSPEND else ""
    message = f"{message}; {only}" if only else message
    draft, entered = begin_with(snapshot, now), state(release) is not next_state
    draft, waits = with_waits(draft, snapshot, next_state)
    draft = not_up.with_not_up(draft, snapshot, next_state)
    wakes = [wake, waits, ask, groups.next_due() if groups is not None else None]
    if next_state is WorkloadState.SUCCESS:
        draft, settles = with_settling(draft.replace(resumption=Resumption()), snapshot, entered)
        if groups is not None and not snapshot.pods_read and (entered or _settles(draft, release)):
            return Decision(read_pods=True)  # a pod may have crashed, and the cache may not show it yet
        wakes.append(settles)
        draft = _reached(draft, snapshot, groups, entered) if groups is not None else draft
    else:
        draft = draft.without(ConditionType.SETTLED).without(ConditionType.CHECKED)
        draft = draft.replace(settle_time_unix=0, settling=Settling())
    draft = _verified(draft.enter(next_state), snapshot, next_state, message, failing, reason)
    taken_steps = steps.with_steps(draft, snapshot, found)
    draft = taken_steps.draft
    if no_rollback and not _released_again(snapshot):
        draft = draft.condition(ConditionType.ROLLED_BACK, False, RollbackReason.NOT_UNDONE, no_rollback)
    elif next_state is WorkloadState.RUNNING:
        draft = _without_refusal(draft)
    before: list[Before] = [*taken_steps.before, *runs]
    after: list[After] = []
    if groups is not None:
        before += verification.marks(snapshot, groups, now)
        before += verification.create_batches(groups, [*taken, *verification.failed_batches(failing)])
        before += _restore_labels(snapshot, groups)
        after += [Remove(each) for each in verification.surplus(groups)]
    size = snapshot.settings.batch_size(snapshot.workload.replicas)
    if release.spec.count_threshold != size:
        before.append(SetThreshold(size))
    before += suspension.resume(snapshot, next_state)
    after += suspension.suspend(snapshot, next_state, now) or suspension.inherited(snapshot, next_state)
    after += suspension.announce(snapshot, next_state, no_rollback or message)
    after += _stalled(snapshot, draft)
    if next_state is WorkloadState.SUCCESS:
        after += [Remove(other) for other in snapshot.others if _obsolete(other, release)]
    # last: if the API server refuses the hold or the pause, all other effects have been carried out
    step = pause.step(snapshot, draft, next_state, after, message, no_rollback)
    wakes += [taken_steps.wake, step.wake]
    return _decision(step.draft, snapshot, before, [*after, *taken_steps.after, *step.after], wakes)


def _reached(draft: Draft, snapshot: Snapshot, groups: PodGroups, entered: bool) -> Draft:
    """Sets how far a release in Success has come, and the condition Checked when it succeeds."""
    draft = _checked(draft, snapshot, groups) if entered else draft
    extent_of = verification.extent if entered else verification.next_extent
    reached, replicas = extent_of(snapshot, groups)
    return draft.replace(reached=reached, replicas=replicas)


def _settles(draft: Draft, release: Release) -> bool:
    """Whether the condition Settled becomes true."""
    known, wanted = (find_condition(each.conditions, ConditionType.SETTLED) for each in (release.status, draft.status))
    return wanted is not None and wanted.is_true and (known is None or not known.is_true)


def _batches(
    snapshot: Snapshot, next_state: WorkloadState, now: float
) -> tuple[WorkloadState, Sequence[tuple[PodInfo, ...]], float | None]:
    """The state, which may be TimeOutPreThreshold now, the batches to create now, and the time when the next batch is
    due (Unix seconds, or None)."""
    if snapshot.groups is None:
        return next_state, (), None
    ready = verification.batches(snapshot, snapshot.groups, now)
    present = state(snapshot.release)
    if not ready.overdue:
        return next_state, ready.full, None if ready.left is None else now + ready.left
    if next_state is WorkloadState.RUNNING and present is WorkloadState.RUNNING:
        return WorkloadState.TIME_OUT_PRE_THRESHOLD, ready.full, now
    if next_state is not WorkloadState.RUNNING or present is WorkloadState.TIME_OUT_PRE_THRESHOLD:
        return next_state, (*ready.full, ready.overdue), None
    return next_state, ready.full, now  # the release enters Running now: the next decision enters TimeOutPreThreshold


def _verified(
    draft: Draft,
    snapshot: Snapshot,
    next_state: WorkloadState,
    message: str,
    failing: Sequence[PodInfo],
    reason: str = "",
) -> Draft:
    """Sets the lists of failed and down pods, and the condition Verified. `reason`: why the release fails, if no pod
    fails it."""
    groups = snapshot.groups
    failed = failed_pods(groups) if groups is not None else ()
    gone = verification.unreplaced(snapshot) if next_state is WorkloadState.SUSPEND else ()
    listed = sorted((*failed, *gone, *failing), key=lambda info: info.pod)[:LISTED_FAILED]
    draft = draft.replace(defense_check_fail_pods=tuple(listed))
    if groups is not None:
        draft = draft.replace(down_pods=down_pods(groups) if health_counts(snapshot) else ())
    match next_state:
        case WorkloadState.SUSPEND:
            if reason and not failing:
                return draft.condition(ConditionType.VERIFIED, False, reason, message)
            if groups is not None and not failing and not groups.count(Group.FAILED):
                return draft  # the failed pods are gone, but the reason for the suspension stays
            by = Giver.HEALTH if failing and not failed else verification.giver(groups) if groups is not None else ""
            return draft.condition(ConditionType.VERIFIED, False, by or Giver.PERSON, message)
        case WorkloadState.SUCCESS:
            known = find_condition(draft.status.conditions, ConditionType.ROLLED_BACK)
            if known is not None and not known.is_true and known.reason != RollbackReason.NO_TARGET:
                draft = draft.without(ConditionType.ROLLED_BACK)
            return draft.condition(ConditionType.VERIFIED, True, "PodsPassed", message)
        case _:
            return draft.condition(ConditionType.VERIFIED, None, "InProgress", message)


def _checked(draft: Draft, snapshot: Snapshot, groups: PodGroups) -> Draft:
    """Sets the condition Checked of a release that succeeds. It reports pods without a verdict of a check, which count
    as passed."""
    if not snapshot.checked:
        return draft.without(ConditionType.CHECKED)
    number = verification.unchecked(groups)
    if not number:
        return draft.condition(ConditionType.CHECKED, True, "AllChecked", "every pod has a verdict")
    message = f"{number} of {len(groups)} pods count as passed without a verdict; their ChangePods say why"
    return draft.condition(ConditionType.CHECKED, False, "NotChecked", message)


def _without_refusal(draft: Draft) -> Draft:
    """Removes the reason why the release was not rolled back, after a person corrected the verdict."""
    refused = has_reason(draft.status.conditions, ConditionType.ROLLED_BACK, RollbackReason.NOT_UNDONE)
    return draft.without(ConditionType.ROLLED_BACK) if refused else draft


def _released_again(snapshot: Snapshot) -> bool:
    """Whether the release carries the mark that its version was rolled back and released again. The mark has
    to stay."""
    return has_reason(snapshot.release.status.conditions, ConditionType.ROLLED_BACK, RollbackReason.RELEASED_AGAIN)


def _restore_labels(snapshot: Snapshot, groups: PodGroups) -> list[Before]:
    """Restores the version label of pods of this version.

    If the workload's selector uses the label, nothing is restored: the changed label has already removed the pod from
    the workload.
    """
    if snapshot.workload.selects_version:
        return []
    return [RestoreLabel(pod) for pod in groups.mislabelled()]


def _stalled(snapshot: Snapshot, draft: Draft) -> tuple[Announce, ...]:
    """An Event if the release is newly stalled, or stalled for another reason."""
    known = find_condition(snapshot.release.status.conditions, ConditionType.STALLED)
    wanted = find_condition(draft.status.conditions, ConditionType.STALLED)
    if wanted is None or not wanted.is_true:
        return ()
    if known is not None and known.is_true and known.reason == wanted.reason:
        return ()
    own = version_of(snapshot.release)
    return (Announce("ReleaseStalled", f"version {own} is stalled: {wanted.reason}: {wanted.message}"),)


def _obsolete(other: Release, current: Release) -> bool:
    """Whether the ChangeWorkload of another version is not needed after the success of `current`."""
    if other.spec.workload_ref.uid == current.spec.workload_ref.uid and (
        other.spec.workload_generation > current.spec.workload_generation
    ):
        return False  # a newer release: the cache of workloads is behind the cache of ChangeWorkloads
    # a version that was rolled back to this one stays denied
    target = other.status.rollback_target
    return not (
        state(other) is WorkloadState.FAILED
        and other.status.rollback_to
        and (other.status.rollback_to == version_of(current) or target.uid == current.status.source.uid)
    )


def _decision(
    draft: Draft,
    snapshot: Snapshot,
    before: list[Before],
    after: list[After],
    wakes: list[float | None],
) -> Decision:
    """The decision; it includes the status only if it has to be written now."""
    now, release, groups = draft.now, snapshot.release, snapshot.groups
    status, lists = draft.status, False
    write = urgent(release.status, status)
    words_due = not_up.write_due(release.status, status)
    if words_due is not None and words_due <= now:
        write = True
    elif words_due is not None:
        wakes.append(words_due)
    # groups that were just rebuilt still observe pods that passed long ago
    unknown = groups is not None and state(release) is WorkloadState.SUCCESS and groups.count(Group.OBSERVING) > 0
    if groups is not None and groups.lists_changed_at is not None and not unknown:
        passed = groups.count(Group.PASSED)
        at_once = status.status != release.status.status or (write and are_short(passed))
        if not at_once and groups.written_revision < 0 and not lists_differ(release, with_lists(status, groups)):
            groups.lists_are_written()  # by an earlier reconciler
        if groups.lists_changed_at is not None:
            left = 0.0 if at_once else lists_due(release, passed, groups.lists_changed_at, now)
            if left > 0:
                wakes.append(now + left)
            else:
                status, lists = with_lists(status, groups), True
                write = write or lists_differ(release, status)
                if not write:
                    groups.lists_are_written()
    due = min((wake for wake in wakes if wake is not None), default=None)
    requeue_after = None if due is None else max(0.0, due - now)
    return Decision(
        with_update_time(status, now) if write else None,
        tuple(before),
        tuple(after),
        requeue_after=requeue_after,
        lists=lists and write,
    )
