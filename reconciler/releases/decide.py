"""What to do about the present release of a workload: one pure decision, whose parts are the other files here."""

from collections.abc import Sequence

from altershield.api.kinds import ConditionType, Giver, PodInfo, WorkloadState
from altershield.api.meta import find_condition, has_reason
from altershield.releases import rolled_back, state
from altershield.releases.record import version
from altershield.workloads import BY_KIND, is_of
from reconciler.releases import rollback, suspension, verification
from reconciler.releases.book import Book, Group
from reconciler.releases.effects import After, Announce, Before, Decision, DeletePod, PutBack, Remove, SetThreshold
from reconciler.releases.ending import automatic_target, counts, ending, not_undone, verdict
from reconciler.releases.facts import Facts, RollbackReason
from reconciler.releases.kept import Kept
from reconciler.releases.status import (
    Draft,
    begin_with,
    down_pods,
    failed_pods,
    lists_due,
    stamped,
    urgent,
    with_lists,
)
from reconciler.releases.waiting import with_settling, with_waits


def decide(facts: Facts, now: float) -> Decision:
    """The decision. Asked again with the same facts, it comes out the same."""
    match state(facts.record):
        case WorkloadState.FAILED:
            return Decision()  # history
        case WorkloadState.ROLLBACK:
            step = rollback.carry_on(facts, now)
            return _meanwhile(facts, step, now) if rollback.write_refused(facts.record) else step
        case _:
            return _restore(facts) or _end(facts, now) or _go_on(facts, (), now)


def _restore(facts: Facts) -> Decision | None:
    """Make the ChangePod of failed pods again where somebody deleted it: the verdict lasts as long as the pod."""
    book = facts.book
    if book is None:
        return None
    lost = verification.without_batch(facts.record, book)
    return Decision(before=(verification.again(facts.record, book, lost),), again=0.0) if lost else None


def _end(facts: Facts, now: float) -> Decision | None:
    """Undo or suspend a release that does not come up."""
    found = ending(facts, now)
    if found is None or facts.book is None:
        return None
    targets = facts.targets
    if targets is None:
        return Decision(look=True)
    refusal = not_undone(facts, sum(each.serving for each in targets))
    if not refusal:
        target = automatic_target(facts, targets)
        if not isinstance(target, str):
            return rollback.intend(facts, target, RollbackReason.POD_NOT_UP, found.why, now)
        refusal = target
    failing = [verification.failed_now(facts.book, seen, verdict(seen, now)) for seen in found.pods]
    return _go_on(facts, failing, now, f"{found.why}; not rolled back: {refusal}")


def _meanwhile(facts: Facts, step: Decision, now: float) -> Decision:
    """While the API server refuses the write of a rollback, pods are verified and further releases denied."""
    book = facts.book
    if step.look or step.status is not None or book is None:
        return step
    ready = verification.batches(facts, book, now)
    before: tuple[Before, ...] = (
        *verification.marks(facts, book, now),
        *verification.numbered(book, ready.full),
    )
    # first the label: a write that is refused ends the turn
    after: tuple[After, ...] = (*suspension.suspend(facts, WorkloadState.SUSPEND, now), *step.after)
    return Decision(None, before, after, again=ready.left)


def _go_on(facts: Facts, failing: Sequence[PodInfo], now: float, not_undone: str = "") -> Decision:
    """Verify what came up, and bring state, conditions and labels to what follows. `failing`: pods to be failed now,
    because they are overdue, and why the release is `not_undone`."""
    record, book = facts.record, facts.book
    target = WorkloadState.SUSPEND if failing else verification.target_state(facts)
    target, taken, wake = _batches(facts, target, now)
    message = verification.summary(facts, failing)
    draft = begin_with(facts, now)
    entered = state(record) is not target
    draft, waits = with_waits(draft, facts, target)
    wakes = [wake, waits, book.next_due() if book is not None else None]
    if target is WorkloadState.SUCCESS:
        draft, settles = with_settling(draft, facts, entered)
        wakes.append(settles)
        if book is not None:
            noted = verification.extent if entered else verification.extent_since
            reached, replicas = noted(facts, book)
            draft = draft.replace(reached=reached, replicas=replicas)
    else:
        draft = draft.without(ConditionType.SETTLED).replace(settle_time_unix=0)
    draft = _verified(draft.enter(target), facts, target, message, failing)
    if not_undone and not _released_again(facts):
        draft = draft.condition(ConditionType.ROLLED_BACK, False, RollbackReason.NOT_UNDONE, not_undone)
    elif target is WorkloadState.RUNNING:
        draft = _without_refusal(draft)
    before: list[Before] = []
    after: list[After] = []
    if book is not None:
        before += verification.marks(facts, book, now)
        before += verification.numbered(book, [*taken, *([tuple(failing)] if failing else [])])
        before += _put_back(facts, book)
        before += _stuck(facts, book)
        after += [Remove(each) for each in verification.surplus(book)]
    size = facts.settings.batch(facts.workload.replicas)
    if record.spec.count_threshold != size:
        before.append(SetThreshold(size))
    before += suspension.resume(facts, target)
    after += suspension.suspend(facts, target, now) or suspension.inherited(facts, target)
    after += suspension.announce(facts, target, not_undone or message)
    after += _stalled(facts, draft)
    if target is WorkloadState.SUCCESS:
        after += [Remove(other) for other in facts.others if _obsolete(other, record)]
    return _written(draft, facts, before, after, wakes)


