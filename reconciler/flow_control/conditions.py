"""The conditions of a PodDeletionFlowControl, and the Events of their transitions. Pure functions."""

from collections.abc import Iterator, Sequence

import msgspec

from altershield.api.announcements import Announcement, announcement
from altershield.api.condition_types import ConditionType
from altershield.api.flow_control import Breaker, BreakerState, Pending
from altershield.api.meta import Condition, find_condition, set_condition
from altershield.flow_control.decision import Working
from altershield.flow_control.rules import useless

_FAR = 0.9
"""The condition NearLimit ends below this share of `warnPercent`, so that it does not change with each deletion."""


_NAMED = 3  # pods in an Event


def conditions(work: Working) -> tuple[Condition, ...]:
    """The conditions at the time of `work`."""
    found = work.policy.status.conditions
    near = find_condition(found, ConditionType.NEAR_LIMIT)
    for condition in (_accepted(work), _near_limit(work, was=near is not None and near.is_true), _breaker(work)):
        dated = msgspec.structs.replace(condition, observed_generation=work.policy.metadata.generation)
        found = set_condition(found, dated, work.now)
    return found


def _accepted(work: Working) -> Condition:
    if not work.rules:
        message = "no interval in spec.limitRules can be read; write intervals as 90s, 10m or 1h30m"
        return Condition(ConditionType.ACCEPTED, "False", "InvalidRule", message)
    if found := useless(work.rules):
        message = (
            f"the rule {found[0]} has no effect: the rule {found[1]} allows no more deletions in a longer interval"
        )
        return Condition(ConditionType.ACCEPTED, "True", "UselessRule", message)
    return Condition(ConditionType.ACCEPTED, "True", "Valid", "deletions of pods are counted")


def _near_limit(work: Working, *, was: bool) -> Condition:
    percent = work.policy.spec.warn_percent
    for tally in work.tallies:
        if tally.full:
            message = f"the limit of the rule {tally.rule} is reached"
            return Condition(ConditionType.NEAR_LIMIT, "True", "LimitReached", message)
    for tally in work.tallies:
        if tally.percent() >= percent * (_FAR if was else 1):
            message = f"about {percent} % of the limit of the rule {tally.rule} are used"
            return Condition(ConditionType.NEAR_LIMIT, "True", "WarnPercentReached", message)
    return Condition(ConditionType.NEAR_LIMIT, "False", "BelowLimits", "no limit is near")


def _breaker(work: Working) -> Condition:
    breaker = work.breaker
    match breaker.state:
        case BreakerState.OPEN if breaker.rule:
            message = f"a deletion was beyond the limit of the rule {breaker.rule}; {_end(breaker, work.name)}"
            return Condition(ConditionType.BREAKER_OPEN, "True", "LimitExceeded", message)
        case BreakerState.OPEN:
            message = f"{breaker.opened_by} opened the breaker; {_end(breaker, work.name)}"
            return Condition(ConditionType.BREAKER_OPEN, "True", "OpenedByPerson", message)
        case BreakerState.HALF_OPEN:
            message = f"a few deletions pass; without a refusal, the breaker closes at {breaker.until}"
            return Condition(ConditionType.BREAKER_OPEN, "Unknown", "HalfOpen", message)
    message = f"{breaker.reset_by} reset the breaker last" if breaker.reset_by else "deletions within the limits pass"
    return Condition(ConditionType.BREAKER_OPEN, "False", "Closed", message)


def _end(breaker: Breaker, name: str) -> str:
    """How the breaker closes."""
    if breaker.until:
        return f"some deletions pass from {breaker.until}"
    return f"all deletions are refused until a person resets the breaker: altershield breaker reset {name}"


def ungated(names: Sequence[str], now: float) -> Announcement:
    """The Event about lost pods. `names`: namespace and name of each, sorted."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    named = ", ".join(names[:_NAMED])
    return announcement("UngatedDeletion", f"no gatekeeper was asked before these pods were lost: {named}{more}", now)


def new_near_limit(before: Sequence[Condition], after: Sequence[Condition]) -> Condition | None:
    """The condition NearLimit, if a limit is near or reached since the last status. Its Events are frequent while the
    limit is used, and their repetitions are counted, so they are not stored: after a crash, the condition says the
    same."""
    near = find_condition(after, ConditionType.NEAR_LIMIT)
    if near is None or not near.is_true or not _changed(find_condition(before, ConditionType.NEAR_LIMIT), near):
        return None
    return near


def announcements(
    before: Sequence[Condition], after: Sequence[Condition], ended: Sequence[Pending], now: float
) -> Iterator[Announcement]:
    """The other Events of a status, which are stored with it: one for each transition, and one for each deletion by
    break glass. `now`: Unix seconds."""
    accepted, breaker = (
        (find_condition(before, type_), find_condition(after, type_))
        for type_ in (ConditionType.ACCEPTED, ConditionType.BREAKER_OPEN)
    )
    if _changed(*accepted) and accepted[1] is not None and accepted[1].reason != "Valid":
        yield announcement("RuleWithoutEffect", accepted[1].message, now)
    if _changed(*breaker) and breaker[1] is not None:
        state = breaker[1].status
        if state == "True":
            yield announcement("DeletionBreakerOpened", breaker[1].message, now)
        elif state == "Unknown":
            yield announcement("DeletionBreakerHalfOpen", breaker[1].message, now, normal=True)
        elif breaker[0] is not None:
            yield announcement("DeletionBreakerClosed", breaker[1].message, now, normal=True)
    for pending in ended:
        if pending.break_glass:
            pod = f"{pending.namespace}/{pending.name}"
            message = f"{pending.by} passed the limits by break glass: {pending.operation} of the pod {pod}"
            yield announcement("BreakGlassUsed", message, now)


def _changed(before: Condition | None, after: Condition | None) -> bool:
    return after is not None and (before is None or (before.status, before.reason) != (after.status, after.reason))
