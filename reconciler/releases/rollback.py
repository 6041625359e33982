"""How a release is undone.

The intent is stored first (`Rollback`, `rollbackTarget`, condition RolledBack=False). It is checked again before it is
carried out, and withdrawn where it does not hold any more. Then the old template is released again, and the failed
version's record is closed (`Failed`, RolledBack=True). Each step follows from the last, so a crash in between only
delays the next one.
"""

from collections.abc import Iterable, Sequence

from altershield.api.kinds import ConditionType, Giver, SourceRef, WorkloadState
from altershield.api.meta import Condition, find_condition, has_reason, plain_time
from altershield.releases.record import version as version_of
from altershield.workloads.pods import Pod
from altershield.workloads.workload import Workload
from reconciler.releases.effects import Announce, Before, Decision, DeletePod, ReleaseAgain
from reconciler.releases.ending import automatic_target, ending, not_undone
from reconciler.releases.facts import Facts, RollbackReason, Target
from reconciler.releases.kept import Kept
from reconciler.releases.status import Draft, begin, begin_with, stamped

_INTENTS = (RollbackReason.POD_NOT_UP, RollbackReason.REQUESTED, RollbackReason.WRITE_REFUSED)
_ASKED = "it was asked for"
_SHOWN = 10  # versions that a refusal offers


def intend(facts: Facts, target: Target, reason: RollbackReason, why: str, now: float) -> Decision:
    """Store the intent; the next decision carries it out."""
    source = target.source
    message = f"{why}; releasing {_named(source)} of {source.kind} {source.name} again"
    draft = (
        begin_with(facts, now)
        .enter(WorkloadState.ROLLBACK)
        .replace(rollback_to=source.version or source.name, rollback_target=source)
        .condition(ConditionType.ROLLED_BACK, False, reason, message)
        .without(ConditionType.STALLED)
    )
    return Decision(stamped(draft.status, now), after=(Announce("RollbackStarted", message),), again=0.0)


def intent(record: Kept) -> Condition | None:
    """The intent that is stored; None where a person asked for a rollback and nothing was decided yet."""
    known = find_condition(record.status.conditions, ConditionType.ROLLED_BACK)
    stored = known is not None and known.reason in _INTENTS and not known.is_true
    return known if stored and record.status.rollback_target.uid else None


def carry_on(facts: Facts, now: float) -> Decision:
    """The next step of a rollback of the present version."""
    targets = facts.targets
    if targets is None:
        return Decision(look=True)
    known = intent(facts.record)
    if known is None:
        return _requested(facts, targets, now)
    wanted = facts.record.status.rollback_target
    target = next((each for each in targets if each.source.uid == wanted.uid), None)
    if target is None:
        return withdraw(facts, f"{wanted.kind} {wanted.name} is gone", now)
    if target.source.fingerprint != wanted.fingerprint:
        return withdraw(facts, f"the template in {wanted.kind} {wanted.name} was changed", now)
    if not was_requested(facts.record):
        if ending(facts, now) is None:
            return withdraw(facts, "its pods are up by now, or fewer of them are overdue", now)
        refusal = not_undone(facts, sum(each.serving for each in targets))
        if refusal:
            return withdraw(facts, refusal, now)
        best = automatic_target(facts, targets)
        if isinstance(best, str) or best.source.uid != wanted.uid:
            return withdraw(facts, best if isinstance(best, str) else "another version is the one to go back to", now)
    return Decision(after=(ReleaseAgain(wanted),))


def was_requested(record: Kept) -> bool:
    """Whether a person asked for the rollback: while the write is refused, only the message tells."""
    known = find_condition(record.status.conditions, ConditionType.ROLLED_BACK)
    return known is not None and known.message.startswith(_ASKED)


def withdraw(facts: Facts, why: str, now: float) -> Decision:
    """The intent holds no more: back to where the state is derived anew."""
    message = f"the rollback was withdrawn: {why}"
    draft = (
        begin_with(facts, now)
        .enter(_before(facts.record) if was_requested(facts.record) else WorkloadState.RUNNING)
        .replace(rollback_to="", rollback_target=SourceRef())
        .condition(ConditionType.ROLLED_BACK, False, RollbackReason.WITHDRAWN, message)
    )
    return Decision(
        stamped(draft.status, now), after=(Announce("RollbackWithdrawn", message, warning=False),), again=0.0
    )


def refused(record: Kept, cause: str, now: float) -> Decision:
    """The API server refused the write."""
    known = find_condition(record.status.conditions, ConditionType.ROLLED_BACK)
    asked = known.message.partition("; the API server refuses")[0] if known is not None else ""
    message = f"{asked}; the API server refuses to release it: {cause}; it is tried again"
    if known is not None and known.message == message:
        return Decision()
    draft = begin(record, now).condition(ConditionType.ROLLED_BACK, False, RollbackReason.WRITE_REFUSED, message)
    return Decision(stamped(draft.status, now), after=(Announce("RollbackRefused", message),))


def write_refused(record: Kept) -> bool:
    """Whether the last try to carry it out was refused."""
    return has_reason(record.status.conditions, ConditionType.ROLLED_BACK, RollbackReason.WRITE_REFUSED)


