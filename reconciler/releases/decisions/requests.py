"""Decides about the requests of persons about a release, in its present state. Pure functions.

A request is in the status of the ChangeWorkload. The status write that adds the answer to `actions` removes the
request. Until that write, each decision carries out the request again. So all effects before that write can be
repeated.
"""

from dataclasses import replace

import msgspec

from altershield.api.change_workload import PauseEnd, Resumption, SourceRef, WorkloadState
from altershield.api.condition_types import ConditionType
from altershield.api.meta import find_condition
from altershield.api.pod_verdicts import PodInfo, Verdict
from altershield.api.workload_requests import Request, Result, Verb
from altershield.releases import duties, rolled_back, state
from altershield.releases.release import version_of
from altershield.releases.texts import went_back
from altershield.workloads.pods import clip
from reconciler.cluster.batch import Batch
from reconciler.cluster.release import Release, went_back_to
from reconciler.releases.decisions import promotion, rollback, suspension
from reconciler.releases.decisions.answers import UNCHANGED, answered
from reconciler.releases.findings import failure, release_checks, verification
from reconciler.releases.findings.ending import failing_pods, health_verdict
from reconciler.releases.pods.group import Group
from reconciler.releases.pods.groups import PodGroups
from reconciler.releases.terms.draft import LISTED_FAILED, Draft, begin_with, with_update_time
from reconciler.releases.terms.effects import (
    AllowRepair,
    Before,
    CreateBatch,
    Decision,
    Overrule,
    Remove,
    Repeat,
    Resume,
)
from reconciler.releases.terms.snapshot import RollbackReason, Snapshot

_DELETED_SECONDS = 1.0  # until the next decision, because the cache then shows that ChangePods were deleted


def answer(snapshot: Snapshot, request: Request, now: float) -> Decision:
    """Carry out the request about the release of the current version, at `now` (Unix seconds)."""
    decided = duties.decided(request.verb, snapshot.release, snapshot.others)
    theirs = duties.not_theirs(request.by, decided)
    if theirs is not None:
        outcome = f"{duties.denial(theirs, theirs.metadata.namespace)}; {UNCHANGED}"
        return answered(begin_with(snapshot, now), request, Result.REFUSED, outcome)
    match request.verb:
        case Verb.APPROVE:
            return _approve(snapshot, request, now)
        case Verb.REPAIR:
            return _repair(snapshot, request, now)
        case Verb.RESUME:
            return _resume(snapshot, request, now)
        case Verb.ROLLBACK:
            return _roll_back(snapshot, request, now)
        case Verb.RETRY:
            return _retry(snapshot, request, now)
        case Verb.PROMOTE | Verb.PROMOTE_FULL:
            return promotion.promote(snapshot, request, now)
        case Verb.HOLD:
            return promotion.hold(snapshot, request, now)
        case unknown:  # the schema refuses it; the CRD may be that of a newer release of AlterShield
            outcome = f'this release of AlterShield does not know the verb "{unknown}"; {UNCHANGED}'
            return answered(begin_with(snapshot, now), request, Result.REFUSED, outcome)


# the verbs


