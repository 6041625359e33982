"""Repeats the check of an AlterShield server before a batch, on the same node. Pure functions."""

import msgspec

from altershield.api.change_pod import ChangePod, ChangePodStatus, PodState
from altershield.api.check_results import CheckResult, CheckState
from altershield.api.condition_types import Giver
from altershield.api.meta import plain_time, set_condition
from altershield.api.pod_verdicts import Verdict
from reconciler.cluster.verdicts import first_check, verified


def repeated(change_pod: ChangePod, now: float) -> ChangePodStatus:
    """The status in which the check is to run again. It is stored before the request is sent to the server. `now` is in
    Unix seconds."""
    status, first = change_pod.status, first_check(change_pod.status)
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
