"""What `altershield policy check` prints. Pure functions."""

from collections.abc import Iterator, Sequence

from altershield.api.check_specs import CheckPhase
from altershield.api.policy import Mode
from altershield.releases.steps import StepState
from altershield.views.durations import age
from altershield.views.names import printable, short_version
from altershield.views.releases.steps import Step
from command.columns import Columns
from command.policy.documents import PhaseChecks, Plan, PolicyCheck, pods
from command.policy.replay import Replayed, Would

_WHEN = {
    CheckPhase.PRE_RELEASE: "Checks that have to pass before any pod has the version",
    CheckPhase.PRE_BATCH: "Checks that have to pass before each step",
    CheckPhase.POST_RELEASE: "Checks after all pods have passed",
}


def lines(of: PolicyCheck) -> list[str]:
    """The lines about a policy."""
    name = f"{of.namespace}/{of.name}"
    found = [f"defensepolicy {name}: {f'not accepted: {of.problem}' if of.problem else 'accepted'}"]
    if not of.problem:
        found += _steps(of)
        found += _checks(of.checks)
        found += _releases(of.releases)
    return [printable(line) for line in found]


def _steps(of: PolicyCheck) -> Iterator[str]:
    if not of.plans:
        yield "No steps: the workload's own strategy applies."
        return
    if of.mode != Mode.ENFORCE:
        yield f"The mode {of.mode} holds nothing: a release takes no steps. With the mode enforce:"
    for plan in of.plans:
        yield from _plan(plan, alone=len(of.plans) == 1)


def _releases(releases: Sequence[Replayed]) -> Iterator[str]:
    """What the policy would have decided about releases of the history."""
    if not releases:
        return
    yield "With this policy, if pods, people and equal checks had done the same, the last releases:"
    header = ("NUMBER", "VERSION", "IMAGES", "ENDED", "WOULD", "STEP", "WHY")
    rows = [
        (str(each.number), short_version(each.version), each.images, each.ended, *_would(each)) for each in releases
    ]
    yield from Columns(len(header)).lines([header, *rows])


def _would(of: Replayed) -> tuple[str, str, str]:
    """The end, the step, and the reason."""
    known = of.would not in (Would.UNKNOWN, Would.NOTHING)
    step = f"{of.step} of {of.steps}, {of.pods} of {of.replicas} pods" if known and of.step else "-"
    why = f"{of.why}; {of.had} of {of.replicas} pods had the version" if known and of.step else of.why
    if of.would == Would.PASS and of.least_seconds:
        took = f"; it took {age(of.took_seconds)}" if of.took_seconds is not None else ""
        people = f", and {_approvals(of.approvals)}" if of.approvals else ""
        why = f"{why}, in at least {age(of.least_seconds)}{people}{took}"
    return of.would, step, why


def _checks(checks: Sequence[PhaseChecks]) -> Iterator[str]:
    """The checks that are about no batch of pods."""
    for phase, when in _WHEN.items():
        names = [name for each in checks if each.phase == phase for name in each.names]
        if names:
            yield f"{when}: {', '.join(names)}"


def _plan(plan: Plan, *, alone: bool) -> Iterator[str]:
    if plan.no_steps:
        yield f"No steps: {plan.no_steps}." if alone else f"No steps of a release of {plan.of}: {plan.no_steps}."
        return
    yield f"Steps of a release of {plan.of}:"
    for each in plan.steps:
        last = each is plan.steps[-1]
        count = "its nodes" if each.pods is None or each.nodes else pods(each.pods)
        yield f"{'└─' if last else '├─'} {each.number:<3} {count:<11} {_step(each, last=last)}"
    yield f"Least time: {age(plan.least_seconds)}, {_without(plan)}"


def _step(step: Step, *, last: bool) -> str:
    if step.state == StepState.SKIPPED:
        return "skipped: it has no more pods than an earlier step"
    details = [f"the pods on nodes with {step.nodes}"] if step.nodes else []
    details += [f"soak {age(step.soak_seconds)}" if step.soak_seconds else "no soak"]
    details += ["then a person has to promote the release"] if step.approval else []
    details += ["by the workload's own strategy"] if last else []
    return ", ".join(details)


def _without(plan: Plan) -> str:
    people = f" and for {_approvals(plan.approvals)}" if plan.approvals else ""
    return f"without waiting for pods and checks{people}; a step fails after {age(plan.step_deadline_seconds)}"


def _approvals(number: int) -> str:
    return "1 approval" if number == 1 else f"{number} approvals"
