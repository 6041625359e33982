"""Decides whether a batch still expects the id of its node, or a result, from an AlterShield server. Pure functions.

When the check before a batch runs again, it has the same node as before. A callback about its first run may come during
the second run. If a callback has rules that began after all known rules, it is about the second run. A callback without
rules may be about either run, so a poll decides.
"""

import math

import msgspec

from altershield.api.change_pod import ChangePodStatus
from altershield.api.check_results import CheckResult, CheckState
from altershield.api.check_specs import Phase
from reconciler.checks.check import Fail, Pass, entry_of

DOUBTFUL = "the AlterShield server passed the check without rules, perhaps because its time expired there"
"""The reason in the entry of a check that runs again, see `with_doubtful_pass`."""


def awaits_node(status: ChangePodStatus, name: str, begun_by: float = math.inf) -> bool:
    """Whether the id of the node of the batch is unknown, although the server may have started its first check by this
    time, in Unix seconds. If a check is repeated, the id is known."""
    entry = entry_of(status.checks, name, Phase.PRE)
    if entry is None or status.change_pod_id or entry.start_time_unix > begun_by:
        return False
    return entry.state in (CheckState.RUNNING, CheckState.UNKNOWN)


def with_node(status: ChangePodStatus, name: str, node: str) -> ChangePodStatus:
    """The status with the id of the node from a callback."""
    checks = tuple(
        msgspec.structs.replace(each, handle=node) if (each.name, each.phase) == (name, Phase.PRE) else each
        for each in status.checks
    )
    return msgspec.structs.replace(status, checks=checks, change_pod_id=node)


def awaits(status: ChangePodStatus, name: str, phase: Phase) -> bool:
    """Whether the batch needs a result of this check in this phase: the check runs, or it ended without a result. A
    late callback may be about a phase that is over."""
    entry = entry_of(status.checks, name, phase)
    if entry is None or entry.state not in (CheckState.RUNNING, CheckState.UNKNOWN):
        return False
    return phase is Phase.POST or (bool(entry.handle) and entry_of(status.checks, name, Phase.POST) is None)


def awaits_repetition(status: ChangePodStatus) -> bool:
    """Whether the server has not answered yet whether it runs the first check again."""
    return any(each.repeated and not each.handle and each.state == CheckState.RUNNING for each in status.checks)


def is_of_this_run(entry: CheckResult, result: Pass | Fail) -> bool:
    """Whether a callback is certainly about the present run of the check with this entry."""
    return not entry.repeated or result.newest_rule > entry.newest_rule > 0


def with_doubtful_pass(status: ChangePodStatus, name: str, phase: Phase) -> ChangePodStatus:
    """The status after a callback without rules that passes a check which runs again. The server also sends such a
    callback when the time of the check has expired there. Polls then have the verdict `fail`."""
    checks = tuple(
        msgspec.structs.replace(each, reason=DOUBTFUL) if (each.name, each.phase) == (name, phase) else each
        for each in status.checks
    )
    return msgspec.structs.replace(status, checks=checks)
