"""Decides the steps of a rollback. Pure functions.

1. The intent is stored: state `Rollback`, `rollbackTarget`, condition RolledBack=False.

2. The intent is checked again. It is withdrawn if its reasons do not hold any more.

3. The old template is released again.

4. The field managers that owned the old template own it again.

5. The ChangeWorkload of the failed version is closed: state `Failed`, condition RolledBack=True.

Each step follows from the step before. So a crash between two steps only delays the next step.
"""

from collections.abc import Sequence

import msgspec

from altershield.api import names
from altershield.api.change_workload import PauseEnd, SourceRef, WorkloadState
from altershield.api.condition_types import ConditionType, Giver
from altershield.api.meta import Condition, find_condition, has_reason
from altershield.api.workload_requests import Result, Verb
from altershield.releases.duties import denial, not_theirs
from altershield.releases.release import rolled_back, state, version_of
from altershield.releases.texts import was_rolled_back
from altershield.workloads.workload import Workload
from kube_base.times import rfc3339
from reconciler.cluster.release import Release, went_back_to
from reconciler.releases.decisions import steps
from reconciler.releases.findings import failure, verification
from reconciler.releases.findings.ending import automatic_target, ending, no_rollback_reason
from reconciler.releases.terms.draft import Draft, begin, begin_with, failed_pods, with_update_time
from reconciler.releases.terms.effects import Announce, Decision, ReleaseAgain, RestoreManagers
from reconciler.releases.terms.snapshot import RollbackReason, Snapshot, Target

_INTENTS = (
    RollbackReason.POD_NOT_UP,
    RollbackReason.VERIFICATION_FAILED,
    RollbackReason.REQUESTED,
    RollbackReason.WRITE_REFUSED,
)
_REQUESTED = "requested by a person"
_DIGITS = 8  # the fewest digits of an abbreviated version
_MAX_TARGETS_LISTED = 10  # targets that the message of a refusal lists


def store_intent(snapshot: Snapshot, target: Target, reason: RollbackReason, why: str, now: float) -> Decision:
    """Store the intent. The next decision carries it out."""
    source = target.source
    message = f"{why}; releasing {_version_text(source)} of {source.kind} {source.name} again"
    draft = (
        begin_with(snapshot, now)
        .enter(WorkloadState.ROLLBACK)
        .replace(
            rollback_to=source.version or source.name,
            rollback_target=source,
            rollback_requested=reason is RollbackReason.REQUESTED,
            rollback_reason=reason.value,
            pause=msgspec.structs.replace(snapshot.release.status.pause, ended=True)
            if snapshot.release.status.pause.end_time_unix
            else PauseEnd(),
        )
        .condition(ConditionType.ROLLED_BACK, False, reason, message)
        .without(ConditionType.STALLED)
    )
    if reason is RollbackReason.VERIFICATION_FAILED and snapshot.groups is not None:
        if not failure.exceeded_deadline(snapshot):
            draft = draft.condition(ConditionType.VERIFIED, False, verification.giver(snapshot.groups), why)
        failed = (*failed_pods(snapshot.groups), *verification.unreplaced(snapshot))
        draft = draft.replace(defense_check_fail_pods=failed)
    return Decision(
        with_update_time(draft.status, now), after=(Announce("RollbackStarted", message),), requeue_after=0.0
    )


def intent(release: Release) -> Condition | None:
    """The stored intent; None if a person requested a rollback and its target is not decided yet."""
    known = find_condition(release.status.conditions, ConditionType.ROLLED_BACK)
    stored = known is not None and known.reason in _INTENTS and not known.is_true
    return known if stored and release.status.rollback_target.uid else None


def reason_of(release: Release) -> RollbackReason:
    """The reason of the stored intent. The condition has another reason if the API server refused the write."""
    if release.status.rollback_requested:
        return RollbackReason.REQUESTED
    failed = release.status.rollback_reason == RollbackReason.VERIFICATION_FAILED
    return RollbackReason.VERIFICATION_FAILED if failed else RollbackReason.POD_NOT_UP


def next_step(snapshot: Snapshot, now: float) -> Decision:
    """The next step of a rollback of the current version."""
    targets = snapshot.targets
    if targets is None:
        return Decision(read_live=True)
    known = intent(snapshot.release)
    if known is None:
        return _requested(snapshot, targets, now)
    wanted = snapshot.release.status.rollback_target
    target = next((each for each in targets if each.source.uid == wanted.uid), None)
    if target is None:  # another object may hold the template now: the history, or a ReplicaSet that was created again
        target = next((each for each in targets if each.source.fingerprint == wanted.fingerprint), None)
    if target is None:
        return withdraw(snapshot, f"{wanted.kind} {wanted.name} does not exist any more", now)
    if target.source.fingerprint != wanted.fingerprint:
        return withdraw(snapshot, f"the pod template in {wanted.kind} {wanted.name} has been changed", now)
    if not snapshot.release.status.rollback_requested:
        if reason_of(snapshot.release) is RollbackReason.VERIFICATION_FAILED:
            if not failure.has_failed(snapshot):
                why = "none of its pods fails verification any more"
                return withdraw(snapshot, why, now, tried=_failed_pods_exist(snapshot))
            refusal = failure.no_rollback_reason(snapshot)
        elif ending(snapshot, now) is None:
            refusal = "enough of its pods have come up"
        else:
            refusal = no_rollback_reason(snapshot, targets)
        if refusal:
            return withdraw(snapshot, refusal, now)
        best = automatic_target(snapshot, targets)
        if isinstance(best, str) or best.source.uid != target.source.uid:
            return withdraw(
                snapshot, best if isinstance(best, str) else "the version to go back to is another one now", now
            )
    version = wanted.version or target.source.version
    again = ReleaseAgain(msgspec.structs.replace(target.source, version=version), _requester(snapshot.release))
    return Decision(after=(again,))


