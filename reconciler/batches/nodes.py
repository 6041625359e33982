"""Decides whether a batch still expects the id of its node, or a result, from an AlterShield server. Pure functions.

A callback counts only for the batch for which AlterShield opened its node, and only if it names the order of that
batch's release.

When the check before a batch runs again, it has the same node as before. A callback about its first run may come during
the second run. If a callback has rules that began after all known rules, it is about the second run. A callback without
rules may be about either run, so a poll decides.
"""

import math
from enum import Enum, auto

import msgspec

from altershield.api.change_pod import ChangePodStatus
from altershield.api.change_workload import ChangeWorkload
from altershield.api.check_results import CheckResult, CheckState
from altershield.api.check_specs import Phase
from reconciler.checks.check import Fail, Pass, entry_of
from reconciler.cluster.orders import is_closed, order_id

DOUBTFUL = "the AlterShield server passed the check without rules, perhaps because its time expired there"
"""The reason in the entry of a check that runs again, see `with_doubtful_pass`."""


class Reception(Enum):
    """What became of a callback."""

    STORED = auto()
    DOUBTFUL = auto()
    """The check is open, but the callback may be about an earlier run of it. Polls decide."""
    REPEATED = auto()
    """The check has this result already. The server may send a callback twice."""
    LATE = auto()
    """The check is over, or the order is closed."""
    UNKNOWN = auto()
    """AlterShield has not opened this node for a batch of this order."""


def refusal(
    status: ChangePodStatus,
    release: ChangeWorkload | None,
    name: str,
    order: str,
    node: str,
    phase: Phase,
    *,
    passes: bool,
) -> Reception | None:
    """Why a callback about the order and the node does not count for the batch with this status; None if it counts.
    `passes`: whether its verdict is `pass`.
    `release` is the batch's own, None if it does not exist; `name` is that of the server's check. A batch without the
    id of its node takes the node."""
    if release is None or order_id(release) != order:
        return Reception.UNKNOWN
    if status.change_pod_id != node and not awaits_node(status, name):
        return Reception.UNKNOWN
    entry = entry_of(status.checks, name, phase)
    if entry is not None and entry.state == (CheckState.PASSED if passes else CheckState.FAILED):
        return Reception.REPEATED
    if is_closed(release):
        return Reception.LATE
    state = status if status.change_pod_id else with_node(status, name, node)
    return None if awaits(state, name, phase) else Reception.LATE


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
