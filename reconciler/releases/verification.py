"""Which pods are verified in which batches, and what state the release is in. Derived each time anew from the pods
that exist and from what is said of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import msgspec

from altershield.api.kinds import ConditionType, Giver, PodInfo, Verdict, WorkloadState
from altershield.api.meta import find_condition
from altershield.releases import state
from altershield.workloads.pods import Pod
from reconciler.batches.batch import Batch
from reconciler.releases.book import Book, Group
from reconciler.releases.effects import CreateBatch, Mark
from reconciler.releases.facts import Facts
from reconciler.releases.health import CLOCK_SKEW, Seen
from reconciler.releases.kept import Kept
from reconciler.releases.waiting import reaches_nothing

KEPT_BATCHES = 20
"""ChangePods kept per version after all of their pods are gone."""

_MARKED_BEFORE = 2  # seconds by which a mark may seem older than its pod: labels and times are whole seconds
_NAMED = 3  # failed pods that a message names


@dataclass(frozen=True, slots=True)
class Batches:
    """What is to be verified now, and in how many seconds the next batch is due."""

    full: Sequence[tuple[PodInfo, ...]]
    overdue: tuple[PodInfo, ...] = ()
    """An incomplete one that has waited long enough."""
    left: float | None = None


def target_state(facts: Facts) -> WorkloadState:
    """The state that follows from the pods."""
    present, book = state(facts.record), facts.book
    if book is None:
        return present if present in (WorkloadState.SUSPEND, WorkloadState.SUCCESS) else WorkloadState.RUNNING
    if book.count(Group.FAILED):
        return WorkloadState.SUSPEND
    if present is WorkloadState.SUSPEND and not (len(book) and facts.workload.replicas):
        return WorkloadState.SUSPEND  # nothing is proved, also by pods that are about to go: the first pods decide
    if present is WorkloadState.SUCCESS and not _goes_on(facts, book):
        return WorkloadState.SUCCESS  # pods that come later are verified without taking it back
    return WorkloadState.SUCCESS if complete(facts, book) else WorkloadState.RUNNING


def complete(facts: Facts, book: Book) -> bool:
    """Whether every pod that the release is to reach is up and passed at this moment."""
    existing, workload = len(book), facts.workload
    return (
        existing > 0
        and workload.replicas > 0
        and existing >= book.wanted
        and book.count(Group.PASSED) == existing
        and workload.up_to_date
        and not reaches_nothing(facts)
    )


def _goes_on(facts: Facts, book: Book) -> bool:
    """Whether the strategy lets the release reach further than when it succeeded: a partition was lowered, or one more
    pod deleted under OnDelete. Pods that come because the workload was scaled up are no part of that."""
    known, (reached, replicas) = facts.record.status, extent(facts, book)
    further = reached - known.reached > max(0, replicas - known.replicas)
    return further and not complete(facts, book)


def extent(facts: Facts, book: Book) -> tuple[int, int]:
    """Pods that the strategy lets the release reach, of how many."""
    workload = facts.workload
    return len(book) if workload.reach is None else workload.reach, workload.replicas


def extent_since(facts: Facts, book: Book) -> tuple[int, int]:
    """The extent that a Success is to be compared with from now on. It is noted anew where the workload is scaled, and
    its strategy holds pods back; under OnDelete only where it is scaled down, since pods come later than replicas."""
    known, (reached, replicas) = facts.record.status, extent(facts, book)
    if facts.workload.reach is None:
        return known.reached, min(known.replicas, replicas)
    scaled = replicas != known.replicas and reached != replicas
    return (reached, replicas) if scaled else (known.reached, known.replicas)


def batches(facts: Facts, book: Book, now: float) -> Batches:
    """The pods that wait, in full batches; the one that came up first leads."""
    waiting = book.count(Group.PREPARING)
    if not waiting:
        return Batches(())
    size = facts.settings.batch(facts.workload.replicas)
    full = waiting // size * size
    seen = iter(list(book.seen(Group.PREPARING)))
    found = [tuple(book.info(each) for each in islice(seen, size)) for _ in range(full // size)]
    rest = list(seen)
    if not rest:
        return Batches(found)
    left = book.up_at(rest[0]) + facts.record.spec.wait_time_threshold - now
    if left > 0:
        return Batches(found, left=left)
    return Batches(found, tuple(book.info(each) for each in rest))


def numbered(book: Book, found: Sequence[tuple[PodInfo, ...]]) -> tuple[CreateBatch, ...]:
    return tuple(CreateBatch(book.highest + offset, pods) for offset, pods in enumerate(found, start=1))


def again(record: Kept, book: Book, pods: tuple[PodInfo, ...]) -> CreateBatch:
    """The batch of failed pods once more, with the verdict of whoever failed the release."""
    known = find_condition(record.status.conditions, ConditionType.VERIFIED)
    by = known.reason if known is not None and known.reason in (Giver.PERSON, Giver.SERVER) else ""
    return CreateBatch(book.highest + 1, pods, by)


def without_batch(record: Kept, book: Book) -> tuple[PodInfo, ...]:
    """The pods that failed and exist, of which no ChangePod says anything."""
    return tuple(info for info in record.status.defense_check_fail_pods if info.verdict and book.is_unjudged(info.uid))


def marks(facts: Facts, book: Book, now: float) -> tuple[Mark, ...]:
    """Pods that came up and do not bear the mark of it."""
    began = facts.record.spec.create_time_unix
    return tuple(
        Mark(seen.pod, int(book.up_at(seen)))
        for seen in book.seen(Group.PREPARING)
        if not _marked(seen.pod, began, now)
    )


def _marked(pod: Pod, began: float, now: float) -> bool:
    """Whether its mark can be true. Not one from before the pod or the release, nor one from the future: it came with
    a template into which somebody copied the labels of another pod."""
    value = pod.finished
    at = int(value) if value.isascii() and value.isdigit() and len(value) <= 12 else 0
    return max(pod.metadata.created, began) - _MARKED_BEFORE <= at <= now + CLOCK_SKEW


def surplus(book: Book) -> list[Batch]:
    """The oldest ChangePods of which no pod exists any more, past those that are kept."""
    if book.batch_count <= KEPT_BATCHES + len(book):
        return []
    gone = [each for each in book.batches() if not any(book.knows(member.uid) for member in each.members)]
    gone.sort(key=lambda each: each.number)
    return gone[:-KEPT_BATCHES]


def giver(book: Book) -> Giver:
    """Whose verdict failed the release: a person's counts before a server's, and that before what we saw ourselves."""
    found = {book.giver(seen) for seen in book.seen(Group.FAILED)}
    return next((each for each in Giver if each in found), Giver.PERSON)


def summary(facts: Facts, failing: Sequence[PodInfo] = ()) -> str:
    """Where the release stands, in one sentence. `failing`: pods that are failed just now."""
    book = facts.book
    if book is None:
        return "no pod of this version exists yet"
    failed = [*(book.info(seen) for seen in islice(book.seen(Group.FAILED), _NAMED)), *failing]
    count = book.count(Group.FAILED) + len(failing)
    if count:
        failed.sort(key=lambda info: info.pod)
        named = "; ".join(f"{pod.pod} ({pod.message or pod.verdict})" for pod in failed[:_NAMED])
        more = f" and {count - _NAMED} more" if count > _NAMED else ""
        return f"{count} of {len(book)} pods failed verification: {named}{more}"
    total = max(book.wanted, len(book))
    waits = (
        (total - len(book) + book.count(Group.DOWN) + book.count(Group.OBSERVED), "coming up"),
        (book.count(Group.OVERDUE) + book.count(Group.HELD_UP), "not up in time"),
        (book.count(Group.PREPARING), "waiting to be verified"),
        (book.count(Group.CHECKING), "being verified"),
    )
    passed = f"{book.count(Group.PASSED)} of {total} pods passed"
    return ", ".join([passed, *(f"{number} {what}" for number, what in waits if number)])


def failed_now(book: Book, seen: Seen, message: str) -> PodInfo:
    """The pod with the verdict that it was not up in time."""
    return msgspec.structs.replace(book.info(seen), verdict=Verdict.UNPASS.value, message=message)
