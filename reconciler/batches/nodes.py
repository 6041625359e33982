"""What a batch still expects from an AlterShield server: the id of its node, or a result. Pure functions.

A check before the batch that runs again has the same node as before. A callback about its first run may come during the
second one. Two things tell them apart: a callback with rules that began after all rules that are known is about the
second run; one without rules may be about either, and a poll decides.
"""

import msgspec

from altershield.api.kinds import ChangePodStatus, CheckResult, CheckState
from altershield.api.policy import Phase
from reconciler.checks.check import Fail, Pass, entry_of

DOUBTFUL = "the AlterShield server passed the check without rules, perhaps because its time expired there"
"""The reason in the entry of a check that runs again, see `with_doubtful_pass`."""


def awaits_node(status: ChangePodStatus, name: str) -> bool:
    """Whether it is not known if the first check of an AlterShield server was started: the server may have a node for
    the batch whose id it has not told. A batch whose check is repeated has a node already."""
    entry = entry_of(status.checks, name, Phase.PRE)
    return entry is not None and not status.change_pod_id and entry.state in (CheckState.RUNNING, CheckState.UNKNOWN)


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


def awaits_repetition(status: ChangePodStatus) -> bool:
    """Whether it is not known yet if the server runs the first check again."""
    return any(each.repeated and not each.handle and each.state == CheckState.RUNNING for each in status.checks)


def is_of_this_run(entry: CheckResult, result: Pass | Fail) -> bool:
    """Whether a callback is surely about the present run of the check that has this entry."""
    return not entry.repeated or result.newest_rule > entry.newest_rule > 0


def with_doubtful_pass(status: ChangePodStatus, name: str, phase: Phase) -> ChangePodStatus:
    """The status after a callback that passes a check which runs again, and has no rules. The server sends such a
    callback also if the time of the check expired there, and polls say `fail` then."""
    checks = tuple(
        msgspec.structs.replace(each, reason=DOUBTFUL) if (each.name, each.phase) == (name, phase) else each
        for each in status.checks
    )
    return msgspec.structs.replace(status, checks=checks)
