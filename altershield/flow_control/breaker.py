"""The breaker: its state at a time, and the deletions that open it.

The state follows from the status, the spec and the time. So a breaker of the mode Auto also closes while no reconciler
leads. The leading reconciler writes the state, so that people see it.
"""

from collections.abc import Iterable

import msgspec

from altershield.api.flow_control import Breaker, BreakerMode, BreakerState, FlowControlSpec
from altershield.api.meta import time_of
from altershield.flow_control.rules import Rule, cooldown, rules_of, shortest
from altershield.flow_control.windows import CLOCK_ERROR, Tally
from kube_base.times import rfc3339

UNNAMED = "unknown"
"""`openedBy` of a breaker that a person opened by a patch of `state` alone."""

_SHARE = 10  # a half-open breaker lets a tenth of the limit of the shortest rule pass


def current(breaker: Breaker, spec: FlowControlSpec, now: int) -> Breaker:
    """The breaker at `now`, in Unix seconds."""
    if time_of(breaker.since, now) > now + CLOCK_ERROR:
        # A person wrote this time. Before it, no limit would open the breaker, and no cooldown would end.
        breaker = msgspec.structs.replace(breaker, since=rfc3339(now))
    if spec.breaker.mode == BreakerMode.OFF:
        return breaker if breaker.state == BreakerState.CLOSED else _closed(breaker, now)
    match breaker.state:
        case BreakerState.CLOSED:
            # a person wrote only the state, so the other fields still describe the open breaker
            is_outdated = breaker.rule or breaker.until or breaker.opened_by or breaker.passed
            return _closed(breaker, now) if is_outdated else breaker
        case BreakerState.OPEN if not breaker.rule and not breaker.opened_by:
            breaker = _opened(breaker, now, opened_by=UNNAMED)
    if spec.breaker.mode == BreakerMode.MANUAL:
        return msgspec.structs.replace(breaker, state=BreakerState.OPEN, until="", passed=0)
    return _by_time(breaker, spec, now)


def _by_time(breaker: Breaker, spec: FlowControlSpec, now: int) -> Breaker:
    """The breaker of the mode Auto, which is open or half open."""
    rule = shortest(rules_of(spec))
    trial = rule.seconds if rule is not None else 0
    since = time_of(breaker.since, now)
    if breaker.state == BreakerState.OPEN:
        end = since + cooldown(spec)
        if now < end:
            return msgspec.structs.replace(breaker, since=rfc3339(since), until=rfc3339(end))
        breaker = msgspec.structs.replace(breaker, state=BreakerState.HALF_OPEN, passed=0)
        since = end
    end = since + trial
    if now < end:
        return msgspec.structs.replace(breaker, since=rfc3339(since), until=rfc3339(end))
    return _closed(breaker, end)


def quota(spec: FlowControlSpec) -> int:
    """How many deletions pass while the breaker is half open."""
    rule = shortest(rules_of(spec))
    return max(1, rule.limit // _SHARE) if rule is not None else 0


def opens(breaker: Breaker, spec: FlowControlSpec, full: Iterable[Tally]) -> bool:
    """Whether a deletion beyond the limits of the windows `full` opens the breaker.

    After a reset, the windows may still be full, and the first deletion would open the breaker again. So a closed
    breaker opens only if the deletions that were counted since it closed reach a limit.
    """
    if spec.breaker.mode == BreakerMode.OFF or breaker.state == BreakerState.OPEN:
        return False
    if breaker.state == BreakerState.HALF_OPEN:
        return True
    since = time_of(breaker.since, 0.0)
    return any(tally.counted_since(since) >= tally.rule.limit for tally in full)


def opened(breaker: Breaker, spec: FlowControlSpec, rule: Rule, now: int) -> Breaker:
    """The breaker after a deletion beyond the limit of a rule."""
    made = _opened(breaker, now, rule=str(rule))
    if spec.breaker.mode == BreakerMode.AUTO:
        return msgspec.structs.replace(made, until=rfc3339(now + cooldown(spec)))
    return made


def opened_by(breaker: Breaker, user: str, now: int) -> Breaker:
    """The breaker after a person opened it."""
    return _opened(breaker, now, opened_by=user)


def taken_back(breaker: Breaker, time: float) -> Breaker:
    """The breaker after the count of a deletion is given back. `time`: when the deletion was counted. If a half-open
    breaker let this deletion pass, it lets another one pass."""
    if breaker.state != BreakerState.HALF_OPEN or not breaker.passed or time < time_of(breaker.since, 0.0):
        return breaker
    return msgspec.structs.replace(breaker, passed=breaker.passed - 1)


def reset_by(user: str, now: int) -> Breaker:
    """The breaker after a person reset it."""
    return Breaker(BreakerState.CLOSED, since=rfc3339(now), reset_by=user)


def _opened(breaker: Breaker, now: int, *, rule: str = "", opened_by: str = "") -> Breaker:
    return Breaker(BreakerState.OPEN, since=rfc3339(now), rule=rule, opened_by=opened_by, reset_by=breaker.reset_by)


def _closed(breaker: Breaker, since: float) -> Breaker:
    return Breaker(BreakerState.CLOSED, since=rfc3339(since), reset_by=breaker.reset_by)