def _approve(snapshot: Snapshot, request: Request, now: float) -> Decision:
    """Overrule the failing verdicts, and end the suspension."""
    release, groups, present = snapshot.release, snapshot.groups, state(snapshot.release)
    own = version_of(release)
    if present is WorkloadState.ROLLBACK and snapshot.targets is None:
        return Decision(read_live=True)  # the rollback may have been carried out already
    missing = _missing_batch(snapshot, now)
    if missing is not None:
        return Decision(before=(missing,), requeue_after=0.0)
    failed = _failing(groups) if groups is not None else []
    failing = _listed(release, failed)
    waiting = _waiting_batches(groups) if groups is not None else []
    checks = release_checks.open_runs(snapshot)
    if not failing and not waiting and not checks and present not in (WorkloadState.SUSPEND, WorkloadState.ROLLBACK):
        hint = "; releases are suspended because of an earlier version: Resume admits them"
        outcome = f"no pod of version {own} has failed; {UNCHANGED}{hint if snapshot.workload.suspended else ''}"
        if present is WorkloadState.FAILED:
            outcome = f"the AlterShield server refused version {own}: Retry reports it again; {UNCHANGED}"
        return answered(begin_with(snapshot, now), request, Result.UNCHANGED, outcome)
    message = clip(f"approved by {request.by or 'a person'}" + (f": {request.reason}" if request.reason else ""))
    before: list[Before] = [
        Overrule(batch, pods, request.by, message, skip=(batch, pods) in failed) for batch, pods in failing
    ]
    before += [Overrule(batch, pods, request.by, message, waiting=True) for batch, pods in waiting]
    before += [Overrule(run.batch, frozenset(), request.by, message) for run in checks]
    if snapshot.workload.suspended:
        before.append(Resume())
    names = _named(release.status.defense_check_fail_pods)
    outcome = f"version {own} is accepted" + (f": the verdict on {names} is `pass` now" if names else "")
    count = sum(len(pods) for _, pods in waiting)
    if count:
        outcome += f"; {count} pods that waited for a decision get the verdict `pass`"
    if checks:
        outcome += f"; the checks {', '.join(run.checks.phase for run in checks)} count as passed"
    outcome += _report_text([batch for batch, _ in failing])
    draft = begin_with(snapshot, now).enter(WorkloadState.RUNNING)
    draft = draft.replace(defense_check_fail_pods=(), down_pods=(), resumption=Resumption(), pause=PauseEnd())
    draft = draft.condition(ConditionType.VERIFIED, None, "InProgress", message)
    if present is WorkloadState.ROLLBACK:
        withdrawn = f"the rollback was withdrawn: {message}"
        draft = draft.replace(rollback_to="", rollback_target=SourceRef(), rollback_requested=False)
        draft = draft.condition(ConditionType.ROLLED_BACK, False, RollbackReason.WITHDRAWN, withdrawn)
        outcome += "; the rollback is withdrawn"
    if snapshot.workload.suspended:
        outcome += "; further releases are admitted"
    return answered(draft, request, Result.DONE, outcome, before)


def _repair(snapshot: Snapshot, request: Request, now: float) -> Decision:
    """Let the next release pass the suspension, once."""
    draft = begin_with(snapshot, now)
    if _label_follows(snapshot):
        # first write the label `suspend`: this write also removes the label of an earlier repair
        due = suspension.suspend(snapshot, WorkloadState.SUSPEND, now)
        return Decision(after=due, requeue_after=0.0)
    if not snapshot.workload.suspended and not any(rolled_back(each) for each in snapshot.others):
        return answered(draft, request, Result.UNCHANGED, f"releases are not suspended; {UNCHANGED}")
    outcome = "the next release passes, once"
    if snapshot.workload.suspended:
        outcome += "; the suspension ends when it succeeds"
    return answered(draft, request, Result.DONE, outcome, [AllowRepair()])


def _resume(snapshot: Snapshot, request: Request, now: float) -> Decision:
    """Admit further releases. The verdict on this one stays.

    The resumption is stored before the label is removed: otherwise a crash in between would lose it.
    """
    draft, label = begin_with(snapshot, now), snapshot.workload.suspended
    outcome = "further releases are admitted until another pod fails; the verdict on this version stays"
    if not label and not _label_follows(snapshot):
        if failure.is_resumed(snapshot):
            return answered(draft, request, Result.DONE, outcome)
        return answered(draft, request, Result.UNCHANGED, f"releases are not suspended; {UNCHANGED}")
    suspended_at = int(label) if label.isdecimal() else 0
    if not label or snapshot.release.status.resumption.since_unix <= suspended_at:
        groups = snapshot.groups
        failed = {each.uid for each in snapshot.release.status.defense_check_fail_pods} - {""}
        if groups is not None:
            failed |= {tracked.pod.metadata.uid for tracked in groups.pods_in(Group.FAILED)}
        draft = draft.replace(resumption=Resumption(int(now), tuple(sorted(failed))))
    if label and draft.status.resumption != snapshot.release.status.resumption:
        return Decision(with_update_time(draft.status, now), requeue_after=0.0)
    return answered(draft, request, Result.DONE, outcome, [Resume()] if label else [])


