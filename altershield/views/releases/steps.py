"""The steps of a release, as data. Pure functions."""

from collections.abc import Iterator, Sequence
from typing import Annotated

from altershield.api.change_pod import ChangePod, PodState
from altershield.api.change_workload import ChangeWorkload
from altershield.api.check_results import worst_states
from altershield.api.check_specs import CheckPhase
from altershield.api.condition_types import ConditionType
from altershield.api.meta import find_condition
from altershield.api.rollout import Rollout
from altershield.api.schema import doc
from altershield.releases import steps
from altershield.releases.enforcement import only_text
from altershield.releases.steps import StepState, StepView
from altershield.views.document import Part, Time, time
from altershield.views.releases.model import Release


class CheckState(Part, frozen=True):
    """The worst state of a check in several batches."""

    name: Annotated[str, doc("The name of the check in the DefensePolicy.")]
    phase: Annotated[str, doc("When it runs, as the DefensePolicy says.")]
    state: Annotated[str, doc("`Failed`, `Unknown`, `Running` or `Passed`.")]


class Step(Part, frozen=True):
    """A step of a release."""

    number: Annotated[int, doc("Its number, from 1.")]
    pods: Annotated[int | None, doc("How many pods have the version in this step; null: its nodes say so.")]
    nodes: Annotated[str, doc("The labels of the nodes whose pods it has, as `kubectl get nodes -l` takes them.")]
    state: Annotated[str, doc("`Passed`, `Pending` or `Skipped`; of the present step, its phase.")]
    present: Annotated[bool, doc("Whether the release is in this step.")]
    began: Annotated[Time | None, doc("When it began.")]
    ended: Annotated[Time | None, doc("When it was over.")]
    soak_seconds: Annotated[int, doc("Seconds for which its pods have to stay verified.")]
    approval: Annotated[bool, doc("Whether a person has to promote the release after the step.")]
    promoted_by: Annotated[str, doc("The user who promoted it; may be empty.")]
    checks: Annotated[tuple[CheckState, ...], doc("The checks of its batches.")]


class Steps(Part, frozen=True):
    """The steps of a release, and what it waits for."""

    not_held: Annotated[str, doc("Why the release does not take these steps: its policy only observes. Else empty.")]
    phase: Annotated[str, doc("The phase of the present step, as in `status.rollout.phase`.")]
    updated: Annotated[int, doc("How many pods have the version now.")]
    passed: Annotated[int, doc("How many of them are verified.")]
    soak_ends: Annotated[Time | None, doc("When the soak ends; null: none is under way.")]
    steps: Annotated[tuple[Step, ...], doc("All steps.")]
    after_release: Annotated[tuple[CheckState, ...], doc("The checks after the last step.")]
    waits_for: Annotated[tuple[str, ...], doc("Why the release does not go on.")]
    checks_say: Annotated[tuple[str, ...], doc("What the checks said that run before the present step.")]
    earliest_end: Annotated[Time | None, doc("When it can end, without waiting for pods and for people.")]
    waits_for_person: Annotated[bool, doc("Whether it goes on only after a person promotes it.")]
    outcome: Annotated[str, doc("Of a release that does not take these steps: what would have become of it.")]


def has_steps(release: Release) -> bool:
    """Whether this is the present release of its workload, and its policy has steps that are held or observed."""
    change = _present(release)
    if change is None or change.spec.policy.rollout is None:
        return False
    return bool(change.status.rollout.phase) or bool(only_text(change.spec.policy))


def steps_of(release: Release, batches: Sequence[ChangePod], now: float) -> Steps | None:
    """The steps of a release. None: it is not the present release, or has no steps. If its policy only observes or
    warns: the steps that it would take. `batches`: its ChangePods."""
    change = _present(release)
    rollout = change.spec.policy.rollout if change is not None else None
    if change is None or rollout is None or not has_steps(release):
        return None
    replicas, status = release.workload.replicas, change.status.rollout
    if not status.phase:
        return _observed(change, rollout, replicas)
    after = [each for each in batches if each.spec.phase == CheckPhase.POST_RELEASE]
    return Steps(
        not_held="",
        phase=status.phase,
        updated=status.updated,
        passed=status.passed,
        soak_ends=time(status.soak_end_time_unix),
        steps=tuple(shown_step(each, batches) for each in steps.views(change, replicas)),
        after_release=_check_states(after),
        waits_for=tuple(steps.reasons(status)),
        checks_say=tuple(_said(batches)),
        earliest_end=time(steps.earliest_end(change, replicas, now)),
        waits_for_person=steps.waits_for_person(status),
        outcome="",
    )


def _present(release: Release) -> ChangeWorkload | None:
    """The ChangeWorkload of a present release."""
    if release.stored is None or release.pending or not release.present:
        return None
    return release.stored.release


def _observed(change: ChangeWorkload, rollout: Rollout, replicas: int) -> Steps:
    known = find_condition(change.status.conditions, ConditionType.STEPS_OBSERVED)
    plan = [each for each in steps.plan(rollout, replicas) if each.state != StepState.SKIPPED]
    return Steps(
        not_held=f"{only_text(change.spec.policy)}, so nothing is held",
        phase="",
        updated=0,
        passed=0,
        soak_ends=None,
        steps=tuple(shown_step(each, ()) for each in plan),
        after_release=(),
        waits_for=(),
        checks_say=(),
        earliest_end=None,
        waits_for_person=False,
        outcome=known.message if known is not None else "the release has not ended",
    )


def shown_step(step: StepView, batches: Sequence[ChangePod]) -> Step:
    """A step. `batches`: the ChangePods of its release."""
    return Step(
        number=step.number,
        pods=step.pods if step.pods or not step.nodes else None,
        nodes=step.nodes,
        state=step.state,
        present=step.present,
        began=time(step.begin),
        ended=time(step.end),
        soak_seconds=step.soak_seconds,
        approval=step.approval,
        promoted_by=step.promoted_by,
        checks=_check_states(_batches_in(step, batches)) if step.taken else (),
    )


def _batches_in(step: StepView, batches: Sequence[ChangePod]) -> list[ChangePod]:
    """The batches that were created in this step."""
    end = step.end or float("inf")
    return [
        each
        for each in batches
        if step.begin <= each.spec.create_time_unix < end and each.spec.phase != CheckPhase.POST_RELEASE
    ]


def _check_states(batches: Sequence[ChangePod]) -> tuple[CheckState, ...]:
    """The worst state of each check in these batches."""
    worst = worst_states(
        (each.name, batch.spec.phase or each.phase, each.state) for batch in batches for each in batch.status.checks
    )
    return tuple(CheckState(name, phase, str(state)) for (name, phase), state in sorted(worst.items()))


def _said(batches: Sequence[ChangePod]) -> Iterator[str]:
    """What the checks said that are tried again before the present step."""
    for each in batches:
        verified = find_condition(each.status.conditions, ConditionType.VERIFIED)
        if each.spec.phase and each.status.status != PodState.EXECUTE_DONE and verified is not None:
            yield verified.message