def close(record: Kept, workload: Workload, stuck: Sequence[Before], now: float) -> Decision:
    """Another version is released: by us, or before we could. `stuck`: pods that have to be deleted first."""
    if stuck:
        return Decision(before=tuple(stuck), again=1.0)
    target, known = record.status.rollback_target, intent(record)
    if known is None:
        return _not_the_present(record, workload, now)
    went_back = workload.fingerprint == target.fingerprint or workload.version == (target.version or target.fingerprint)
    draft = begin(record, now).enter(WorkloadState.FAILED).without(ConditionType.STALLED)
    if not went_back:
        present = workload.version or "none"
        message = f"version {present} was released before version {version_of(record)} could be rolled back"
        draft = draft.condition(ConditionType.ROLLED_BACK, False, RollbackReason.SUPERSEDED, message)
        return Decision(stamped(draft.status, now))
    why = known.message.partition("; releasing ")[0]
    message = f"{why}; {_named(target)} was released again at {plain_time(now)}"
    reason = RollbackReason.REQUESTED if was_requested(record) else RollbackReason.POD_NOT_UP
    draft = draft.replace(rollback_to=workload.version).condition(ConditionType.ROLLED_BACK, True, reason, message)
    if reason is RollbackReason.POD_NOT_UP:
        draft = draft.condition(ConditionType.VERIFIED, False, Giver.HEALTH, why)
    announcement = Announce("RolledBack", f"version {version_of(record)} was rolled back: {message}")
    return Decision(stamped(draft.status, now), after=(announcement,))


def _not_the_present(record: Kept, workload: Workload, now: float) -> Decision:
    """A person asked to roll back a version that is not the present one: nothing was undone, and it is what it was."""
    was = WorkloadState.SUCCESS if _succeeded(record) else WorkloadState.FAILED
    own, present = version_of(record), workload.version or "none"
    message = f"a rollback of version {own} was asked for, but it is not the present one, which is {present}"
    draft = begin(record, now).enter(was).replace(rollback_to="", rollback_target=SourceRef())
    if was is WorkloadState.FAILED:
        draft = draft.condition(ConditionType.ROLLED_BACK, False, RollbackReason.SUPERSEDED, message)
    return Decision(stamped(draft.status, now), after=(Announce("RollbackImpossible", message),))


def _requested(facts: Facts, targets: Sequence[Target], now: float) -> Decision:
    """A person asks for a rollback: to what they name, else to the last version that passed."""
    wanted = facts.record.status.rollback_to
    if wanted:
        found = [each for each in targets if wanted in (each.source.version, each.source.name, each.source.fingerprint)]
        if found:
            return intend(facts, found[0], RollbackReason.REQUESTED, _ASKED, now)
        return _give_up(facts, targets, f"there is no version {wanted} to go back to", now)
    if not facts.previous.uid:
        return _give_up(facts, targets, "no version is known to have passed before this one", now)
    best = automatic_target(facts, targets)
    if isinstance(best, str):
        return _give_up(facts, targets, best, now)
    return intend(facts, best, RollbackReason.REQUESTED, _ASKED, now)


def _give_up(facts: Facts, targets: Sequence[Target], why: str, now: float) -> Decision:
    names = [
        f"{each.source.name} (version {each.source.version})" if each.source.version else each.source.name
        for each in targets[:_SHOWN]
    ]
    offer = f"set `rollbackTo` to one of: {', '.join(names)}" if names else "there is nothing older to go back to"
    message = f"a rollback was asked for, but {why}; {offer}"
    draft: Draft = (
        begin_with(facts, now)
        .enter(_before(facts.record))
        .replace(rollback_to="", rollback_target=SourceRef())
        .condition(ConditionType.ROLLED_BACK, False, _kept_reason(facts.record), message)
    )
    return Decision(stamped(draft.status, now), after=(Announce("RollbackImpossible", message),), again=0.0)


def _before(record: Kept) -> WorkloadState:
    """Where a release goes on of which a rollback was asked for in vain: a Success stays one."""
    return WorkloadState.SUCCESS if _succeeded(record) else WorkloadState.RUNNING


def _succeeded(record: Kept) -> bool:
    verified = find_condition(record.status.conditions, ConditionType.VERIFIED)
    return verified is not None and verified.is_true


def _kept_reason(record: Kept) -> RollbackReason:
    """That it was rolled back once before has to stay known."""
    again = has_reason(record.status.conditions, ConditionType.ROLLED_BACK, RollbackReason.RELEASED_AGAIN)
    return RollbackReason.RELEASED_AGAIN if again else RollbackReason.NO_TARGET


def _named(source: SourceRef) -> str:
    return f"version {source.version}" if source.version else "the version from before AlterShield"


def stuck_pods(workload: Workload, pods: Iterable[Pod]) -> tuple[Before, ...]:
    """The failed version's pods that its controller would wait for for ever."""
    if not workload.waits_for_ready:
        return ()
    return tuple(DeletePod(pod) for pod in pods if pod.exists and not pod.ready)
