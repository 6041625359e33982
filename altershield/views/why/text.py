"""An explanation as lines for people. Pure functions."""

from collections.abc import Iterable, Iterator, Sequence

from altershield.releases.release import By
from altershield.releases.texts import ONLY_REPAIRS
from altershield.views import permission
from altershield.views.durations import age
from altershield.views.names import printable, resource_name
from altershield.views.releases import tree
from altershield.views.why.model import (
    Advice,
    BlockingPod,
    CheckRun,
    ClosedGate,
    EarlierVersion,
    Pause,
    PodWords,
    ReleaseExplanation,
    Suspension,
)
from altershield.workloads import BY_KIND
from kube_base.resources import GroupKind
from kube_base.times import unix

_MAX_PODS = 8
_MAX_CHECKS = 6
_MAX_GATES = 8
_MAX_ACTIONS = 4
_JUDGES = {
    By.PERSON: "a person",
    By.SERVER: "the AlterShield server",
    By.HEALTH: "AlterShield: pods did not come up in time, or did not stay up",
}

Field = tuple[str, str]


def lines(of: ReleaseExplanation) -> list[str]:
    """The lines about one workload."""
    now, workload = unix(of.time), of.workload
    resource = BY_KIND[GroupKind(workload.api_version.rpartition("/")[0], workload.kind)].resource
    name = resource_name(resource, workload.name)
    found = [f"{name} in namespace {workload.namespace}", *_fields(_about(of, now))]
    if of.steps is not None:
        found += tree.lines(of.steps, name, of.version, now)
    for title, pods in (
        ("Failed pods", of.failed_pods),
        ("Pods that are down", of.down_pods),
        ("Pods that restarted", of.restarted_pods),
    ):
        found += _pods(title, pods)
    found += [*_decisions(of, now), *(_earlier(each, now) for each in of.earlier), *_advice(of.advice)]
    return [printable(line) for line in found]


def _about(of: ReleaseExplanation, now: float) -> Iterator[Field]:
    if of.waits:
        yield "State", of.waits
        yield "Version", _version(of)
    else:
        yield "State", f"{of.state} since {_time(of.since, now)}"
        yield "Version", f"{_version(of)}, released {_time(of.released, now)}"
    if of.suspension is not None:
        yield "Releases", _suspension(of.suspension, now)
    if not of.waits:
        yield "Reason", of.reason or "none"
    if of.restored_fields:
        yield "Fields", of.restored_fields
    if of.policy is not None:
        yield "Policy", of.policy.only or f"{of.policy.namespace}/{of.policy.name}"
    if of.not_settled:
        yield "Settled", f"no: {of.not_settled}"
    if of.pause is not None:
        yield "Rollout", f"paused by AlterShield {_pause_end(of.pause, now)}"
    if judge := _JUDGES.get(By(of.failed_by)):
        yield "Failed by", judge
    yield from _checks(of.checks)
    yield from _blocking(of.blocking_pods, now)
    yield from _gates(of.gates)


def _version(of: ReleaseExplanation | EarlierVersion) -> str:
    """The version, with its images if they are known."""
    return f"{of.version} ({of.images})" if of.images else of.version


def _suspension(suspension: Suspension, now: float) -> str:
    once = "the next release passes, because it has the label ignored-suspend; others are denied"
    since = f" since {_time(suspension.since, now)}" if suspension.since else ""
    return f"suspended{since}: {once if suspension.next_passes else ONLY_REPAIRS}"


def _pause_end(pause: Pause, now: float) -> str:
    """When the pause of the rollout ends, and what follows."""
    if pause.until is None:
        return "until a person decides, or another version is released"
    then = "it continues with this version" if pause.continues else "the last version that passed is released again"
    left = unix(pause.until) - now
    return f"until {pause.until} ({f'in {age(left)}' if left > 0 else 'now'}), when {then}"


