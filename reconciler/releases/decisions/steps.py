"""The part of a decision that is about a release in steps. Pure functions."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from altershield.api.amounts import scaled
from altershield.api.change_workload import ChangeWorkloadStatus, WorkloadState
from altershield.api.check_specs import BEFORE_STEP
from altershield.api.condition_types import ConditionType
from altershield.api.meta import find_condition, has_reason, plain_time
from altershield.api.ops_config import ROLLOUT_OFF
from altershield.api.policy import Mode
from altershield.api.rollout import ENDED, Phase, Rollout, RolloutStatus, WaitingFor
from altershield.gates.judge import first_opening
from altershield.gates.texts import named
from altershield.releases import state
from altershield.releases.release import version_of
from altershield.releases.steps import reasons, step_text
from altershield.rollout.obstacles import obstacle
from altershield.rollout.steps import of_kind, selects_nodes, steps_of
from altershield.workloads import BY_KIND
from altershield.workloads.hold import Hold
from altershield.workloads.pods import Pod
from altershield.workloads.workload import Workload
from kube_base.times import rfc3339
from reconciler.cluster.release import Release
from reconciler.cluster.soaks import why_soaking
from reconciler.releases.decisions import bypass
from reconciler.releases.decisions.observed_steps import observed
from reconciler.releases.findings import release_checks, verification
from reconciler.releases.findings.failure import exceeded_deadline
from reconciler.releases.findings.waiting import awaited_ends
from reconciler.releases.pods.group import Group
from reconciler.releases.pods.groups import PodGroups
from reconciler.releases.terms.draft import Draft, begin, with_update_time
from reconciler.releases.terms.effects import After, Announce, Before, Decision, EndHold, Evict, FreeFields, SetHold
from reconciler.releases.terms.snapshot import Snapshot, StallReason
from reconciler.rollout.draft import Event, Progress
from reconciler.rollout.evictions import Fleet, evictions
from reconciler.rollout.node_sets import NodeSet
from reconciler.rollout.progress import progress
from reconciler.rollout.view import View

_REFUSED = "WriteRefused"
"""The reason of the condition Progressing while the API server refuses to change the hold, or to evict a pod."""
_STOPPED = (Phase.STOPPED, Phase.ABORTED)
_UP = (Group.PASSED, Group.CHECKING, Group.PREPARING)
_NOT_UP = (Group.OVERDUE, Group.FAULT, Group.DOWN, Group.OBSERVING)
_TROUBLE = (ConditionType.STALLED, ConditionType.PODS_NOT_UP)
_MAX_GATES = 8  # that a status names
_QUOTA = "exceeded quota"
"""What the API server says if a ResourceQuota refuses a pod (plugin/pkg/admission/resourcequota)."""


@dataclass(frozen=True, slots=True)
class Steps:
    """What follows for a release in steps. Nothing for another release."""

    draft: Draft
    before: tuple[Before, ...] = ()
    after: tuple[After, ...] = ()
    wake: float | None = None


def view_of(snapshot: Snapshot, next_state: WorkloadState, now: float) -> View | None:
    """The release in steps, its workload and its pods; None if it is not made in steps."""
    release, workload, groups = snapshot.release, snapshot.workload, snapshot.groups
    hold, phase = workload.steps, release.status.rollout.phase
    rollout = release.spec.policy.rollout if phase or hold is None else hold.rollout
    if rollout is None or (hold is None and not phase):
        return None
    quota = _QUOTA in workload.refused
    without_surge = _at_once(workload, hold, surge=False)
    waiting = (
        (WaitingFor.PAUSED,) * (workload.paused or workload.reach == 0)
        + (WaitingFor.QUOTA,) * (quota and without_surge == 0)
    )  # fmt: skip
    surge = not quota and (hold is None or hold.surge)
    nodes = _node_sets(rollout, groups, release.status.rollout.step) if hold is not None else ()
    fleet = _fleet(release, workload, groups, now)
    lost_nodes, kept_nodes = _unready_nodes(workload, groups) if hold is not None else ((), ())
    soaking = groups if phase == Phase.SOAKING else None
    passed = [each.pod for each in soaking.pods_in(Group.PASSED)] if soaking is not None else []
    return View(
        rollout=rollout,
        version=version_of(release),
        replicas=workload.replicas,
        reach=workload.replicas if workload.reach is None else workload.reach,
        hold=hold,
        at_once=_at_once(workload, hold, surge=surge),
        pods=len(groups) if groups is not None else 0,
        older=len(groups.older) if groups is not None else 0,
        up=sum(map(groups.count, _UP)) if groups is not None else 0,
        passed=groups.count(Group.PASSED) if groups is not None else 0,
        complete=groups is not None and verification.complete(snapshot, groups) and not _repeats(snapshot, groups),
        failed=next_state is WorkloadState.SUSPEND or exceeded_deadline(snapshot),
        oldest=int(min((pod.metadata.created for pod in passed), default=0)),
        steady=int(min((max(pod.metadata.created, pod.ready_at) for pod in passed), default=0)),
        waiting=waiting,
        follows=workload.hold is None or workload.hold.follows,
        surge_refused=quota and without_surge != 0,
        replaced_first=_replaced_first(snapshot),
        evictable=_evictable(rollout, workload, groups, fleet, nodes, release.status.rollout.step),
        evictable_at=fleet.changes_at if fleet is not None else None,
        lost_nodes=lost_nodes,
        kept_nodes=kept_nodes,
        terminating=_terminating(release, workload, groups),
        trouble=_trouble(release),
        node_sets=nodes,
        let_go="" if snapshot.settings.rollout else ROLLOUT_OFF,
        waits=release_checks.waits(snapshot),
        gates=tuple(map(named, snapshot.closed[:_MAX_GATES])),
        opens_at=first_opening(snapshot.closed),
        checks_said=release_checks.said(snapshot),
    )


def _repeats(snapshot: Snapshot, groups: PodGroups) -> bool:
    """Whether the soak is over, and a check that is repeated in it has no last result yet."""
    status, policy = snapshot.release.status.rollout, snapshot.release.spec.policy
    if status.phase != Phase.SOAKING or not any(each.soak_interval for each in policy.checks):
        return False
    existing = [
        each for each in groups.memberships.batches() if any(groups.has_pod(member.uid) for member in each.members)
    ]
    return bool(why_soaking(policy.checks, existing))


def _node_sets(rollout: Rollout, groups: PodGroups | None, number: int) -> tuple[NodeSet, ...]:
    """The nodes of the steps up to the one after this step; empty if these select none."""
    found = steps_of(rollout)[: number + 1]
    if groups is None or not any(each.node_selector for each in found):
        return ()
    return groups.node_sets(found)


def _unready_nodes(workload: Workload, groups: PodGroups | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """`View.lost_nodes` and `View.kept_nodes`. While a pod is replaced, the release waits for that pod, not for a
    node."""
    if groups is None:
        return (), ()
    down = [tracked.pod for group in _NOT_UP for tracked in groups.pods_in(group)]
    lost = [pod.node for pod in down if pod.node and not groups.on_ready_node(pod)]
    if groups.count(Group.PASSED) + len(lost) < len(groups):
        return (), ()
    there, older = len(groups) + len(groups.older), groups.older
    kept: list[str] = []
    if BY_KIND[workload.group_kind].evicts and not older.ending and there >= workload.replicas:
        kept = [pod.node for pod in older.staying() if not groups.on_ready_node(pod)]
    return tuple(sorted(set(lost))), tuple(sorted(kept))


def _replaced_first(snapshot: Snapshot) -> int:
    """`View.replaced_first`."""
    hold, groups = snapshot.workload.steps, snapshot.groups
    if hold is None or groups is None or not hold.at_least:
        return 0
    failed = {version_of(each) for each in snapshot.others if state(each) is WorkloadState.SUSPEND}
    return sum(pod.version != hold.base or hold.base in failed for pod in groups.older.staying())


def _terminating(release: Release, workload: Workload, groups: PodGroups | None) -> tuple[str, ...]:
    """`View.terminating`. A pod that ends in its grace period is nothing to wait for."""
    stalled = has_reason(release.status.conditions, ConditionType.STALLED, StallReason.POD_TERMINATING)
    return tuple(awaited_ends(workload, groups)) if groups is not None and stalled else ()


def _trouble(release: Release) -> str:
    """`View.trouble`."""
    found = (find_condition(release.status.conditions, each) for each in _TROUBLE)
    return next((each.message for each in found if each is not None and each.is_true), "")


def _fleet(release: Release, workload: Workload, groups: PodGroups | None, now: float) -> Fleet | None:
    """The pods of which the old ones are evicted; None if the controller of the workload replaces them."""
    if workload.steps is None or groups is None or not BY_KIND[workload.group_kind].evicts:
        return None
    staying, ending = tuple(groups.older.staying()), groups.older.ending
    stalled = find_condition(release.status.conditions, ConditionType.STALLED)
    if stalled is not None and stalled.is_true:
        # the workload's status is up to date by now: other pods that are ending are on nodes that are to have none
        ending = min(ending, max(0, workload.replicas - len(groups) - len(staying)))
    return Fleet(
        replicas=workload.replicas,
        pods=len(groups),
        up=sum(map(groups.count, _UP)),
        staying=staying,
        ending=ending,
        min_ready=workload.min_ready,
        now=now,
    )


def _evictable(
    rollout: Rollout,
    workload: Workload,
    groups: PodGroups | None,
    fleet: Fleet | None,
    nodes: Sequence[NodeSet],
    number: int,
) -> tuple[Pod, ...]:
    """The old pods to evict now."""
    hold = workload.steps
    if hold is None or groups is None or fleet is None:
        return ()
    names = nodes[number - 1].names if 0 < number <= len(nodes) else ()
    return evictions(
        fleet,
        allowed=0 if number and selects_nodes(rollout, number) else hold.pods,
        most=scaled(workload.max_unavailable, workload.replicas, round_up=True) or 1,
        base=hold.base,
        on_ready_node=groups.on_ready_node,
        selected=(lambda pod: pod.node in names) if names else None,
        at_least=hold.at_least,
    )


def _at_once(workload: Workload, hold: Hold | None, *, surge: bool) -> int | None:
    """How many pods may get the version before one of them is available, by the user's own strategy."""
    fields = hold.strategy if hold is not None else {}
    return BY_KIND[workload.group_kind].at_once(fields, workload.replicas, surge=surge)


