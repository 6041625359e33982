"""What a batch still expects from an AlterShield server: the id of its node, or a result. Pure functions."""

import msgspec

from altershield.api.kinds import ChangePodStatus, CheckState
from altershield.api.policy import Phase
from reconciler.batches.check_run import entry_of


def awaits_node(status: ChangePodStatus, name: str) -> bool:
    """Whether it is not known if the first check of an AlterShield server was started: the server may have a node for
    the batch whose id it has not told."""
    entry = entry_of(status.checks, name, Phase.PRE)
    return entry is not None and not entry.handle and entry.state in (CheckState.RUNNING, CheckState.UNKNOWN)


def with_node(status: ChangePodStatus, name: str, node: str) -> ChangePodStatus:
    """The status with the id that a callback has told."""
    checks = tuple(
        msgspec.structs.replace(each, handle=node) if (each.name, each.phase) == (name, Phase.PRE) else each
        for each in status.checks
    )
    return msgspec.structs.replace(status, checks=checks, change_pod_id=node)


def awaits(status: ChangePodStatus, name: str, phase: Phase) -> bool:
    """Whether a result of this check in this phase is still of use: the check runs, or it ended without a result. A
    server also sends results of a phase that is over (its callback comes late)."""
    entry = entry_of(status.checks, name, phase)
    if entry is None or entry.state not in (CheckState.RUNNING, CheckState.UNKNOWN):
        return False
    return phase is Phase.POST or (bool(entry.handle) and entry_of(status.checks, name, Phase.POST) is None)