def _batches(
    facts: Facts, target: WorkloadState, now: float
) -> tuple[WorkloadState, Sequence[tuple[PodInfo, ...]], float | None]:
    """The state with the time-out of an incomplete batch in it, the batches to take now, and when the next is due
    (Unix seconds)."""
    if facts.book is None:
        return target, (), None
    ready = verification.batches(facts, facts.book, now)
    present = state(facts.record)
    if not ready.overdue:
        return target, ready.full, None if ready.left is None else now + ready.left
    if target is WorkloadState.RUNNING and present is WorkloadState.RUNNING:
        return WorkloadState.TIME_OUT_PRE_THRESHOLD, ready.full, now
    if target is not WorkloadState.RUNNING or present is WorkloadState.TIME_OUT_PRE_THRESHOLD:
        return target, (*ready.full, ready.overdue), None
    return target, ready.full, now  # it has only now begun to run: the next decision calls the time-out


def _verified(draft: Draft, facts: Facts, target: WorkloadState, message: str, failing: Sequence[PodInfo]) -> Draft:
    book = facts.book
    failed = failed_pods(book) if book is not None else ()
    draft = draft.replace(defense_check_fail_pods=tuple(sorted((*failed, *failing), key=lambda info: info.pod)))
    if book is not None:
        draft = draft.replace(down_pods=down_pods(book) if counts(facts) else ())
    match target:
        case WorkloadState.SUSPEND:
            if book is not None and not failing and not book.count(Group.FAILED):
                return draft  # its pods are gone: why it is suspended stays
            by = Giver.HEALTH if failing and not failed else verification.giver(book) if book is not None else ""
            return draft.condition(ConditionType.VERIFIED, False, by or Giver.PERSON, message)
        case WorkloadState.SUCCESS:
            known = find_condition(draft.status.conditions, ConditionType.ROLLED_BACK)
            if known is not None and not known.is_true and known.reason != RollbackReason.NO_TARGET:
                draft = draft.without(ConditionType.ROLLED_BACK)
            return draft.condition(ConditionType.VERIFIED, True, "PodsPassed", message)
        case _:
            return draft.condition(ConditionType.VERIFIED, None, "InProgress", message)


def _without_refusal(draft: Draft) -> Draft:
    """A person corrected the verdict: why the release was not undone is of no interest any more."""
    refused = has_reason(draft.status.conditions, ConditionType.ROLLED_BACK, RollbackReason.NOT_UNDONE)
    return draft.without(ConditionType.ROLLED_BACK) if refused else draft


def _released_again(facts: Facts) -> bool:
    """Whether it is known to be released again after a rollback, which has to stay known."""
    return has_reason(facts.record.status.conditions, ConditionType.ROLLED_BACK, RollbackReason.RELEASED_AGAIN)


def _put_back(facts: Facts, book: Book) -> list[Before]:
    """Pods of this version whose label says otherwise. Where the selector looks at the label, such a pod would be no
    longer the workload's, and another one would be made in its place."""
    if facts.workload.selects_version:
        return []
    return [PutBack(pod) for pod in book.mislabelled()]


def _stuck(facts: Facts, book: Book) -> list[Before]:
    """Pods of versions that were rolled back, for which the workload's controller would wait for ever. One that was
    ready when its version was rolled back may not be any more."""
    if not facts.workload.waits_for_ready:
        return []
    adapter = BY_KIND[facts.workload.kind]
    gone = [each.status.source for each in facts.others if rolled_back(each) and each.status.source.uid]
    return [
        DeletePod(pod)
        for pod in book.older
        if not pod.ready and any(is_of(adapter, pod, source.name, source.uid) for source in gone)
    ]


def _stalled(facts: Facts, draft: Draft) -> tuple[Announce, ...]:
    known = find_condition(facts.record.status.conditions, ConditionType.STALLED)
    wanted = find_condition(draft.status.conditions, ConditionType.STALLED)
    if wanted is None or not wanted.is_true:
        return ()
    if known is not None and known.is_true and known.reason == wanted.reason:
        return ()
    own = version(facts.record)
    return (Announce("ReleaseStalled", f"version {own} does not go on: {wanted.reason}: {wanted.message}"),)


def _obsolete(other: Kept, current: Kept) -> bool:
    """Whether the success of `current` makes the record of another version superfluous."""
    if other.spec.workload_ref.uid == current.spec.workload_ref.uid and (
        other.spec.workload_generation > current.spec.workload_generation
    ):
        return False  # the caches disagree: this one is newer than the workload that we see
    # what was rolled back to this version must stay known
    target = other.status.rollback_target
    return not (
        state(other) is WorkloadState.FAILED
        and other.status.rollback_to
        and (other.status.rollback_to == version(current) or target.uid == current.status.source.uid)
    )


def _written(
    draft: Draft,
    facts: Facts,
    before: list[Before],
    after: list[After],
    wakes: list[float | None],
) -> Decision:
    """The decision, with the status only if it is to be written now."""
    now, record, book = draft.now, facts.record, facts.book
    status, lists = draft.status, False
    write = urgent(record.status, status)
    # a book that was made anew does not know yet that pods which passed long ago are up
    unknown = book is not None and state(record) is WorkloadState.SUCCESS and book.count(Group.OBSERVED) > 0
    if book is not None and book.revision != book.written and not unknown:
        left = 0.0 if status.status != record.status.status else lists_due(record, book.count(Group.PASSED), now)
        if left > 0:
            wakes.append(now + left)
        else:
            status, lists = with_lists(status, book), True
            write = write or book.changes(record, status)
    due = min((wake for wake in wakes if wake is not None), default=None)
    again = None if due is None else max(0.0, due - now)
    return Decision(
        stamped(status, now) if write else None, tuple(before), tuple(after), again=again, lists=lists and write
    )
