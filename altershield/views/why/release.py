"""What `altershield why` prints about a workload: the state, the reason, the pods, and what to do. Pure functions."""

from collections.abc import Iterator, Sequence

from altershield import releases
from altershield.api.change_pod import ChangePod
from altershield.api.change_workload import ChangeWorkload, WorkloadState
from altershield.api.check_results import CheckState
from altershield.api.condition_types import ConditionType
from altershield.api.meta import find_condition
from altershield.api.policy import OnPauseEnd
from altershield.gates import texts
from altershield.gates.release import Closed
from altershield.releases.enforcement import only_text
from altershield.releases.release import By
from altershield.releases.texts import ONLY_REPAIRS, why_failed
from altershield.views.durations import age
from altershield.views.names import printable, workload_name
from altershield.views.releases.model import Release, waits
from altershield.views.releases.steps import tree
from altershield.views.why.advice import about_blocking, about_gates, about_release
from altershield.workloads.pods import Pod
from altershield.workloads.workload import Workload
from kube_base.times import rfc3339, unix

_MAX_PODS = 8
_MAX_CHECKS = 6
_MAX_GATES = 8
_MAX_ACTIONS = 4
_JUDGES = {
    By.PERSON: "a person",
    By.SERVER: "the AlterShield server",
    By.HEALTH: "AlterShield: pods did not come up in time, or did not stay up",
}


def explain(
    shown: Sequence[Release],
    batches: Sequence[ChangePod],
    now: float,
    program: str = "altershield",
    blocking: Sequence[Pod] = (),
    closed: Sequence[Closed] = (),
) -> list[str]:
    """The lines about one workload. `shown`: its releases; `batches`: the ChangePods of the present one; `now`: Unix
    seconds; `program`: the beginning of the commands to paste; `blocking`: the pods of older versions for which the
    workload's controller waits; `closed`: the gates that are closed for the next release."""
    present = next((each for each in shown if each.present), shown[-1])
    workload = present.workload
    lines = [f"{workload_name(workload.group_kind, workload.metadata.name)} in namespace {workload.metadata.namespace}"]
    change = present.stored.release if present.stored is not None and not present.pending else None
    if change is None:
        lines += _fields([("State", waits(present)), ("Version", present.version)])
        lines += _fields([*_admission(workload, now), *_blocking(blocking, 0, now), *_gates(closed)])
    else:
        lines += _fields(_about(change, present, batches, now))
        lines += _fields([*_blocking(blocking, change.spec.create_time_unix, now), *_gates(closed)])
        lines += tree(present, batches, now, program)
        lines += _pods(change)
        lines += _actions(change, now)
    for other in shown:
        if other is not present and other.stored is not None:
            lines += _earlier(other.stored.release, now)
    denied = [each.stored.release for each in shown if each is not present and each.stored is not None]
    advice = [
        *about_blocking(blocking[:_MAX_PODS]),
        *about_gates(closed, workload, program),
        *about_release(change, workload, program, denied=any(map(releases.rolled_back, denied))),
    ]
    lines.append("What to do:" if advice else "What to do: nothing")
    for each in advice:
        lines += [f"  # {each.when}", f"  {each.command}"]
    return [printable(line) for line in lines]


def _about(
    change: ChangeWorkload, shown: Release, batches: Sequence[ChangePod], now: float
) -> Iterator[tuple[str, str]]:
    workload = shown.workload
    since = releases.since(change)
    yield "State", f"{releases.state(change)} since {_time(since, now)}"
    yield "Version", f"{releases.version_of(change)}, released {_time(change.spec.create_time_unix, now)}"
    yield from _admission(workload, now)
    yield "Reason", shown.message or "none"
    left = find_condition(change.status.conditions, ConditionType.RESTORED_FIELDS)
    if left is not None and left.is_true:
        yield "Fields", left.message
    policy = change.spec.policy
    if policy.name:
        only = f"{only_text(policy)}, so nothing is suspended, paused or rolled back" if only_text(policy) else ""
        yield "Policy", only or f"{policy.namespace}/{policy.name}"
    settling = releases.unsettled(change)
    if settling is not None:
        yield "Settled", f"no: {settling.message}"
    if workload.held:
        yield "Rollout", f"paused by AlterShield {_pause_end(change, now)}"
    judge = _JUDGES.get(releases.failed_by(change))
    if judge is not None:
        yield "Failed by", judge
    checks = [
        f"{each.name} ({batch.spec.phase or each.phase}) of {batch.metadata.name}: {each.state}"
        + (f": {each.reason}" if each.reason else "")
        for state in (CheckState.FAILED, CheckState.UNKNOWN, CheckState.RUNNING)
        for batch in batches
        for each in batch.status.checks
        if each.state == state
        and not (state is CheckState.UNKNOWN and not batch.status.change_pod_id and not each.handle)
    ]
    for index, text in enumerate(checks[:_MAX_CHECKS]):
        yield ("" if index else "Checks"), text
    if len(checks) > _MAX_CHECKS:
        yield "", f"and {len(checks) - _MAX_CHECKS} more; kubectl get changepods -o yaml shows them"