def next_progress(snapshot: Snapshot, next_state: WorkloadState, now: float) -> Progress | None:
    """How the release in steps proceeds; None if it is not made in steps."""
    view = view_of(snapshot, next_state, now)
    if view is None:
        return None
    known, hold = snapshot.release.status.rollout, snapshot.workload.steps
    if not known.phase and hold is not None and hold.base in (view.version, snapshot.workload.fingerprint):
        return Progress(known, ends_hold=True)  # the base was released again while no gatekeeper answered
    return progress(known, view, now)


def gated(next_state: WorkloadState, snapshot: Snapshot, found: Progress | None) -> WorkloadState:
    """The state: a release in steps succeeds after its last step, and fails if a step is overdue."""
    if found is None:
        return next_state
    if found.overdue or exceeded_deadline(snapshot):
        return WorkloadState.SUSPEND
    if next_state is WorkloadState.SUCCESS and not found.done:
        return WorkloadState.RUNNING
    return next_state


def with_steps(draft: Draft, snapshot: Snapshot, found: Progress | None) -> Steps:
    """Sets the status of the steps, and the condition Progressing."""
    if found is None:
        return _not_in_steps(draft, snapshot)
    draft = draft.replace(rollout=found.status)
    draft, events = _progressing(draft, found)
    after: list[After] = [*(announced(each) for each in found.events), *events]
    after += map(Evict, found.evicts)
    if found.new_hold is not None:
        after.append(SetHold(found.new_hold))
    if found.ends_hold:
        after.append(EndHold())
    before: list[Before] = [FreeFields()] * found.frees_fields
    before += release_checks.created_before(snapshot, found.status)
    return Steps(draft, tuple(before), tuple(after), found.wake)


