"""A workload as a tree: its versions, their steps, their batches and their pods. Pure functions."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from altershield import releases
from altershield.api.change_pod import ChangePod, PodState
from altershield.api.change_workload import ChangeWorkload, WorkloadState
from altershield.api.check_specs import CheckPhase
from altershield.api.condition_types import ConditionType
from altershield.api.meta import find_condition
from altershield.api.names import change_pod_number
from altershield.api.pod_verdicts import PodInfo, Verdict
from altershield.views.durations import age
from altershield.views.names import printable, short_version, workload_name
from altershield.views.releases import tree
from altershield.views.releases.model import Release, waits
from altershield.views.releases.steps import Step, Steps, steps_of
from kube_base.times import unix

_MAX_BATCHES = 8  # of a version or a step
_MAX_PODS = 8  # of a batch

_ENDS: dict[str, str] = {
    PodState.PRE_FAILED: "passed without a check",
    PodState.POST_FAILED: "passed without a check",
    PodState.PRE_TIMEOUT: "passed, the check had no result in time",
    PodState.POST_TIMEOUT: "passed, the check had no result in time",
}
"""How pods without a verdict passed, by the stored word for the end of their batch."""

Batches = Mapping[str, Sequence[ChangePod]]
"""The ChangePods of releases, by the name of the ChangeWorkload."""


class Mark(StrEnum):
    """How a line looks."""

    PLAIN = ""
    GOOD = "good"
    BAD = "bad"


_URGENT = (Mark.BAD, Mark.PLAIN, Mark.GOOD)


@dataclass(frozen=True, slots=True)
class Line:
    text: str
    mark: Mark = Mark.PLAIN
    branch: str = ""
    """What is drawn before the text."""


@dataclass(frozen=True, slots=True)
class _Node:
    line: Line
    children: Sequence["_Node"] = ()


def lines(family: Sequence[Release], batches: Batches, now: float) -> list[Line]:
    """The tree of one workload. `family`: its releases, the oldest first; `now`: Unix seconds."""
    workload = family[0].workload
    name = workload_name(workload.group_kind, workload.metadata.name)
    versions = [_version(each, batches, now) for each in reversed(family)]
    return [Line(printable(name)), *_drawn(versions, "")]


def ended(batch: ChangePod) -> str:
    """How a pod without a verdict passed, whose batch has ended."""
    return _ENDS.get(batch.status.message, "passed")


def _drawn(nodes: Sequence[_Node], indent: str) -> Iterator[Line]:
    for each in nodes:
        last = each is nodes[-1]
        yield Line(printable(each.line.text), each.line.mark, f"{indent}{'└─' if last else '├─'} ")
        yield from _drawn(each.children, f"{indent}{'   ' if last else '│  '}")


def _version(release: Release, batches: Batches, now: float) -> _Node:
    images = f" ({release.images})" if release.images else ""
    head = f"version {short_version(release.version)}{'*' if release.present else ''}{images}"
    if release.stored is None or release.pending:
        return _Node(Line(f"{head}: {waits(release)}"))
    change = release.stored.release
    state, why = releases.state(change), release.message
    line = Line(f"{head}: {state} for {age(now - releases.since(change))}{f', {why}' if why else ''}", mark(state))
    own = sorted(batches.get(change.metadata.name, ()), key=lambda each: change_pod_number(each.metadata.name))
    steps = steps_of(release, own, now)
    children = _steps(steps, own, now) if steps is not None and not steps.not_held else _batches(own)
    return _Node(line, [*children, *_others(change)] if release.present else ())


def _steps(found: Steps, batches: Sequence[ChangePod], now: float) -> list[_Node]:
    """The steps with the batches that were taken in them, and the batches that were taken in none."""
    left, nodes = list(batches), []
    for step in found.steps:
        own = [each for each in left if _is_in(step, each)]
        left = [each for each in left if each not in own]
        said = [_Node(Line(f"checks: {tree.checks(step.checks)}"))] if step.checks else []
        nodes.append(_Node(Line(f"step {tree.line(step, found, now)}".rstrip()), [*said, *_batches(own)]))
    return [*nodes, *_batches(left)]


def _is_in(step: Step, batch: ChangePod) -> bool:
    """Whether the batch was taken in this step."""
    if step.began is None or batch.spec.phase == CheckPhase.POST_RELEASE:
        return False
    end = float("inf") if step.ended is None else unix(step.ended)
    return unix(step.began) <= batch.spec.create_time_unix < end


def _batches(batches: Sequence[ChangePod]) -> list[_Node]:
    """The batches that have not passed, and the newest of the others."""
    passed = [each for each in batches if _batch(each).line.mark is Mark.GOOD]
    hidden = {each.metadata.name for each in passed[: max(0, len(batches) - _MAX_BATCHES)]}
    shown = [_batch(each) for each in batches if each.metadata.name not in hidden]
    more = len(hidden) + max(0, len(shown) - _MAX_BATCHES)
    return [*shown[:_MAX_BATCHES], *([_Node(Line(f"and {more} more batches"))] if more else [])]


def _batch(batch: ChangePod) -> _Node:
    """A batch with its pods; one pod is on its line."""
    number = f"batch {change_pod_number(batch.metadata.name)}"
    if batch.spec.phase:
        verified = find_condition(batch.status.conditions, ConditionType.VERIFIED)
        over = batch.status.status == PodState.EXECUTE_DONE
        said = verified.message if verified is not None else batch.status.status
        bad = verified is not None and verified.status == "False"
        return _Node(Line(f"checks {batch.spec.phase}: {said}", Mark.BAD if bad else Mark.GOOD if over else Mark.PLAIN))
    results = {each.pod: each for each in batch.status.pod_results}
    pods = [_pod(each.pod, results.get(each.pod, each), batch) for each in batch.spec.pod_infos]
    if len(pods) == 1:
        return _Node(Line(f"{number}: {pods[0].text}", pods[0].mark))
    ordered = sorted(pods, key=lambda each: _URGENT.index(each.mark))
    return _Node(Line(f"{number}: {len(pods)} pods", ordered[0].mark), [*_some(ordered)])


def _pod(name: str, result: PodInfo, batch: ChangePod) -> Line:
    if result.verdict and result.verdict != Verdict.PASS:
        return Line(f"{name}  failed: {result.message or result.verdict}", Mark.BAD)
    if result.verdict:
        return Line(f"{name}  passed{f': {result.message}' if result.message else ''}", Mark.GOOD)
    if batch.status.status != PodState.EXECUTE_DONE:
        return Line(f"{name}  is being verified")
    return Line(f"{name}  {ended(batch)}", Mark.GOOD)


def _others(change: ChangeWorkload) -> Iterator[_Node]:
    """The pods that are in no batch, and those that were up and are not any more."""
    down = {each.pod: each.message or "not ready" for each in change.status.down_pods}
    waiting = (each.pod for each in change.status.defense_preparing_pods if each.pod not in down)
    yield from _some([Line(f"{pod}  is down: {words}", Mark.BAD) for pod, words in down.items()])
    yield from _some([Line(f"{pod}  waits for a batch") for pod in waiting])


def _some(found: Sequence[Line]) -> Iterable[_Node]:
    more = [Line(f"and {len(found) - _MAX_PODS} more")] if len(found) > _MAX_PODS else []
    return (_Node(each) for each in (*found[:_MAX_PODS], *more))


def mark(state: str) -> Mark:
    """How a state (`WorkloadState`) looks."""
    match state:
        case WorkloadState.SUCCESS:
            return Mark.GOOD
        case WorkloadState.SUSPEND | WorkloadState.FAILED | WorkloadState.ROLLBACK:
            return Mark.BAD
        case _:
            return Mark.PLAIN