def _requester(release: Release) -> str:
    """The user whose request began the rollback; empty if it is automatic, or if the user wrote the state directly."""
    status = release.status
    began = rfc3339(status.entry_time_unix)
    for each in reversed(status.actions if status.rollback_requested else ()):
        if (each.verb, each.result, each.time) == (Verb.ROLLBACK, Result.DONE, began):
            return each.by
    return ""


def _failed_pods_exist(snapshot: Snapshot) -> bool:
    """Whether a pod because of which the rollback began still exists. Then somebody corrected its verdict. Otherwise
    the pods were deleted or evicted, which proves nothing about the version."""
    groups = snapshot.groups
    return groups is None or any(groups.has_pod(each.uid) for each in snapshot.release.status.defense_check_fail_pods)


def withdraw(snapshot: Snapshot, why: str, now: float, *, tried: bool = True) -> Decision:
    """Withdraw the intent. The next decision derives the state again. `tried`: whether a rollback for a failed
    verification counts as tried. If not, another pod that fails begins a new rollback."""
    message = f"the rollback was withdrawn: {why}"
    # a release that had succeeded goes on counting the restarts since then
    judged_anew = reason_of(snapshot.release) is RollbackReason.VERIFICATION_FAILED
    draft = (
        _without_intent(begin_with(snapshot, now))
        .enter(WorkloadState.RUNNING if judged_anew else _state_before(snapshot.release))
        .condition(ConditionType.ROLLED_BACK, False, RollbackReason.WITHDRAWN, message)
    )
    if not tried:
        draft = draft.replace(rollback_reason="", pause=PauseEnd())
    return Decision(
        with_update_time(draft.status, now),
        after=(Announce("RollbackWithdrawn", message, warning=False),),
        requeue_after=0.0,
    )


def refused(release: Release, cause: str, now: float) -> Decision:
    """Report that the API server refused the write."""
    known = find_condition(release.status.conditions, ConditionType.ROLLED_BACK)
    stored = known.message.partition("; the API server refuses")[0] if known is not None else ""
    message = f"{stored}; the API server refuses to change the workload: {cause}; AlterShield retries"
    if known is not None and known.message == message:
        return Decision()
    draft = begin(release, now).condition(ConditionType.ROLLED_BACK, False, RollbackReason.WRITE_REFUSED, message)
    return Decision(with_update_time(draft.status, now), after=(Announce("RollbackRefused", message),))


def write_refused(release: Release) -> bool:
    """Whether the API server refused the last attempt."""
    return has_reason(release.status.conditions, ConditionType.ROLLED_BACK, RollbackReason.WRITE_REFUSED)


def close(release: Release, workload: Workload, now: float, restored_paths: tuple[str, ...] = ()) -> Decision:
    """End a rollback after another version was released, by the reconciler or by somebody else.

    `restored_paths`: the fields of the template that the rollback brought back.
    """
    target, known = release.status.rollback_target, intent(release)
    if known is None:
        return _not_current(release, workload, now)
    back = went_back_to(release, workload)
    draft = begin(release, now).enter(WorkloadState.FAILED).without(ConditionType.STALLED)
    draft = draft.replace(rollout=steps.aborted(release, now)).without(ConditionType.PROGRESSING)
    if not back:
        present = workload.version or "none"
        message = f"version {present} was released before version {version_of(release)} could be rolled back"
        draft = draft.condition(ConditionType.ROLLED_BACK, False, RollbackReason.SUPERSEDED, message)
        return Decision(with_update_time(draft.status, now))
    why = known.message.partition("; releasing ")[0]
    message = f"{why}; {_version_text(target)} was released again at {rfc3339(now)}"
    reason = reason_of(release)
    draft = draft.replace(rollback_to=workload.version, restored_paths=restored_paths)
    draft = draft.condition(ConditionType.ROLLED_BACK, True, reason, message)
    if reason is RollbackReason.POD_NOT_UP:
        draft = draft.condition(ConditionType.VERIFIED, False, Giver.HEALTH, why)
    announcement = Announce("RolledBack", f"{was_rolled_back(release)}: {message}")
    return Decision(with_update_time(draft.status, now), before=(RestoreManagers(target),), after=(announcement,))