def announced(event: Event) -> Announce:
    return Announce(event.reason, event.message, warning=event.warning)


def _progressing(draft: Draft, found: Progress) -> tuple[Draft, tuple[Announce, ...]]:
    """Sets the condition Progressing. That of a refused write or eviction says the cause, and stays until it is carried
    out: a status that changes with each attempt would be written without end. Also returns an Event if a check before
    the step fails for the first time."""
    status = found.status
    if not status.phase:
        return draft, ()
    refused = has_reason(draft.status.conditions, ConditionType.PROGRESSING, _REFUSED)
    if refused and {*status.waiting_for} & {WaitingFor.WRITE, WaitingFor.EVICTION}:
        return draft, ()
    going = status.phase not in _STOPPED and not status.waiting_for
    if not going and status.waiting_for:
        message = f"{step_text(status)} waits: {'; '.join(reasons(status))}"
        if found.checks_said and WaitingFor.CHECK in status.waiting_for:
            known = find_condition(draft.status.conditions, ConditionType.PROGRESSING)
            silent = known is not None and known.message == message
            message = f"{message}: {found.checks_said}"
            draft = draft.condition(ConditionType.PROGRESSING, going, status.phase, message)
            return draft, (Announce("StepHeld", message, warning=False),) if silent else ()
    else:
        message = f"{step_text(status)}: {status.pods} pods"
        if status.phase == Phase.SOAKING:
            message += f", until {rfc3339(status.soak_end_time_unix)}"
    return draft.condition(ConditionType.PROGRESSING, going, status.phase, message), ()