def _checks(checks: Sequence[CheckRun]) -> Iterator[Field]:
    for index, each in enumerate(checks[:_MAX_CHECKS]):
        reason = f": {each.reason}" if each.reason else ""
        yield ("" if index else "Checks"), f"{each.name} ({each.phase}) of {each.batch}: {each.state}{reason}"
    if len(checks) > _MAX_CHECKS:
        yield "", f"and {len(checks) - _MAX_CHECKS} more; kubectl get changepods -o yaml shows them"


def _blocking(pods: Sequence[BlockingPod], now: float) -> Iterator[Field]:
    """The pods for which the controller waits."""
    for index, pod in enumerate(pods[:_MAX_PODS]):
        words = f" ({pod.message})" if pod.message else ""
        text = f"pod {pod.pod} of an older version, which is not ready{words}; it blocks the rollout since "
        yield ("" if index else "Waits for"), text + _time(pod.since, now)
    if pods:
        yield "", "AlterShield deletes such a pod when it is overdue, but not if it may have been up before"


def _gates(closed: Sequence[ClosedGate]) -> Iterator[Field]:
    for index, each in enumerate(closed[:_MAX_GATES]):
        yield ("" if index else "Gates"), ("" if each.enforced else "only warns: ") + each.message
    if len(closed) > _MAX_GATES:
        yield "", f"and {len(closed) - _MAX_GATES} more"


def _pods(title: str, pods: Sequence[PodWords]) -> list[str]:
    if not pods:
        return []
    width = max(len(each.pod) for each in pods[:_MAX_PODS])
    found = [f"{title}:", *(f"  {each.pod.ljust(width)}   {each.message}" for each in pods[:_MAX_PODS])]
    return found + ([f"  and {len(pods) - _MAX_PODS} more"] if len(pods) > _MAX_PODS else [])


def _decisions(of: ReleaseExplanation, now: float) -> list[str]:
    found = []
    if of.request is not None:
        found.append(f"  pending: {of.request.verb} by {of.request.by}; a reconciler has not answered it yet")
    for each in of.decisions[:_MAX_ACTIONS]:
        reason = f" ({each.reason})" if each.reason else ""
        ago, by = age(max(0.0, now - unix(each.time))), each.by or "an unnamed user"
        found.append(f"  {ago} ago: {each.verb} by {by}{reason}: {each.result}: {each.outcome}")
    return ["Last actions:", *found] if found else []


def _earlier(each: EarlierVersion, now: float) -> str:
    if each.denied:
        return f"Version {_version(each)} is denied: {each.reason}"
    return f"Version {_version(each)} failed at {_time(each.since, now)}: {each.reason}"


def own_advice(advice: Sequence[Advice]) -> list[Advice]:
    """What this user may do, as far as the API server says."""
    return [each for each in advice if each.allowed is not False]


def others_advice(advice: Sequence[Advice]) -> list[tuple[str, list[Advice]]]:
    """What this user may not do: who may, in words, and the commands."""
    refused = [each for each in advice if each.allowed is False]
    return [(who, [each for each in refused if _who(each) == who]) for who in dict.fromkeys(map(_who, refused))]


def _advice(advice: Sequence[Advice]) -> Iterator[str]:
    own, others = own_advice(advice), others_advice(advice)
    yield "What to do:" if own else "What to do: nothing" if not others else "What to do: ask somebody who may"
    yield from _commands(own)
    for who, commands in others:
        yield f"{who}:"
        yield from _commands(commands)


def _who(advice: Advice) -> str:
    """Who may run a command that this user may not run."""
    others = f"Users other than {' and '.join(advice.other_than)}" if advice.other_than else "Others"
    return f"{others} may run, with {permission.role(advice.role, advice.role_namespace)}"


def _commands(advice: Sequence[Advice]) -> Iterator[str]:
    for each in advice:
        yield from (f"  # {each.when}", f"  {each.command}")


def _fields(fields: Iterable[Field]) -> list[str]:
    return [f"{f'{title}:' if title else '':<11}{text}" for title, text in fields]


def _time(at: str | None, now: float) -> str:
    return f"{at} ({age(max(0.0, now - unix(at)))} ago)" if at else "an unknown time"