def _not_current(release: Release, workload: Workload, now: float) -> Decision:
    """A person requested a rollback of a version that is not the current one. Nothing is rolled back, and the earlier
    state is restored."""
    was = WorkloadState.SUCCESS if _succeeded(release) else WorkloadState.FAILED
    own, present = version_of(release), workload.version or "none"
    message = f"a rollback of version {own} was requested, but the current version is {present}; nothing was changed"
    draft = _without_intent(begin(release, now)).enter(was)
    if was is WorkloadState.FAILED:
        draft = draft.condition(ConditionType.ROLLED_BACK, False, RollbackReason.SUPERSEDED, message)
    return Decision(with_update_time(draft.status, now), after=(Announce("RollbackImpossible", message),))


def _requested(snapshot: Snapshot, targets: Sequence[Target], now: float) -> Decision:
    """Carry out a person's request: go back to the version in `rollbackTo`, or, if it is empty, to the last version
    that passed."""
    wanted = snapshot.release.status.rollback_to
    if wanted:
        named = [each for each in targets if wanted in _names(each.source)]
        found = named or _numbered(targets, wanted) or _abbreviated(targets, wanted)
        refusal = _not_theirs(snapshot, found[0]) if found else ""
        if refusal:
            return _refuse_request(snapshot, targets, refusal, now)
        if found:
            return store_intent(snapshot, found[0], RollbackReason.REQUESTED, _REQUESTED, now)
        return _refuse_request(snapshot, targets, f"the workload has no version {wanted}", now)
    if not snapshot.previous.uid:
        return _refuse_request(snapshot, targets, "no version has passed verification before this one", now)
    best = automatic_target(snapshot, targets)
    if isinstance(best, str):
        return _refuse_request(snapshot, targets, best, now)
    return store_intent(snapshot, best, RollbackReason.REQUESTED, _REQUESTED, now)


def _not_theirs(snapshot: Snapshot, target: Target) -> str:
    """With separation of duties: why the person who requests the rollback may not release this target again, because it
    failed; empty: the person may. A person who writes the state `Rollback` directly has no name."""
    release, request = target.release, snapshot.release.status.request
    if release is None or not (rolled_back(release) or state(release) is WorkloadState.SUSPEND):
        return ""
    theirs = not_theirs(request.by if request is not None else "", (release,))
    return denial(theirs, theirs.metadata.namespace) if theirs is not None else ""


def _numbered(targets: Sequence[Target], wanted: str) -> list[Target]:
    """The target with the release of this number in the history. Tables show these numbers."""
    return [each for each in targets if wanted.isdecimal() and int(wanted) in each.numbers and int(wanted)]


def _abbreviated(targets: Sequence[Target], wanted: str) -> list[Target]:
    """The target whose version begins with these digits, if exactly one target has such a version. Tables show twelve
    digits."""
    if len(wanted) < _DIGITS:
        return []
    found = [each for each in targets if any(name.startswith(wanted) for name in _versions(each.source))]
    return found if len(found) == 1 else []


def _versions(source: SourceRef) -> tuple[str, ...]:
    """The versions by which `rollbackTo` may name this object. The name of an entry of the history ends with its
    version."""
    return source.version, source.fingerprint, names.version_in(source.name)


def _names(source: SourceRef) -> tuple[str, ...]:
    """The values of `rollbackTo` that name this object."""
    return source.name, *_versions(source)


def _refuse_request(snapshot: Snapshot, targets: Sequence[Target], why: str, now: float) -> Decision:
    """Refuse a person's request, and list the possible targets."""
    known = [
        f"{each.source.name} (version {each.source.version})" if each.source.version else each.source.name
        for each in targets[:_MAX_TARGETS_LISTED]
    ]
    offer = f"name one of: {', '.join(known)}" if known else "the workload has no older version"
    message = f"a rollback was requested, but {why}; {offer}"
    draft: Draft = (
        _without_intent(begin_with(snapshot, now))
        .enter(_state_before(snapshot.release))
        .condition(ConditionType.ROLLED_BACK, False, _kept_reason(snapshot.release), message)
    )
    return Decision(
        with_update_time(draft.status, now), after=(Announce("RollbackImpossible", message),), requeue_after=0.0
    )


def _without_intent(draft: Draft) -> Draft:
    return draft.replace(rollback_to="", rollback_target=SourceRef(), rollback_requested=False)


def _state_before(release: Release) -> WorkloadState:
    """The state to which a release returns after a refused request: Success if it had succeeded, else Running."""
    return WorkloadState.SUCCESS if _succeeded(release) else WorkloadState.RUNNING


def _succeeded(release: Release) -> bool:
    verified = find_condition(release.status.conditions, ConditionType.VERIFIED)
    return verified is not None and verified.is_true


def _kept_reason(release: Release) -> RollbackReason:
    """The reason of the condition after a refused request. The mark that the version was released again after a
    rollback has to stay."""
    again = has_reason(release.status.conditions, ConditionType.ROLLED_BACK, RollbackReason.RELEASED_AGAIN)
    return RollbackReason.RELEASED_AGAIN if again else RollbackReason.NO_TARGET


def _version_text(source: SourceRef) -> str:
    return f"version {source.version}" if source.version else "the version from before AlterShield was installed"
