"""What a DefensePolicy that does not enforce means for a release, and what the mode `enforce` would have done."""

from enum import StrEnum

from altershield.api.kinds import ChangeWorkloadStatus, ConditionType, WorkloadState
from altershield.api.meta import find_condition
from altershield.api.policy import AppliedPolicy, Mode


class Would(StrEnum):
    """What the mode `enforce` would have done to a release."""

    NOTHING = ""
    SUSPEND = "suspend"
    ROLLBACK = "rollback"


def named(policy: AppliedPolicy) -> str:
    """The policy in texts."""
    return f"the DefensePolicy {policy.namespace}/{policy.name}"


def only_text(policy: AppliedPolicy) -> str:
    """Why the workload is not touched: the policy only observes or warns. Empty if it enforces."""
    match policy.mode:
        case Mode.OBSERVE:
            return f"{named(policy)} only observes"
        case Mode.WARN:
            return f"{named(policy)} only warns"
        case _:
            return ""


def would(policy: AppliedPolicy, status: ChangeWorkloadStatus) -> Would:
    """What the mode `enforce` would have done to a release with this policy and status.

    A rollback would also have needed an older version that passed, which is not examined unless the policy enforces.
    """
    only = only_text(policy)
    if not only or status.status != WorkloadState.SUSPEND:
        return Would.NOTHING
    known = find_condition(status.conditions, ConditionType.ROLLED_BACK)
    rollback = known is not None and not known.is_true and known.message.endswith(only)
    return Would.ROLLBACK if rollback else Would.SUSPEND
