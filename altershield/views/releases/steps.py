"""The steps of a release as a tree. Pure functions."""

from collections.abc import Iterator, Sequence

from altershield.api.change_pod import ChangePod, PodState
from altershield.api.change_workload import ChangeWorkload
from altershield.api.check_results import worst_states
from altershield.api.check_specs import CheckPhase
from altershield.api.condition_types import ConditionType
from altershield.api.meta import find_condition
from altershield.api.rollout import Phase
from altershield.releases import steps
from altershield.releases.enforcement import only_text
from altershield.releases.steps import StepState, StepView
from altershield.views.durations import age
from altershield.views.names import printable, workload_name
from altershield.views.releases.model import Release
from kube_base.times import rfc3339

_DIGITS = 12  # of a version
_STATE_WIDTH = 18


def has_steps(release: Release) -> bool:
    """Whether this is the present release of its workload, and its policy has steps that are held or observed."""
    return _of(release) is not None or _observed(release) is not None


def tree(release: Release, batches: Sequence[ChangePod], now: float, program: str) -> list[str]:
    """The steps of a release, what it waits for, its earliest end, and the command that promotes it. Empty if it is
    not the present release, or has no steps. If its policy only observes or warns: the steps that it would take, and
    what would have become of them. `batches`: its ChangePods; `program`: the beginning of the
    command."""
    metadata = release.workload.metadata
    name = workload_name(release.workload.group_kind, metadata.name)
    watched = _observed(release)
    if watched is not None:
        return [printable(line) for line in _would_be(watched, release.workload.replicas, name)]
    change = _of(release)
    if change is None:
        return []
    lines = [f"Steps of {name}, version {release.version[:_DIGITS]}:"]
    shown = steps.views(change, release.workload.replicas)
    for each in shown:
        last = each is shown[-1]
        lines.append(f"{'└─' if last else '├─'} {_line(each, change, now)}".rstrip())
        checks = _check_states(_batches_in(each, batches)) if each.taken else []
        lines += [f"{'  ' if last else '│ '}      checks: {', '.join(checks)}"] if checks else []
    after = _check_states([each for each in batches if each.spec.phase == CheckPhase.POST_RELEASE])
    lines += [f"After the release: {', '.join(after)}"] if after else []
    lines += _about(release, change, batches, now, program)
    return [printable(line) for line in lines]


def _of(release: Release) -> ChangeWorkload | None:
    """The ChangeWorkload of a present release in steps."""
    if release.stored is None or release.pending or not release.present:
        return None
    change = release.stored.release
    return change if change.status.rollout.phase and change.spec.policy.rollout is not None else None


def _observed(release: Release) -> ChangeWorkload | None:
    """The ChangeWorkload of a present release whose policy has steps, and only observes or warns."""
    if release.stored is None or release.pending or not release.present:
        return None
    change = release.stored.release
    policy = change.spec.policy
    return change if policy.rollout is not None and only_text(policy) and not change.status.rollout.phase else None


def _would_be(change: ChangeWorkload, replicas: int, name: str) -> Iterator[str]:
    policy = change.spec.policy
    if policy.rollout is None:
        return
    yield f"Steps of {name} with mode enforce; {only_text(policy)}, so nothing is held:"
    for each in steps.plan(policy.rollout, replicas):
        if each.state == StepState.SKIPPED:
            continue
        count = f"nodes {each.nodes}" if each.nodes else "1 pod" if each.pods == 1 else f"{each.pods} pods"
        yield f"   {each.number:<3} {count:<10} {'; '.join(_soak(each))}".rstrip()
    known = find_condition(change.status.conditions, ConditionType.STEPS_OBSERVED)
    yield f"{'Outcome:':<14}{known.message if known is not None else 'the release has not ended'}"


def _line(step: StepView, change: ChangeWorkload, now: float) -> str:
    count = "1 pod" if step.pods == 1 else f"{step.pods} pods" if step.pods or not step.nodes else "?"
    return f"{step.number:<3} {count:<10} {step.state:<{_STATE_WIDTH}} {'; '.join(_details(step, change, now))}"


def _details(step: StepView, change: ChangeWorkload, now: float) -> Iterator[str]:
    status = change.status.rollout
    if step.nodes:
        yield f"nodes {step.nodes}"
    if step.state == StepState.PASSED:
        yield f"{rfc3339(step.begin)} to {rfc3339(step.end)} ({age(step.end - step.begin)})"
        if step.promoted_by:
            yield f"promoted by {step.promoted_by}"
    elif step.present:
        yield f"{status.updated} updated, {status.passed} passed"
        if status.phase == Phase.SOAKING:
            yield f"soak until {rfc3339(status.soak_end_time_unix)}{_left(status.soak_end_time_unix, now)}"
        elif status.phase not in (Phase.WAITING_FOR_APPROVAL, Phase.STOPPED, Phase.DONE, Phase.ABORTED):
            yield from _soak(step)
        if step.approval and status.phase not in (Phase.STOPPED, Phase.DONE, Phase.ABORTED):
            yield "approval by a person"
    elif step.state == StepState.PENDING:
        yield from _soak(step)
        if step.approval:
            yield "approval by a person"


def _soak(step: StepView) -> Iterator[str]:
    if step.soak_seconds:
        yield f"soak {age(step.soak_seconds)}"


def _left(at: int, now: float) -> str:
    return f" (in {age(at - now)})" if at > now else " (now)"


def _about(
    release: Release, change: ChangeWorkload, batches: Sequence[ChangePod], now: float, program: str
) -> Iterator[str]:
    status = change.status.rollout
    for index, each in enumerate(steps.reasons(status)):
        yield f"{'Waits for:' if not index else '':<14}{each}"
    yield from (f"{'Checks say:':<14}{each}" for each in _said(batches))
    end = steps.earliest_end(change, release.workload.replicas, now)
    if end:
        yield f"{'Earliest end:':<14}{rfc3339(end)}{_left(end, now)}, without waiting for pods and for people"
    if steps.waits_for_person(status):
        yield f"{'To go on:':<14}{promote_command(release, program)}"


def promote_command(release: Release, program: str) -> str:
    """The command that promotes the release."""
    metadata = release.workload.metadata
    return f"{program} promote {release.workload.kind.lower()}/{metadata.name} -n {metadata.namespace}"


def _batches_in(step: StepView, batches: Sequence[ChangePod]) -> list[ChangePod]:
    """The batches that were created in this step."""
    end = step.end or float("inf")
    return [
        each
        for each in batches
        if step.begin <= each.spec.create_time_unix < end and each.spec.phase != CheckPhase.POST_RELEASE
    ]


def _check_states(batches: Sequence[ChangePod]) -> list[str]:
    """The worst state of each check in these batches, as `errors/PostBatch Passed`."""
    worst = worst_states(
        (each.name, batch.spec.phase or each.phase, each.state) for batch in batches for each in batch.status.checks
    )
    return [f"{name}/{phase} {state}" for (name, phase), state in sorted(worst.items())]


def _said(batches: Sequence[ChangePod]) -> Iterator[str]:
    """What the checks said that are tried again before the present step."""
    for each in batches:
        verified = find_condition(each.status.conditions, ConditionType.VERIFIED)
        if each.spec.phase and each.status.status != PodState.EXECUTE_DONE and verified is not None:
            yield verified.message
