"""DefensePolicies that only observe or warn: why a release is not touched, and the action that `enforce` would have
taken."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol

from altershield.api.change_workload import WorkloadState
from altershield.api.condition_types import ConditionType
from altershield.api.meta import Condition, find_condition
from altershield.api.policy import Mode
from altershield.releases.texts import NOT_ROLLED_BACK


class _Policy(Protocol):
    @property
    def namespace(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def mode(self) -> str: ...


class _Status(Protocol):
    @property
    def status(self) -> str: ...
    @property
    def conditions(self) -> Sequence[Condition]: ...


class Would(StrEnum):
    """The action that the mode `enforce` would have taken on a release."""

    NOTHING = ""
    SUSPEND = "suspend"
    ROLLBACK = "rollback"


def named(policy: _Policy) -> str:
    """The policy in texts."""
    return f"the DefensePolicy {policy.namespace}/{policy.name}"


def only_text(policy: _Policy) -> str:
    """Why the workload is not touched: the policy only observes or only warns. Empty if it enforces."""
    match policy.mode:
        case Mode.OBSERVE:
            return f"{named(policy)} only observes"
        case Mode.WARN:
            return f"{named(policy)} only warns"
        case _:
            return ""


def would(policy: _Policy, status: _Status) -> Would:
    """The action that the mode `enforce` would have taken on a release with this policy and status.

    Before the reconciler names the mode as its reason against a rollback, it examines the target version. So a message
    with this reason means that only the mode prevented the rollback.
    """
    only = only_text(policy)
    if not only or status.status != WorkloadState.SUSPEND:
        return Would.NOTHING
    known = find_condition(status.conditions, ConditionType.ROLLED_BACK)
    rollback = known is not None and not known.is_true and known.message.endswith(f"{NOT_ROLLED_BACK}{only}")
    return Would.ROLLBACK if rollback else Would.SUSPEND
