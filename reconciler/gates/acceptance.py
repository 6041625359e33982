"""Whether a ReleaseWindow is accepted, and the status that follows. Pure functions."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from altershield.api.announcements import Announcement, announcement
from altershield.api.condition_types import ConditionType
from altershield.api.gates.windows import (
    MAX_INTERVALS,
    ReleaseWindow,
    ReleaseWindowSpec,
    ReleaseWindowStatus,
    WindowType,
)
from altershield.api.meta import Condition, set_condition
from altershield.gates.release import changes_at
from altershield.gates.windows import Window
from kube_base.times import rfc3339
from reconciler.cluster.accepted_specs import rejected, selector_not_allowed, turned
from reconciler.gates import times
from reconciler.gates.problems import Problem, Reason
from reconciler.gates.times import Times


@dataclass(frozen=True, slots=True)
class InForce:
    """A spec that is in force, with its generation and its times."""

    spec: ReleaseWindowSpec
    generation: int
    times: Times


def problem(window: ReleaseWindow, system_namespace: str) -> Problem | None:
    """Why the spec is not accepted, whatever its times are; None: its times decide."""
    message = selector_not_allowed(window, "window", system_namespace)
    return Problem(Reason.NAMESPACE_SELECTOR_NOT_ALLOWED, message) if message else None


def too_many(new: Times, now: int) -> Problem | None:
    """Why a new spec with these times is not accepted; None if it is."""
    if new.until - now >= times.LEAST_REACH:
        return None
    return Problem(
        Reason.TOO_MANY_INTERVALS,
        f"the schedules have more than {MAX_INTERVALS} separate times in the next {times.LEAST_REACH // 86_400} days; "
        "let times that follow one another touch, or write fewer",
    )


def status_of(
    window: ReleaseWindow, in_force: InForce | None, wrong: Problem | None, now: float
) -> ReleaseWindowStatus:
    """The status of the window. `in_force`: None, if no spec has been accepted yet. `wrong`: why the present spec is
    not accepted. `now`: Unix seconds."""
    status, generation = window.status, window.metadata.generation
    accepted = msgspec.structs.replace(_accepted(in_force, wrong), observed_generation=generation)
    conditions = set_condition(status.conditions, accepted, now)
    if in_force is None:
        return ReleaseWindowStatus(
            open=window.spec.type == WindowType.DENY,
            announcements=status.announcements,
            conditions=conditions,
            observed_generation=generation,
        )
    known = in_force.times
    metadata = window.metadata
    judged = Window(metadata.namespace, metadata.name, in_force.spec, known.spans, known.until)
    transition = changes_at(judged, now)
    return ReleaseWindowStatus(
        open=judged.is_open(now),
        next_transition_time=rfc3339(transition) if now < transition < known.until else "",
        computed_until=rfc3339(known.until),
        intervals=times.intervals(known),
        accepted=in_force.spec,
        accepted_generation=in_force.generation,
        announcements=status.announcements,
        conditions=conditions,
        observed_generation=generation,
    )


def _accepted(in_force: InForce | None, wrong: Problem | None) -> Condition:
    if wrong is None:
        return Condition(ConditionType.ACCEPTED, "True", "Valid", "the window is in force")
    return rejected(wrong.reason, wrong.message, has_accepted=in_force is not None)


def announcements(before: Sequence[Condition], after: Sequence[Condition], now: float) -> list[Announcement]:
    """The Events of a window that is newly rejected, rejected for another reason, or accepted again."""
    wanted = turned(before, after)
    if wanted is None:
        return []
    if wanted.is_true:
        return [announcement("WindowAccepted", wanted.message, now, normal=True)]
    return [announcement("WindowRejected", wanted.message, now)]
