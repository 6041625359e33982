"""Which deletions a policy admits, and the status that has to be written before they are admitted.

The deletion of a pod is counted once, even if it is requested several times: `status.pending` has the uids of the pods.
The API server may carry out a deletion up to 34 seconds after it asked the gatekeeper. So a count is kept for longer
than that, and a repeated request moves the count to the present time.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import msgspec

from altershield.api.flow_control import (
    MAX_PENDING,
    BreakerState,
    Denied,
    FlowControlStatus,
    Mode,
    Pending,
    PodDeletionFlowControl,
)
from altershield.api.meta import time_of
from altershield.flow_control import breaker as breakers
from altershield.flow_control import statistics, texts
from altershield.flow_control.deletion import Deletion, covers
from altershield.flow_control.rules import Rule, rules_of, shortest
from altershield.flow_control.texts import Hint
from altershield.flow_control.windows import CLOCK_ERROR, tallies
from kube_base.times import rfc3339

REPEATED = 3
"""Seconds for which a repeated request needs no write. The API server repeats a request within milliseconds."""

_LEAST_HORIZON = 600  # seconds for which `topSources` keeps a user who deletes nothing


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict of one policy on one deletion."""

    refusal: str = ""
    """Empty: the deletion is admitted."""
    hints: tuple[Hint, ...] = ()
    """Warnings for the user."""
    counted: bool = False
    """The count of this deletion has to be taken back if another policy refuses the deletion."""


@dataclass(frozen=True, slots=True)
class Step:
    """The verdicts on some deletions, in their order. They are valid once `status` is written. None: no write is
    needed, and they are valid at once."""

    status: FlowControlStatus | None
    """It has the refused deletions, too."""
    verdicts: tuple[Verdict, ...]


ADMITTED = Verdict()


class Working:
    """A mutable copy of the status of a policy at one time. `now`: Unix seconds by the API server's clock."""

    def __init__(self, policy: PodDeletionFlowControl, now: float) -> None:
        self.policy = policy
        self.now = int(now)
        spec, status = policy.spec, policy.status
        self.rules = rules_of(spec)
        self.tallies = tallies(self.rules, status.windows, self.now)
        self.breaker = breakers.current(status.breaker, spec, self.now)
        # a time in the future comes from a wrong clock, and would keep the deletion pending for too long
        latest, present = rfc3339(self.now + CLOCK_ERROR), rfc3339(self.now)
        self.pending = {
            uid: each if each.time <= latest else msgspec.structs.replace(each, time=present)
            for uid, each in status.pending.items()
        }
        self.sources = status.top_sources
        self.denied: list[Denied] = []
        self.changed = False

    @property
    def name(self) -> str:
        return self.policy.metadata.name

    def status(self) -> FlowControlStatus:
        """The status with the changes so far."""
        return msgspec.structs.replace(
            self.policy.status,
            windows=tuple(tally.window() for tally in self.tallies),
            pending=self.pending,
            breaker=self.breaker,
            top_sources=self.sources,
            last_denied=statistics.with_denied(self.policy.status.last_denied, self.denied),
        )

    def drop(self, uid: str, *, give_back: bool) -> None:
        """End a pending deletion. `give_back`: it did not happen, so it does not count."""
        pending = self.pending.pop(uid)
        if give_back:
            self.take_back(pending)
        self.changed = True

    def take_back(self, pending: Pending) -> None:
        """Remove the count of a deletion from the windows and from the breaker."""
        time = time_of(pending.time, self.now)
        for tally in self.tallies:
            tally.take_back(time)
        self.breaker = breakers.taken_back(self.breaker, time)

    def count(self, deletion: Deletion) -> bool:
        """Count the deletion now. Return whether the request has to take the count back if another policy refuses the
        deletion. If `pending` is full, the deletion gets no entry, and a repeated request is counted again."""
        for tally in self.tallies:
            tally.add()
        if self.breaker.state == BreakerState.HALF_OPEN:
            self.breaker = msgspec.structs.replace(self.breaker, passed=self.breaker.passed + 1)
        horizon = max((rule.seconds for rule in self.rules), default=0)
        by = deletion.by[: statistics.MAX_NAME]
        self.sources = statistics.with_deletion(self.sources, by, self.now, max(horizon, _LEAST_HORIZON))
        self.changed = True
        if len(self.pending) >= MAX_PENDING:
            return False
        self.pending[deletion.uid] = Pending(
            namespace=deletion.namespace,
            name=deletion.name,
            operation=str(deletion.operation),
            time=rfc3339(self.now),
            by=by,
            claim=deletion.claim if deletion.shared else "",
            break_glass=deletion.break_glass,
        )
        return deletion.shared


def step(policy: PodDeletionFlowControl, deletions: Sequence[Deletion], now: float) -> Step:
    """The verdicts of one policy on `deletions`. Each verdict takes the earlier deletions as counted. A dry run gets
    the same verdict and changes nothing. A deletion that the policy does not cover any more is admitted. `now`: Unix
    seconds by the API server's clock."""
    work = Working(policy, now)
    verdicts = tuple(_judge(work, each) if covers(policy, each) else ADMITTED for each in deletions)
    return Step(work.status() if work.changed else None, verdicts)


