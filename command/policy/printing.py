"""What `altershield policy check` prints. Pure functions."""

from collections.abc import Iterator

from altershield.api.check_specs import CheckPhase
from altershield.api.policy import DefensePolicySpec, Mode
from altershield.api.rollout import Rollout
from altershield.releases import steps
from altershield.releases.steps import StepState, StepView
from altershield.rollout.obstacles import NO_STEPS
from altershield.rollout.steps import of_kind
from altershield.views.durations import age
from altershield.views.names import printable
from command.policy.checking import Checked

_WHEN = {
    CheckPhase.PRE_RELEASE: "Checks that have to pass before any pod has the version",
    CheckPhase.PRE_BATCH: "Checks that have to pass before each step",
    CheckPhase.POST_RELEASE: "Checks after all pods have passed",
}


def lines(checked: Checked, replicas: int) -> list[str]:
    """The lines about a policy. `replicas`: those of the workload whose release is shown."""
    found = [f"defensepolicy {checked.name}: {f'not accepted: {checked.problem}' if checked.problem else 'accepted'}"]
    if not checked.problem and checked.spec is not None:
        found += _steps(checked.spec, replicas)
        found += _checks(checked.spec)
    return [printable(line) for line in found]


def _steps(spec: DefensePolicySpec, replicas: int) -> Iterator[str]:
    if spec.rollout is None:
        yield "No steps: the workload's own strategy applies."
        return
    match spec.mode:
        case Mode.OBSERVE | Mode.WARN:
            yield f"The mode {spec.mode.value} holds nothing: a release takes no steps. With the mode enforce:"
        case Mode.ENFORCE:
            pass
    if not replicas:
        yield "No steps: a workload with 0 replicas is released as without steps."
        return
    if any(each.node_selector for each in spec.rollout.steps):
        yield from _of_kind(spec.rollout, replicas, f"a DaemonSet on {replicas} nodes", evicts=True)
        yield from _of_kind(spec.rollout, replicas, f"another kind, of {_pods(replicas)}", evicts=False)
    else:
        yield from _plan(spec.rollout, replicas, _pods(replicas))


def _checks(spec: DefensePolicySpec) -> Iterator[str]:
    """The checks that are about no batch of pods."""
    for phase, when in _WHEN.items():
        names = [each.name for each in spec.checks if each.phase is phase]
        if names:
            yield f"{when}: {', '.join(names)}"


def _of_kind(rollout: Rollout, replicas: int, what: str, *, evicts: bool) -> Iterator[str]:
    own = of_kind(rollout, evicts=evicts)
    if own is None:
        yield f"No steps of a release of {what}: {NO_STEPS}."
    else:
        yield from _plan(own, replicas, what)


def _plan(rollout: Rollout, replicas: int, what: str) -> Iterator[str]:
    yield f"Steps of a release of {what}:"
    plan = steps.plan(rollout, replicas)
    for each in plan:
        edge = "└─" if each is plan[-1] else "├─"
        pods = "its nodes" if each.nodes else _pods(each.pods)
        yield f"{edge} {each.number:<3} {pods:<11} {_step(each, plan)}"
    yield f"Least time: {age(steps.least_seconds(rollout, replicas))}, {_without(plan, rollout)}"


def _step(step: StepView, plan: list[StepView]) -> str:
    if step.state == StepState.SKIPPED:
        return "skipped: it has no more pods than an earlier step"
    details = [f"the pods on nodes with {step.nodes}"] if step.nodes else []
    details += [f"soak {age(step.soak_seconds)}" if step.soak_seconds else "no soak"]
    details += ["then a person has to promote the release"] if step.approval else []
    details += ["by the workload's own strategy"] if step is plan[-1] else []
    return ", ".join(details)


def _without(plan: list[StepView], rollout: Rollout) -> str:
    approvals = sum(each.approval for each in plan if each.state != StepState.SKIPPED)
    people = f" and for {approvals} approval{'s' if approvals > 1 else ''}" if approvals else ""
    return f"without waiting for pods and checks{people}; a step fails after {age(rollout.step_deadline_seconds)}"


def _pods(count: int) -> str:
    return "1 pod" if count == 1 else f"{count} pods"
