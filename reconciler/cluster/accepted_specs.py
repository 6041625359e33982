"""The condition Accepted of objects of which the spec that was accepted last stays in force. Pure functions."""

from collections.abc import Sequence

from altershield.api.condition_types import ConditionType
from altershield.api.meta import Condition, find_condition


def rejected(reason: str, message: str, *, has_accepted: bool) -> Condition:
    """The condition of a spec that is not accepted. `has_accepted`: whether one was accepted before."""
    instead = "the spec that was accepted last stays in force" if has_accepted else "no spec is in force"
    return Condition(ConditionType.ACCEPTED, "False", reason, f"{message}; {instead}")


def turned(before: Sequence[Condition], after: Sequence[Condition]) -> Condition | None:
    """The condition Accepted after a change, if an Event reports it: the spec is newly rejected, rejected for another
    reason, or accepted again."""
    known, wanted = (find_condition(each, ConditionType.ACCEPTED) for each in (before, after))
    if wanted is None or (known is not None and known.message == wanted.message):
        return None
    if wanted.is_true and (known is None or known.status != "False"):
        return None
    return wanted
