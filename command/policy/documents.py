"""What `altershield policy check` finds, as data. Pure functions."""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Annotated

from altershield.api.policy import DefensePolicySpec
from altershield.api.rollout import Rollout
from altershield.api.schema import doc
from altershield.policies.selection import InForce
from altershield.releases import steps
from altershield.rollout.obstacles import NO_STEPS
from altershield.rollout.steps import of_kind
from altershield.views.document import Document, Part
from altershield.views.history import Found
from altershield.views.releases.steps import Step, shown_step
from command.policy.checking import Checked
from command.policy.replay import Replayed, replayed
from reconciler.policies.applied import applied


class Plan(Part, frozen=True):
    """The steps of a release."""

    of: Annotated[str, doc("The release: `10 pods`, `a DaemonSet on 10 nodes`, `another kind, of 10 pods`.")]
    no_steps: Annotated[str, doc("Why it has no steps; else empty.")]
    steps: Annotated[tuple[Step, ...], doc("The steps.")]
    least_seconds: Annotated[int, doc("The seconds of its soaks: without waiting for pods, checks and people.")]
    approvals: Annotated[int, doc("How many steps a person has to promote.")]
    step_deadline_seconds: Annotated[int, doc("The seconds after which a step fails.")]


class PhaseChecks(Part, frozen=True):
    """The checks of a phase."""

    phase: Annotated[str, doc("The phase.")]
    names: Annotated[tuple[str, ...], doc("Their names.")]


class PolicyCheck(Part, frozen=True):
    """A DefensePolicy, and whether it is accepted."""

    namespace: Annotated[str, doc("Its namespace.")]
    name: Annotated[str, doc("Its name.")]
    problem: Annotated[str, doc("Why it is not accepted; empty: it is.")]
    mode: Annotated[str, doc("`enforce`, or `observe` or `warn`, which hold nothing; empty: it is not accepted.")]
    plans: Annotated[tuple[Plan, ...], doc("The steps, for each sort of workloads; empty: it has no steps.")]
    checks: Annotated[tuple[PhaseChecks, ...], doc("The checks, by phase.")]
    releases: Annotated[
        tuple[Replayed, ...],
        doc("With `--against`: what it would have decided about the last releases of the workload, the newest first."),
    ]


class PolicyCheckList(Document, frozen=True):
    """Whether DefensePolicies are accepted."""

    items: Annotated[tuple[PolicyCheck, ...], doc("One entry for each policy of the file.")]


def policy_check(checked: Checked, replicas: int, found: Found | None = None) -> PolicyCheck:
    """`replicas`: those of the workload whose release is shown. `found`: the history of a workload."""
    namespace, _, name = checked.name.partition("/")
    if checked.problem or checked.spec is None:
        return PolicyCheck(namespace, name, checked.problem, "", (), (), ())
    spec = checked.spec
    past: tuple[Replayed, ...] = ()
    if found is not None:
        policy = applied(InForce(namespace, name, 0, spec))
        past = replayed([each.entry for each in found.versions], found.workload, policy)
    return PolicyCheck(namespace, name, "", str(spec.mode), tuple(_plans(spec.rollout, replicas)), _checks(spec), past)


def _checks(spec: DefensePolicySpec) -> tuple[PhaseChecks, ...]:
    found: dict[str, list[str]] = {}
    for each in spec.checks:
        found.setdefault(str(each.phase), []).append(each.name)
    return tuple(PhaseChecks(phase, tuple(names)) for phase, names in found.items())


def _plans(rollout: Rollout | None, replicas: int) -> Iterator[Plan]:
    if rollout is None:
        return
    if not replicas:
        yield _no_steps(pods(0), "a workload with 0 replicas is released as without steps")
    elif any(each.node_selector for each in rollout.steps):
        yield _plan(of_kind(rollout, evicts=True), replicas, f"a DaemonSet on {replicas} nodes")
        yield _plan(of_kind(rollout, evicts=False), replicas, f"another kind, of {pods(replicas)}")
    else:
        yield _plan(rollout, replicas, pods(replicas))


def _no_steps(of: str, why: str) -> Plan:
    return Plan(of=of, no_steps=why, steps=(), least_seconds=0, approvals=0, step_deadline_seconds=0)


def _plan(rollout: Rollout | None, replicas: int, of: str) -> Plan:
    """`rollout`: the part of the steps that applies to this kind of workloads; None: none does."""
    if rollout is None:
        return _no_steps(of, NO_STEPS)
    plan = steps.plan(rollout, replicas)
    return Plan(
        of=of,
        no_steps="",
        steps=tuple(shown_step(each, ()) for each in plan),
        least_seconds=steps.least_seconds(rollout, replicas),
        approvals=steps.approvals(plan),
        step_deadline_seconds=rollout.step_deadline_seconds,
    )


def pods(count: int) -> str:
    return "1 pod" if count == 1 else f"{count} pods"


def policy_check_list(checked: Sequence[Checked], replicas: int, histories: Sequence[Found] = ()) -> PolicyCheckList:
    """`histories`: of each policy, that of the workload whose releases are judged; empty: none."""
    pairs = zip_longest(checked, histories)
    return PolicyCheckList(tuple(policy_check(each, replicas, found) for each, found in pairs))