def _roll_back(snapshot: Snapshot, request: Request, now: float) -> Decision:
    """Release an older version again."""
    release, workload, to = snapshot.release, snapshot.workload, request.to
    present, status = state(release), release.status
    draft = begin_with(snapshot, now)
    if present is WorkloadState.ROLLBACK and rollback.intent(release) is not None:
        target = status.rollback_target
        goal = status.rollback_to or target.name
        if to and to not in (status.rollback_to, target.version, target.name, target.fingerprint):
            return answered(draft, request, Result.REFUSED, f"a rollback to {goal} is in progress; {UNCHANGED}")
        return answered(draft, request, Result.UNCHANGED, f"the rollback to {goal} is in progress already")
    if to and to in (version_of(release), workload.fingerprint, status.source.name):
        return answered(draft, request, Result.UNCHANGED, f"{to} is the current version; {UNCHANGED}")
    back = next((each for each in snapshot.others if rolled_back(each) and went_back_to(each, workload)), None)
    if not to and back is not None:
        # without this, a client that sends its request again after a rollback goes back one version more
        return answered(draft, request, Result.UNCHANGED, went_back(back))
    requested = msgspec.structs.replace(status, rollback_to=to, rollback_target=SourceRef())
    step = rollback.next_step(replace(snapshot, release=msgspec.structs.replace(release, status=requested)), now)
    if step.status is None:
        return step
    known = find_condition(step.status.conditions, ConditionType.ROLLED_BACK)
    outcome = known.message if known is not None else ""
    kept = Draft(step.status, release.metadata.generation, now)
    if step.status.status == WorkloadState.ROLLBACK:
        decision = answered(kept, request, Result.DONE, outcome, announced=False)
    else:  # the state stays, because nobody changed it
        kept = kept.replace(status=status.status, entry_time=status.entry_time, entry_time_unix=status.entry_time_unix)
        decision = answered(kept, request, Result.REFUSED, outcome, announced=False)
    return Decision(decision.status, after=step.after, requeue_after=0.0)


def _retry(snapshot: Snapshot, request: Request, now: float) -> Decision:
    """Verify pods again that failed or that wait because a check has no result. If the AlterShield server refused the
    release, report it again. If the API server refused a rollback, try the rollback again."""
    release, groups, present = snapshot.release, snapshot.groups, state(snapshot.release)
    draft = begin_with(snapshot, now)
    if present is WorkloadState.FAILED:
        draft = draft.enter(WorkloadState.INIT).without(ConditionType.REPORTED)
        return answered(draft, request, Result.DONE, "the release is reported to the AlterShield server again")
    if present is WorkloadState.ROLLBACK:
        if rollback.write_refused(release):
            return answered(draft, request, Result.DONE, "the rollback is tried again now")
        return answered(draft, request, Result.UNCHANGED, f"a rollback is in progress; {UNCHANGED}")
    again = [batch for batch, _ in (*_failing(groups), *_waiting_batches(groups))] if groups is not None else []
    again += [run.batch for run in release_checks.open_runs(snapshot)]
    if again:
        # An AlterShield server repeats its check before a batch. Other ChangePods are deleted, so that all their checks
        # begin anew. Their numbers are not used again: the server knows batches by their names. The next decision
        # waits until the caches show that the ChangePods are deleted, so that no pod keeps an old verdict.
        highest = groups.memberships.highest_batch if groups is not None else 0
        numbers = highest, release.status.retried_batches, *(each.number for each in again)
        draft = draft.replace(retried_batches=max(numbers))
        draft = draft.replace(request=msgspec.structs.replace(request, begun=True))
        status = None if draft.status == begin_with(snapshot, now).status else with_update_time(draft.status, now)
        after = tuple(Repeat(batch) if batch.repeatable else Remove(batch) for batch in again)
        return Decision(status, after=after, requeue_after=_DELETED_SECONDS)
    if present is not WorkloadState.SUSPEND and not release.status.defense_check_fail_pods and not request.begun:
        outcome = f"no pod of version {version_of(release)} has failed or waits; {UNCHANGED}"
        return answered(draft, request, Result.UNCHANGED, outcome)
    names = _named(release.status.defense_check_fail_pods)
    outcome = f"{names or 'the pods'} of version {version_of(release)} are verified again"
    draft = draft.enter(WorkloadState.RUNNING).replace(
        defense_check_fail_pods=(), down_pods=(), resumption=Resumption(), pause=PauseEnd(), retry_time_unix=int(now)
    )
    draft = draft.condition(ConditionType.VERIFIED, None, "InProgress", outcome)
    return answered(draft, request, Result.DONE, outcome)