def in_order(
    policies: Iterable[PodDeletionFlowControl], deletion: Deletion, now: float
) -> list[PodDeletionFlowControl]:
    """The policies in the order in which they decide: first those that refuse the deletion by their cached status. If
    one of these refuses it, the others do not have to count it."""
    return sorted(
        policies,
        key=lambda each: (not step(each, (deletion,), now).verdicts[0].refusal, each.metadata.name),
    )


def undo(policy: PodDeletionFlowControl, uid: str, claim: str, now: float) -> FlowControlStatus | None:
    """The status without the count of a deletion that another policy refused. `uid`: that of the pod. `claim`: that of
    the request. None: another request relies on the count too, or there is no count."""
    pending = policy.status.pending.get(uid)
    if pending is None or pending.claim != claim:
        return None
    work = Working(policy, now)
    work.drop(uid, give_back=True)
    return work.status()


def note_denied(policy: PodDeletionFlowControl, denied: Iterable[Denied]) -> FlowControlStatus:
    """The status with more refused deletions in `lastDenied`."""
    return msgspec.structs.replace(policy.status, last_denied=statistics.with_denied(policy.status.last_denied, denied))


def _judge(work: Working, deletion: Deletion) -> Verdict:
    known = work.pending.get(deletion.uid)
    if known is None:
        verdict = _decide(work, deletion)
    elif work.now - time_of(known.time, work.now) > REPEATED:
        verdict = _repeat(work, deletion, known)
    else:
        verdict = Verdict(counted=bool(known.claim) and known.claim == deletion.claim)
        if known.claim and not verdict.counted and not deletion.dry_run:
            # this request relies on the count too, so the earlier request must not take it back any more
            work.pending[deletion.uid] = msgspec.structs.replace(known, claim="")
            work.changed = True
    if verdict.refusal and not deletion.dry_run:
        work.denied.append(statistics.denied_entry(deletion, work.now))
    return verdict


def _repeat(work: Working, deletion: Deletion, known: Pending) -> Verdict:
    """The verdict on a deletion that was counted more than `REPEATED` seconds ago. The count moves to the present time.
    If the deletion is refused now, the count keeps its time, because the earlier request may still take effect."""
    before, breaker = work.tallies, work.breaker
    work.tallies = tallies(work.rules, tuple(tally.window() for tally in before), work.now)
    work.take_back(known)
    del work.pending[deletion.uid]
    verdict = _decide(work, replace(deletion, shared=False))  # no request may take the count of two requests back
    if verdict.refusal or deletion.dry_run:
        work.tallies = before
        if work.breaker.state == BreakerState.HALF_OPEN:
            work.breaker = breaker
        work.pending[deletion.uid] = known
    return verdict


def _decide(work: Working, deletion: Deletion) -> Verdict:
    """The verdict on a deletion that is not counted yet."""
    spec = work.policy.spec
    refusal, hints, opened_by = _check(work)
    if not refusal and len(work.pending) >= MAX_PENDING:
        refusal = texts.too_many_pending(work.name)
    if opened_by is not None and not deletion.dry_run:
        work.breaker = breakers.opened(work.breaker, spec, opened_by, work.now)
        work.changed = True
    if refusal:
        if not deletion.exempt and spec.mode == Mode.ENFORCE:
            return Verdict(refusal, hints)
        passes = texts.not_refused if deletion.exempt else texts.would_refuse
        hints = (passes(refusal), *hints)
    counted = not deletion.dry_run and work.count(deletion)
    return Verdict(hints=hints or _near_limit(work), counted=counted)


def _check(work: Working) -> tuple[str, tuple[Hint, ...], Rule | None]:
    """The refusal of a new deletion or an empty text, its warnings, and the rule that opens the breaker, or None."""
    spec, breaker, sources = work.policy.spec, work.breaker, work.sources
    if breaker.state == BreakerState.OPEN:
        hints = texts.about_breaker(work.name, breaker, spec.breaker.mode, sources)
        return texts.is_open(work.name, breaker), tuple(hints), None
    full = [tally for tally in work.tallies if tally.full]
    if full:
        opens = breakers.opens(breaker, spec, full)
        hints = texts.about_limit(work.name, full, sources, opens=opens)
        return texts.used(work.name, full[0].rule), tuple(hints), full[0].rule if opens else None
    passing = breakers.quota(spec)
    if breaker.state == BreakerState.HALF_OPEN and breaker.passed >= passing:
        hints = texts.about_limit(work.name, (), sources, opens=True)
        return texts.half_open(work.name, passing), tuple(hints), shortest(work.rules)
    return "", (), None


def _near_limit(work: Working) -> tuple[Hint, ...]:
    """The warnings of an admitted deletion: the limits that are nearly reached."""
    percent = work.policy.spec.warn_percent
    return tuple(texts.near(work.name, tally) for tally in work.tallies if tally.percent() >= percent)