def _not_in_steps(draft: Draft, snapshot: Snapshot) -> Steps:
    """An Event and the condition if the policy has steps, and the release is made without."""
    release = snapshot.release
    policy = release.spec.policy
    if policy.rollout is None or _goes_back(snapshot):
        return Steps(draft)
    if policy.mode is not Mode.ENFORCE:
        draft, said = observed(draft, snapshot, _obstacle(snapshot))
        return Steps(draft, after=said)
    if state(release) is WorkloadState.SUCCESS:
        return Steps(draft)  # the releases that would show that it went back are deleted
    if find_condition(release.status.conditions, ConditionType.PROGRESSING) is not None:
        return Steps(draft)
    why = _obstacle(snapshot) or "the gatekeeper could not hold it, or did not answer"
    text = f"version {version_of(release)} is released without steps: {why}"
    unchecked = [each.name for each in policy.checks if each.phase in BEFORE_STEP]
    text += f"; these checks before a step are not made: {', '.join(unchecked)}" if unchecked else ""
    draft = draft.condition(ConditionType.PROGRESSING, False, "StepsNotPossible", text)
    return Steps(draft, after=(Announce("StepsNotPossible", text, warning=False),))


def _obstacle(snapshot: Snapshot) -> str:
    """Why the release cannot be made in steps; empty if it can."""
    workload = snapshot.workload
    if not snapshot.settings.rollout:
        return ROLLOUT_OFF
    rollout, evicts = snapshot.release.spec.policy.rollout, BY_KIND[workload.group_kind].evicts
    found = obstacle(
        replicas=workload.replicas,
        releaser=workload.releaser,
        created=not snapshot.others and not snapshot.previous.uid,
        has_steps=rollout is None or of_kind(rollout, evicts=evicts) is not None,
    )
    return found or workload.obstacle


def _goes_back(snapshot: Snapshot) -> bool:
    """Whether the release goes back to the version before a release in steps."""
    own = {version_of(snapshot.release), snapshot.workload.fingerprint}
    return any(each.status.rollout.base in own for each in snapshot.others) or bypass.is_rollback(
        snapshot.workload, snapshot.others
    )


def aborted(release: Release, now: float) -> RolloutStatus:
    """The status of the steps of a release that another one replaces."""
    known = release.status.rollout
    if not known.phase or known.phase in ENDED:
        return known
    return msgspec.structs.replace(
        known, phase=Phase.ABORTED.value, phase_time=plain_time(now), phase_time_unix=int(now), waiting_for=()
    )


def superseded(release: Release, now: float) -> ChangeWorkloadStatus | None:
    """The status of a release that another one replaces in the middle of its steps; None if it stays as it is."""
    rollout = aborted(release, now)
    if rollout == release.status.rollout:
        return None
    return with_update_time(begin(release, now).replace(rollout=rollout).status, now)


def refused(release: Release, what: WaitingFor, why: str, now: float) -> Decision:
    """Report that the hold is not changed, or a pod is not evicted. The deadline of the step stops meanwhile."""
    known = release.status.rollout
    message = f"{step_text(known)}: {why}; AlterShield tries again"
    condition = find_condition(release.status.conditions, ConditionType.PROGRESSING)
    if condition is not None and condition.message == message:
        return Decision()
    since = known.waiting_since_unix or int(now)
    draft = begin(release, now).condition(ConditionType.PROGRESSING, False, _REFUSED, message)
    waiting = tuple(dict.fromkeys((*known.waiting_for, str(what))))
    draft = draft.replace(rollout=msgspec.structs.replace(known, waiting_since_unix=since, waiting_for=waiting))
    return Decision(with_update_time(draft.status, now), after=(Announce("StepHeld", message),))