# helpers


def _missing_batch(snapshot: Snapshot, now: float) -> CreateBatch | None:
    """The ChangePod that has to be created before a verdict can be overruled; None if none is missing.

    Its pods are the failed pods whose ChangePod somebody deleted. During a rollback, they are the overdue pods.
    """
    groups = snapshot.groups
    if groups is None:
        return None
    lost = verification.failed_without_batch(snapshot.release, groups)
    if lost:
        return verification.repeat_batch(snapshot.release, groups, lost)
    if state(snapshot.release) is not WorkloadState.ROLLBACK or snapshot.release.status.rollback_requested:
        return None
    failing = failing_pods(snapshot, now)[: verification.MAX_FAILED]  # the next decision finds the others
    pods = tuple(verification.failed_now(groups, each, health_verdict(snapshot, each, now)) for each in failing)
    return CreateBatch(groups.memberships.highest_batch + 1, pods) if pods else None


def _failing(groups: PodGroups) -> list[tuple[Batch, frozenset[str]]]:
    """The batches with pods that have failed and exist, and the names of these pods."""
    failed = {tracked.pod.metadata.uid for tracked in groups.pods_in(Group.FAILED)}
    found = []
    for batch in groups.memberships.batches():
        names = frozenset(
            member.pod
            for member in batch.members
            if member.verdict not in ("", Verdict.PASS) and (member.uid in failed or not member.uid)
        )
        if names and not batch.metadata.deleting:
            found.append((batch, names))
    return found


def _listed(release: Release, failing: list[tuple[Batch, frozenset[str]]]) -> list[tuple[Batch, frozenset[str]]]:
    """The failed pods that the status of a suspended release lists, because the person saw only these. All failed pods
    if the list is full, because it may have been cut."""
    listed = {each.pod for each in release.status.defense_check_fail_pods}
    if state(release) is not WorkloadState.SUSPEND or len(listed) >= LISTED_FAILED:
        return failing
    return [(batch, names & listed) for batch, names in failing if names & listed]


def _waiting_batches(groups: PodGroups) -> list[tuple[Batch, frozenset[str]]]:
    """The batches that wait for a person, and the names of their pods without a verdict."""
    return [
        (batch, frozenset(member.pod for member in batch.members if not member.verdict))
        for batch in groups.waiting_batches()
    ]


def _report_text(batches: list[Batch]) -> str:
    """The part of the answer about the report of this approval to an AlterShield server."""
    ignored, outcome = 0, ""
    for batch in batches:
        binding = next((rule for rule in batch.rules if not (rule.ignorable and rule.id)), None)
        if binding is None:
            ignored += len(batch.rules)
        else:
            named = clip(binding.name or binding.id, 100)
            outcome = f'; the AlterShield server is not told, because its rule "{named}" may not be ignored'
    return outcome + (f"; the AlterShield server is told to ignore {ignored} failed rules" if ignored else "")


def _label_follows(snapshot: Snapshot) -> bool:
    """Whether the label `suspend` is about to be written."""
    fails = state(snapshot.release) is WorkloadState.SUSPEND or rollback.write_refused(snapshot.release)
    return fails and bool(suspension.suspend(snapshot, WorkloadState.SUSPEND, 0.0))


def _named(pods: tuple[PodInfo, ...]) -> str:
    names = [each.pod for each in pods]
    if not names:
        return ""
    return f"pod {names[0]}" if len(names) == 1 else f"{len(names)} pods"
