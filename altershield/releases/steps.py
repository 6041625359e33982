"""A release in steps as people see it: its steps, their times, and the sentences about them. Pure functions.

Gatekeeper, reconciler and commands share the sentences.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from altershield.api.change_workload import ChangeWorkload
from altershield.api.rollout import ENDED, PassedStep, Phase, Rollout, RolloutStatus, Step, WaitingFor
from altershield.rollout.steps import next_step, step_pods, steps_of
from kube_base.times import rfc3339

_BEFORE_SOAK = (Phase.HELD, Phase.ROLLING, Phase.VERIFYING, Phase.FINISHING)
_VERIFIED = (Phase.SOAKING, Phase.WAITING_FOR_APPROVAL, Phase.DONE)


class StepState(StrEnum):
    """The state of a step that is not the present one. The state of the present step is its phase."""

    PASSED = "Passed"
    SKIPPED = "Skipped"
    """It has no more pods than an earlier step."""
    PENDING = "Pending"


@dataclass(frozen=True, slots=True)
class StepView:
    """A step of a release. Times are in Unix seconds; 0: not known yet."""

    number: int
    pods: int
    """How many pods have the version in this step, with the present replicas."""
    state: str
    """A `StepState`, or the phase of the present step."""
    present: bool
    begin: int = 0
    end: int = 0
    soak_seconds: int = 0
    approval: bool = False
    """Whether a person has to promote the release after the step."""
    promoted_by: str = ""
    nodes: str = ""
    """The labels of the nodes whose pods the step has; empty if it has any pods. `pods` is 0 until it begins."""

    @property
    def taken(self) -> bool:
        """Whether the release has begun this step."""
        return self.present or self.state == StepState.PASSED


def in_steps(status: RolloutStatus) -> bool:
    """Whether the release is made in steps, and has not come to the end of them."""
    return bool(status.phase) and status.phase not in ENDED


def views(change: ChangeWorkload, replicas: int) -> tuple[StepView, ...]:
    """All steps of the release; empty if it is not made in steps."""
    rollout, status = change.spec.policy.rollout, change.status.rollout
    if rollout is None or not status.phase:
        return ()
    passed = {each.step: each for each in status.passed_steps}
    coming = set(_following(rollout, status.step, replicas))
    return tuple(
        _view(rollout, status, number, replicas, passed.get(number), coming=number in coming)
        for number in range(1, len(steps_of(rollout)) + 1)
    )


def _view(
    rollout: Rollout, status: RolloutStatus, number: int, replicas: int, passed: PassedStep | None, *, coming: bool
) -> StepView:
    step, pods = steps_of(rollout)[number - 1], step_pods(rollout, number, replicas)
    soak, approval = (0, False) if status.full else (step.soak_seconds, step.approval)
    nodes = labels_text(step)
    if passed is not None:
        times = passed.begin_time_unix, passed.end_time_unix
        return StepView(number, passed.pods, StepState.PASSED, False, *times, soak, approval, passed.promoted_by, nodes)
    if number == status.step:
        return StepView(number, status.pods, status.phase, True, status.step_time_unix, 0, soak, approval, nodes=nodes)
    state = StepState.PENDING if coming else StepState.SKIPPED
    return StepView(number, pods, state, False, soak_seconds=soak, approval=approval, nodes=nodes)


def labels_text(step: Step) -> str:
    """The labels of the nodes that a step selects, as in `kubectl get nodes -l`; empty if it selects none."""
    return ",".join(f"{key}={value}" for key, value in sorted(step.node_selector.items()))


def _following(rollout: Rollout, number: int, replicas: int) -> Iterator[int]:
    """The numbers of the steps after this one, without those that are skipped."""
    while number < len(steps_of(rollout)):
        number = next_step(rollout, number, replicas)
        yield number


def sentence(status: RolloutStatus) -> str:
    """Where the release is, in one line, for example `step 2 of 4: 3 of 5 pods are verified`."""
    waits = [f"it waits: {each}" for each in reasons(status)]
    return "; ".join([f"{step_text(status)}: {_phase(status)}", *waits])


def step_text(status: RolloutStatus) -> str:
    """`step 2 of 4`."""
    return f"step {status.step} of {status.steps}"


def _phase(status: RolloutStatus) -> str:
    match status.phase:
        case Phase.HELD:
            return "no further pod gets the version"
        case Phase.ROLLING:
            return f"{status.updated} of {status.pods} pods have the version"
        case Phase.VERIFYING:
            return f"{status.passed} of {status.pods} pods are verified"
        case Phase.SOAKING:
            own = "its pod has" if status.pods == 1 else f"its {status.pods} pods have"
            return f"{own} to stay verified until {rfc3339(status.soak_end_time_unix)}"
        case Phase.WAITING_FOR_APPROVAL:
            own = "its pod is" if status.pods == 1 else f"its {status.pods} pods are"
            return f"{own} verified, and a person has to promote the release"
        case Phase.FINISHING:
            return f"the remaining pods are replaced, {status.updated} of {status.pods} have the version"
        case Phase.DONE:
            return "all steps have passed"
        case Phase.STOPPED:
            return f"stopped, {status.updated} of {status.pods} pods have the version"
        case Phase.ABORTED:
            return "another version was released, or this one was rolled back"
        case unknown:  # of a newer release of AlterShield
            return unknown


def reasons(status: RolloutStatus) -> list[str]:
    """Why the release does not proceed, or will not after this step; one sentence for each reason."""
    held = (WaitingFor.PERSON,) if is_held(status) and WaitingFor.PERSON not in status.waiting_for else ()
    return [_reason(each, status) for each in (*status.waiting_for, *held)]


def is_held(status: RolloutStatus) -> bool:
    """Whether a person holds the release, which may not have come to the end of its step yet."""
    return in_steps(status) and (bool(status.held_by) or WaitingFor.PERSON in status.waiting_for)


def _reason(waiting_for: str, status: RolloutStatus) -> str:
    match waiting_for:
        case WaitingFor.PERSON:
            return f"{status.held_by or 'a person'} holds the release until somebody promotes it"
        case WaitingFor.PAUSED:
            return "somebody paused the rollout of the workload"
        case WaitingFor.QUOTA:
            return "a ResourceQuota refuses a further pod"
        case WaitingFor.EVICTION:
            return "a PodDisruptionBudget or a node refuses the eviction of an old pod"
        case WaitingFor.NODE:
            return "a node that is not ready has a pod of this step: repair it or delete it"
        case WaitingFor.NODE_SELECTOR:
            return (
                "no ready node with the labels of its nodeSelector has a pod of the workload: label one, or promote "
                "the release, which skips the step"
            )
        case WaitingFor.TERMINATION:
            return "a pod that does not end keeps the controller from creating the pod in its place"
        case WaitingFor.WRITE:
            return "the API server refuses to change the workload"
        case WaitingFor.WINDOW | WaitingFor.FREEZE | WaitingFor.LIMIT:
            return f"a release gate is closed: {', '.join(status.gates)}"
        case WaitingFor.CHECK:
            return "a check before this step has not passed"
        case unknown:  # of a newer release of AlterShield
            return unknown


def waits_for_person(status: RolloutStatus) -> bool:
    """Whether the release goes on only after a person promotes it, or labels nodes."""
    return status.phase == Phase.WAITING_FOR_APPROVAL or is_held(status) or lacks_nodes(status)


def lacks_nodes(status: RolloutStatus) -> bool:
    """Whether the present step selects no node that has a pod of the workload."""
    return in_steps(status) and WaitingFor.NODE_SELECTOR in status.waiting_for


def has_passed(status: RolloutStatus, number: int) -> bool:
    """Whether this step has passed. A step that was skipped has passed with the next one."""
    return status.phase == Phase.DONE or any(each.step >= number for each in status.passed_steps)


def is_verified(status: RolloutStatus) -> bool:
    """Whether all pods of the present step are verified."""
    return status.phase in _VERIFIED or (status.phase == Phase.HELD and status.passed >= status.pods > 0)


def earliest_end(change: ChangeWorkload, replicas: int, now: float) -> int:
    """When the release ends if all its pods come up and pass at once, and nobody has to promote it, in Unix seconds; 0
    if it is not under way in steps. Only the soaks take time."""
    rollout, status = change.spec.policy.rollout, change.status.rollout
    if rollout is None or not in_steps(status) or status.phase == Phase.STOPPED:
        return 0
    own = steps_of(rollout)[status.step - 1].soak_seconds if 0 < status.step <= len(steps_of(rollout)) else 0
    at = now
    if status.phase == Phase.SOAKING:
        at = max(now, status.soak_end_time_unix)
    elif status.phase in _BEFORE_SOAK and not status.full:
        at = now + own
    later = 0 if status.full else sum(_soak(rollout, each) for each in _following(rollout, status.step, replicas))
    return int(at + later)


def plan(rollout: Rollout, replicas: int) -> list[StepView]:
    """The steps of a release that has not begun, for a workload with these replicas."""
    coming = set(_following(rollout, 0, replicas))
    made = []
    for number, step in enumerate(steps_of(rollout), 1):
        state = StepState.PENDING if number in coming else StepState.SKIPPED
        pods = step_pods(rollout, number, replicas)
        soak, nodes = step.soak_seconds, labels_text(step)
        made.append(StepView(number, pods, state, False, soak_seconds=soak, approval=step.approval, nodes=nodes))
    return made


def approvals(planned: Iterable[StepView]) -> int:
    """How many of the steps end with a promotion by a person."""
    return sum(each.approval for each in planned if each.state != StepState.SKIPPED)


def least_seconds(rollout: Rollout, replicas: int) -> int:
    """The seconds that the soaks of a release take: it cannot be shorter, unless a person promotes it."""
    return sum(_soak(rollout, each) for each in _following(rollout, 0, replicas))


def _soak(rollout: Rollout, number: int) -> int:
    return steps_of(rollout)[number - 1].soak_seconds
