"""One check of a batch in one phase: when it is started and polled, and how it ends. Pure functions.

The state of the check is one entry of `ChangePod.status.checks`. The entry is stored before the check is started. A
start that is not repeatable is made at most once. If its outcome is not known (no answer, or the reconciler restarted),
a callback may still bring the result until the deadline.
"""

from dataclasses import dataclass
from enum import Enum, auto

import msgspec

from altershield.api.check_results import CheckResult, CheckState
from altershield.api.check_specs import CheckSpec, Phase
from altershield.api.meta import plain_time
from altershield.workloads.pods import clip
from reconciler.checks.check import (
    Availability,
    Fail,
    Lost,
    NotRepeated,
    NotStarted,
    Pass,
    Pending,
    PollAnswer,
    StartAnswer,
    Started,
    Unknown,
)

POLL_INTERVAL = 3.0
"""Seconds before the first poll for a result, and before a start without an effect is repeated. Later polls come at
longer intervals, because a callback may bring the result."""

_POLL_SHARE = 0.25  # of the time since the check began
_LONGEST_INTERVAL = 60.0

_AWAY = 60.0
"""Seconds after the deadline of a check. If a decision about the check comes later than this, no reconciler ran before
the deadline."""

Answer = StartAnswer | PollAnswer


class Step(Enum):
    """The requests to a check."""

    START = auto()
    POLL = auto()
    LAST_POLL = auto()
    """At the deadline."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Send this request to the check, and decide again with its answer."""

    name: str
    phase: Phase
    step: Step

    @property
    def key(self) -> tuple[str, Phase]:
        return self.name, self.phase


