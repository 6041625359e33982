"""Repeats the check of an AlterShield server before a batch, on the same node. Pure functions."""

import msgspec

from altershield.api.change_pod import ChangePod, ChangePodStatus, PodState
from altershield.api.check_results import CheckResult, CheckState
from altershield.api.check_specs import Phase
from altershield.api.condition_types import Giver
from altershield.api.meta import plain_time, set_condition
from altershield.api.pod_verdicts import Verdict
from reconciler.cluster.verdicts import failed_by, held_by, verified


def is_repeatable(change_pod: ChangePod) -> bool:
    """Whether the server can run its check before the batch again, and the batch failed or waits only because of this
    check.

    The server refuses a repetition after the batch was finished there. The batch is finished there if a poll found the
    failure, which then has no rules, and in the phase Post.
    """
    status = change_pod.status
    first = _first(status)
    if first is None or not (first.state == CheckState.UNKNOWN or (first.state == CheckState.FAILED and first.rules)):
        return False
    if any(each.state != CheckState.PASSED or each.phase != Phase.PRE for each in status.checks if each is not first):
        return False
    if any(each.verdict not in ("", Verdict.PASS) for each in status.pod_results):
        return first.state == CheckState.FAILED and failed_by(status, change_pod) is Giver.SERVER
    return bool(held_by(change_pod))


def repeated(change_pod: ChangePod, now: float) -> ChangePodStatus:
    """The status in which the check is to run again. It is stored before the request is sent to the server. `now` is in
    Unix seconds."""
    status, first = change_pod.status, _first(change_pod.status)
    if first is None:
        return status
    again = CheckResult(
        first.name,
        first.phase,
        CheckState.RUNNING,
        start_time=plain_time(now),
        start_time_unix=int(now),
        newest_rule=first.newest_rule,
        repeated=True,
    )
    wanted = msgspec.structs.replace(
        status,
        status=PodState.PRE_WAIT,
        message="",
        pod_results=tuple(each for each in status.pod_results if each.verdict in ("", Verdict.PASS)),
        checks=tuple(again if each is first else each for each in status.checks),
        retry_time_unix=int(now),
    )
    under_way = verified(wanted, change_pod, Giver.SERVER)
    return msgspec.structs.replace(wanted, conditions=set_condition(wanted.conditions, under_way, now))


def _first(status: ChangePodStatus) -> CheckResult | None:
    """The entry of the server's check before the batch, if the batch has a node."""
    node = status.change_pod_id
    return next((each for each in status.checks if node and (each.phase, each.handle) == (Phase.PRE, node)), None)
