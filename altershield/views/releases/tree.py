"""The steps of a release as a tree. Pure functions."""

from collections.abc import Iterator, Sequence

from altershield.api.change_pod import ChangePod
from altershield.api.rollout import ENDED, Phase
from altershield.releases.steps import StepState
from altershield.views.durations import age
from altershield.views.names import printable, short_version, workload_name
from altershield.views.releases.model import Release
from altershield.views.releases.steps import CheckState, Step, Steps, steps_of
from kube_base.times import unix

_STATE_WIDTH = 19
_AFTER_SOAK = (Phase.WAITING_FOR_APPROVAL, Phase.STOPPED, *ENDED)


def tree(release: Release, batches: Sequence[ChangePod], now: float, program: str) -> list[str]:
    """The steps of a release as in `lines`, and the command that lets it go on. Empty if it is not the present release,
    or has no steps. `batches`: its ChangePods. `program`: the beginning of the command."""
    found = steps_of(release, batches, now)
    if found is None:
        return []
    return [*lines(found, _name(release), release.version, now), *_promote(found, release, program)]


def outlook(release: Release, batches: Sequence[ChangePod], now: float, program: str) -> list[str]:
    """The same as `tree` without the steps that are held: what the release waits for, its earliest end, and the command
    that lets it go on."""
    found = steps_of(release, batches, now)
    if found is None:
        return []
    about = _would_be(found, _name(release)) if found.not_held else _about(found, now)
    return [printable(line) for line in (*about, *_promote(found, release, program))]


def _name(release: Release) -> str:
    return workload_name(release.workload.group_kind, release.workload.metadata.name)


def _promote(found: Steps, release: Release, program: str) -> Iterator[str]:
    if found.waits_for_person:
        metadata = release.workload.metadata
        command = f"{program} promote {release.workload.kind.lower()}/{metadata.name} -n {metadata.namespace}"
        yield f"{'To go on:':<14}{command}"


def lines(found: Steps, name: str, version: str, now: float) -> list[str]:
    """The steps of a release, what it waits for, and its earliest end. If its policy only observes or warns: the steps
    that it would take, and what would have become of them. `name`: of the workload."""
    if found.not_held:
        return [printable(line) for line in _would_be(found, name)]
    shown = [f"Steps of {name}, version {short_version(version)}:"]
    for each in found.steps:
        last = each is found.steps[-1]
        shown.append(f"{'└─' if last else '├─'} {line(each, found, now)}".rstrip())
        shown += [f"{'  ' if last else '│ '}      checks: {checks(each.checks)}"] if each.checks else []
    shown += [f"After the release: {checks(found.after_release)}"] if found.after_release else []
    shown += _about(found, now)
    return [printable(line) for line in shown]


def _would_be(found: Steps, name: str) -> Iterator[str]:
    yield f"Steps of {name} with mode enforce; {found.not_held}:"
    for each in found.steps:
        count = f"nodes {each.nodes}" if each.nodes else _count(each)
        yield f"   {each.number:<3} {count:<10} {'; '.join(_soak(each))}".rstrip()
    yield f"{'Outcome:':<14}{found.outcome}"


def line(step: Step, found: Steps, now: float) -> str:
    """A step: its number, its pods, its state and its times."""
    return f"{step.number:<3} {_count(step):<10} {step.state:<{_STATE_WIDTH}} {'; '.join(_details(step, found, now))}"


def _count(step: Step) -> str:
    return "?" if step.pods is None else "1 pod" if step.pods == 1 else f"{step.pods} pods"


def _details(step: Step, found: Steps, now: float) -> Iterator[str]:
    if step.nodes:
        yield f"nodes {step.nodes}"
    if step.state == StepState.PASSED:
        yield f"{step.began} to {step.ended} ({age(unix(step.ended) - unix(step.began))})"
        if step.promoted_by:
            yield f"promoted by {step.promoted_by}"
    elif step.present:
        yield f"{found.updated} updated, {found.passed} passed"
        if found.phase == Phase.SOAKING:
            yield f"soak until {found.soak_ends}{_left(found.soak_ends, now)}"
        elif found.phase not in _AFTER_SOAK:
            yield from _soak(step)
        if step.approval and found.phase not in (Phase.STOPPED, *ENDED):
            yield "approval by a person"
    elif step.state == StepState.PENDING:
        yield from _soak(step)
        if step.approval:
            yield "approval by a person"


def _soak(step: Step) -> Iterator[str]:
    if step.soak_seconds:
        yield f"soak {age(step.soak_seconds)}"


def _left(at: str | None, now: float) -> str:
    return f" (in {age(unix(at) - now)})" if unix(at) > now else " (now)"


def _about(found: Steps, now: float) -> Iterator[str]:
    for index, each in enumerate(found.waits_for):
        yield f"{'Waits for:' if not index else '':<14}{each}"
    yield from (f"{'Checks say:':<14}{each}" for each in found.checks_say)
    if found.earliest_end:
        left = _left(found.earliest_end, now)
        yield f"{'Earliest end:':<14}{found.earliest_end}{left}, without waiting for pods and for people"


def checks(states: Sequence[CheckState]) -> str:
    """`errors/PostBatch Passed, …`."""
    return ", ".join(f"{each.name}/{each.phase} {each.state}" for each in states)