@dataclass(frozen=True, slots=True)
class Later:
    """Decide again after this many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Planned:
    """A check that the batch needs."""

    spec: CheckSpec
    availability: Availability = Availability.AVAILABLE
    repeatable: frozenset[Phase] = frozenset()
    """The phases in which its start may be repeated."""
    why_not: str = "the check is not configured"
    """The reason why the check cannot run, if it is NOT_CONFIGURED."""


@dataclass(frozen=True, slots=True)
class Run:
    """A planned check in one phase."""

    planned: Planned
    phase: Phase
    timeout: float
    """Seconds."""
    phase_began: float
    """Unix seconds: the deadline of a check that has not begun follows from it."""

    @property
    def name(self) -> str:
        return self.planned.spec.name

    @property
    def repeatable(self) -> bool:
        return self.phase in self.planned.repeatable

    def ask(self, step: Step) -> Ask:
        return Ask(self.name, self.phase, step)


Checks = tuple[CheckResult, ...]
Next = Ask | Later | None


def with_entry(checks: Checks, run: Run, entry: CheckResult | None) -> Checks:
    """The list with this entry of a check; None removes it."""
    others = tuple(each for each in checks if (each.name, each.phase) != (run.name, run.phase))
    if entry is None:
        return others
    if len(others) == len(checks):
        return (*checks, entry)
    return tuple(entry if (each.name, each.phase) == (run.name, run.phase) else each for each in checks)


def ended(entry: CheckResult, outcome: CheckState, reason: str, now: float) -> CheckResult:
    """The entry of a check that ends at `now` (Unix seconds)."""
    return msgspec.structs.replace(entry, state=outcome, reason=clip(reason), end_time=plain_time(now))


def with_result(entry: CheckResult, answer: Answer | None, now: float) -> CheckResult:
    """The entry with the result, if the answer is a result. A stored result stays. Only Unknown is replaced by a later
    result."""
    if entry.state == CheckState.RUNNING or (entry.state == CheckState.UNKNOWN and isinstance(answer, Pass | Fail)):
        match answer:
            case Pass(message):
                return ended(entry, CheckState.PASSED, message, now)
            case Fail(reason, newest, rules):
                failed = ended(entry, CheckState.FAILED, reason, now)
                return msgspec.structs.replace(failed, newest_rule=max(newest, entry.newest_rule), rules=rules)
            case Unknown(reason):
                return ended(entry, CheckState.UNKNOWN, reason, now)
            case _:
                return entry
    return entry


def advance(run: Run, entry: CheckResult | None, answer: Answer | None, now: float) -> tuple[CheckResult | None, Next]:
    """The entry to store, and what to do after it is stored; None if the check has ended.

    `answer`: the check's answer to the `Ask` of the last decision, or its callback; None for the first decision.
    """
    if entry is None:
        return _begin(run, now)
    entry = with_result(entry, answer, now)
    if entry.state != CheckState.RUNNING:
        return entry, None
    elapsed = now - entry.start_time_unix
    return _running(run, entry, answer, elapsed, now) if entry.handle else _starting(run, entry, answer, elapsed, now)


def _begin(run: Run, now: float) -> tuple[CheckResult | None, Next]:
    """Begin a check.

    A check begins even after its deadline if it is available now and its start may be repeated. The reason is that no
    reconciler ran before the deadline, or that it was busy. Without this rule, batches would pass unchecked after a
    short outage.
    """
    new = CheckResult(run.name, run.phase, CheckState.RUNNING, start_time=plain_time(now), start_time_unix=int(now))
    left = run.phase_began + run.timeout - now
    match run.planned.availability:
        case Availability.NOT_CONFIGURED:
            return ended(new, CheckState.UNKNOWN, run.planned.why_not, now), None
        case Availability.SWITCHED_OFF:
            return ended(new, CheckState.UNKNOWN, "the AlterShield server is switched off", now), None
        case Availability.UNREACHABLE if left > 0 and not run.repeatable:
            return None, Later(min(POLL_INTERVAL, left))  # nothing is written while the server is unreachable
        case Availability.UNREACHABLE if left > 0:
            return new, next_poll(0, left)
        case availability if left <= 0 and not (run.repeatable and availability is Availability.AVAILABLE):
            return ended(new, CheckState.UNKNOWN, "the check could not be started in time", now), None
        case _:
            return new, run.ask(Step.START)


def _starting(
    run: Run, entry: CheckResult, answer: Answer | None, elapsed: float, now: float
) -> tuple[CheckResult | None, Next]:
    """The next step of a check that may have been started: its entry is stored, and the answer to the start is not
    known. A request to repeat the check may be sent twice."""
    left = run.timeout - elapsed
    repeatable = run.repeatable or entry.repeated
    if entry.repeated and left < -_AWAY:
        entry = msgspec.structs.replace(entry, start_time=plain_time(now), start_time_unix=int(now))
        elapsed, left = 0.0, run.timeout
    match answer:
        case Started(unique=False) if run.repeatable and elapsed < POLL_INTERVAL:
            return entry, next_poll(0, left)  # stored with the first poll: quick checks cost one write less
        case Started(handle):
            return msgspec.structs.replace(entry, handle=handle), next_poll(0, left)
        case NotRepeated():
            fresh = CheckResult(
                entry.name, entry.phase, CheckState.RUNNING, start_time=plain_time(now), start_time_unix=int(now)
            )
            return fresh, run.ask(Step.START)
        case NotStarted() if not repeatable:
            return None, Later(POLL_INTERVAL)
        case NotStarted() if left < -_AWAY:
            return _begin(run, now)
        case None if repeatable and run.planned.availability is Availability.AVAILABLE:
            return entry, run.ask(Step.START)  # also at the deadline: the answer has the reason why there is no result
        case _ if left <= 0:
            reason = answer.reason if isinstance(answer, NotStarted | Lost | Pending) else ""
            return ended(entry, CheckState.UNKNOWN, reason or "the start of the check was not confirmed", now), None
        case _:
            return entry, next_poll(elapsed, left) if repeatable else Later(left)


def _running(
    run: Run, entry: CheckResult, answer: Answer | None, elapsed: float, now: float
) -> tuple[CheckResult | None, Next]:
    left = run.timeout - elapsed
    if isinstance(answer, Pending) and answer.handle:
        entry = msgspec.structs.replace(entry, handle=answer.handle)
    if left <= 0:
        if answer is None:
            return entry, run.ask(Step.LAST_POLL)
        why = answer.reason if isinstance(answer, Pending) else ""
        return ended(entry, CheckState.UNKNOWN, f"no result in time{f': {why}' if why else ''}", now), None
    due = answer is None and elapsed >= POLL_INTERVAL  # an event of the object may come earlier
    return entry, run.ask(Step.POLL) if due else next_poll(elapsed, left)


def next_poll(elapsed: float, left: float) -> Later:
    """The time of the next poll. Both are in seconds."""
    interval = min(_LONGEST_INTERVAL, max(POLL_INTERVAL, elapsed * _POLL_SHARE))
    return Later(min(interval, max(left, 0.0)))
