"""The group of a pod: its progress in its release. Pure functions."""

from enum import StrEnum

from reconciler.releases.pods.health import Health
from reconciler.releases.pods.memberships import Membership


class Group(StrEnum):
    """The progress of a pod in its release. The first value that applies counts."""

    FAILED = "failed"
    """A verdict of any origin fails the pod."""
    OVERDUE = "overdue"
    """See `Health`, also for FAULT, DOWN and OBSERVING."""
    FAULT = "fault"
    DOWN = "down"
    OBSERVING = "observing"
    PREPARING = "preparing"
    """Up, and in no batch."""
    CHECKING = "checking"
    """In a batch that is being verified."""
    PASSED = "passed"
    """Up, and its batch passed."""


_BY_HEALTH = {
    Health.OVERDUE: Group.OVERDUE,
    Health.FAULT: Group.FAULT,
    Health.DOWN: Group.DOWN,
    Health.OBSERVING: Group.OBSERVING,
}


def group_of(health: Health, membership: Membership | None) -> Group:
    """The group of a pod. `membership`: its newest batch, or None."""
    if membership is not None and membership.fails:
        return Group.FAILED
    if health is not Health.UP:
        return _BY_HEALTH[health]
    if membership is None:
        return Group.PREPARING
    return Group.PASSED if membership.member.verdict or membership.batch.done else Group.CHECKING