def _pause_end(change: ChangeWorkload, now: float) -> str:
    """When the pause of the rollout ends, and what follows."""
    end = change.status.pause
    if not end.end_time_unix or end.ended:
        return "until a person decides, or another version is released"
    continues = change.spec.policy.on_pause_end is OnPauseEnd.CONTINUE
    then = "it continues with this version" if continues else "the last version that passed is released again"
    left = end.end_time_unix - now
    return f"until {rfc3339(end.end_time_unix)} ({f'in {age(left)}' if left > 0 else 'now'}), when {then}"


def _admission(workload: Workload, now: float) -> Iterator[tuple[str, str]]:
    if workload.suspended:
        since = int(workload.suspended) if workload.suspended.isdecimal() else 0
        once = "the next release passes, because it has the label ignored-suspend; others are denied"
        text = once if workload.ignores_suspension else ONLY_REPAIRS
        yield "Releases", f"suspended{f' since {_time(since, now)}' if since else ''}: {text}"


def _blocking(pods: Sequence[Pod], released: int, now: float) -> Iterator[tuple[str, str]]:
    """The pods for which the controller waits. `released`: when the present version was released, Unix seconds."""
    for index, pod in enumerate(pods[:_MAX_PODS]):
        since = max(released, pod.ready_at or pod.metadata.created)
        words = f" ({pod.trouble})" if pod.trouble is not None else ""
        text = f"pod {pod.metadata.name} of an older version, which is not ready{words}; it blocks the rollout since "
        yield ("" if index else "Waits for"), text + _time(since, now)
    if pods:
        yield "", "AlterShield deletes such a pod when it is overdue, but not if it may have been up before"


def _gates(closed: Sequence[Closed]) -> Iterator[tuple[str, str]]:
    """The gates that are closed for the next release, or the next step of this one."""
    for index, each in enumerate(closed[:_MAX_GATES]):
        yield ("" if index else "Gates"), ("" if each.enforced else "only warns: ") + texts.sentence(each)
    if len(closed) > _MAX_GATES:
        yield "", f"and {len(closed) - _MAX_GATES} more"


def _pods(change: ChangeWorkload) -> list[str]:
    failed = [(each.pod, why_failed(each)) for each in releases.failures(change)]
    known = {pod for pod, _ in failed}
    down = [(each.pod, each.message or "not ready") for each in change.status.down_pods if each.pod not in known]
    restarting = [(each.pod, each.message) for each in change.status.settling.restarting]
    lines = []
    for title, pods in (("Failed pods", failed), ("Pods that are down", down), ("Pods that restarted", restarting)):
        if pods:
            width = max(len(pod) for pod, _ in pods[:_MAX_PODS])
            lines += [f"{title}:", *(f"  {pod.ljust(width)}   {words}" for pod, words in pods[:_MAX_PODS])]
        if len(pods) > _MAX_PODS:
            lines.append(f"  and {len(pods) - _MAX_PODS} more")
    return lines


def _actions(change: ChangeWorkload, now: float) -> list[str]:
    request = change.status.request
    lines = []
    if request is not None:
        lines.append(f"  pending: {request.verb} by {request.by}; a reconciler has not answered it yet")
    for each in reversed(change.status.actions[-_MAX_ACTIONS:]):
        reason = f" ({each.reason})" if each.reason else ""
        ago = age(max(0.0, now - unix(each.time)))
        lines.append(
            f"  {ago} ago: {each.verb} by {each.by or 'an unnamed user'}{reason}: {each.result}: {each.outcome}"
        )
    return ["Last actions:", *lines] if lines else []


def _earlier(change: ChangeWorkload, now: float) -> list[str]:
    """An earlier version that still matters."""
    if releases.rolled_back(change):
        return [f"Version {releases.version_of(change)} is denied: {releases.why(change, current=True)}"]
    if releases.state(change) is WorkloadState.SUSPEND:
        why = releases.why(change, current=True).removeprefix("failed: ")
        return [f"Version {releases.version_of(change)} failed at {_time(releases.since(change), now)}: {why}"]
    return []


def _fields(fields: Iterator[tuple[str, str]] | Sequence[tuple[str, str]]) -> list[str]:
    return [f"{f'{title}:' if title else '':<11}{text}" for title, text in fields]


def _time(at: float, now: float) -> str:
    return f"{rfc3339(at)} ({age(max(0.0, now - at))} ago)" if at else "an unknown time"
