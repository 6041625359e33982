"""The list `status.checks` of a ChangePod. Pure functions."""

import msgspec

from altershield.api.kinds import CheckResult, CheckState
from altershield.api.meta import plain_time
from altershield.api.policy import Phase
from altershield.workloads.pods import clip

SERVER_CHECK = "server"
"""The name of the check of an AlterShield server."""

Checks = tuple[CheckResult, ...]


def begun(checks: Checks, name: str, phase: Phase, now: float) -> Checks:
    """The list with a check that begins at `now` (Unix seconds)."""
    return (*checks, CheckResult(name, phase, CheckState.RUNNING, start_time=plain_time(now)))


def ended(checks: Checks, name: str, phase: Phase, outcome: CheckState, reason: str, now: float) -> Checks:
    """The list after the check has ended. A result stays; only Unknown gives way to a result that comes late."""
    return tuple(
        msgspec.structs.replace(each, state=outcome, reason=clip(reason), end_time=plain_time(now))
        if (each.name, each.phase) == (name, phase)
        and each.state in (CheckState.RUNNING, CheckState.UNKNOWN)
        and each.state != outcome
        else each
        for each in checks
    )
