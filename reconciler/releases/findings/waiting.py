"""The conditions NoReplicas, Stalled and Settled, which say why a release waits. Pure functions."""

from collections import Counter
from collections.abc import Sequence

import msgspec

from altershield.api.change_workload import RestartingPod, Settling, WorkloadState
from altershield.api.condition_types import ConditionType
from altershield.api.meta import find_condition
from altershield.releases.release import OBSERVING
from altershield.workloads import BY_KIND
from altershield.workloads.blocking import blocking_pods
from altershield.workloads.pods import Fault
from altershield.workloads.workload import Workload
from kube_base.times import rfc3339, unix
from reconciler.releases.findings import restarts
from reconciler.releases.findings.ending import (
    creation_wake,
    failing_pods,
    health_counts,
    health_message,
    pods_missing,
    reason,
    refusal,
)
from reconciler.releases.pods.group import Group
from reconciler.releases.pods.groups import PodGroups
from reconciler.releases.terms.draft import Draft
from reconciler.releases.terms.snapshot import Snapshot, StallReason

_NOT_UP = (Group.DOWN, Group.OBSERVING, Group.OVERDUE, Group.FAULT)

_UP = (Group.PASSED, Group.CHECKING, Group.PREPARING)

_ENDS_AT_ONCE = (StallReason.NOT_ROLLED_OUT, *Fault)
"""Reasons that end at a known moment. After it, pods still need their time to come up."""

Stall = tuple[StallReason | Fault, str]


def with_waits(draft: Draft, snapshot: Snapshot, next_state: WorkloadState) -> tuple[Draft, float | None]:
    """Sets the conditions NoReplicas and Stalled. Also returns the time when they may change without an event (Unix
    seconds, or None)."""
    draft = _no_replicas(draft, snapshot, next_state)
    stall, due = _stall(snapshot, next_state, draft.now, _resumed_at(draft, snapshot.workload))
    if stall is not None:
        return draft.condition(ConditionType.STALLED, True, *stall), due
    if find_condition(draft.status.conditions, ConditionType.STALLED) is not None:
        draft = draft.condition(ConditionType.STALLED, False, "GoesOn", "the release is not stalled any more")
    return draft, due


def reaches_nothing(snapshot: Snapshot) -> bool:
    """Whether no pod of the release exists or is to be created."""
    existing = len(snapshot.groups) if snapshot.groups is not None else 0
    return not existing and not snapshot.workload.in_force.reach


def _no_replicas(draft: Draft, snapshot: Snapshot, next_state: WorkloadState) -> Draft:
    if next_state is WorkloadState.RUNNING and reaches_nothing(snapshot) and snapshot.workload.steps is None:
        message = "the workload has no pods of this version to verify; verification begins with the first one"
        return draft.condition(ConditionType.NO_REPLICAS, True, "NoPods", message)
    if find_condition(draft.status.conditions, ConditionType.NO_REPLICAS) is not None:
        return draft.without(ConditionType.NO_REPLICAS)
    return draft


def _resumed_at(draft: Draft, workload: Workload) -> float:
    """When the release last resumed after it had been stalled, Unix seconds; 0 if it never was.

    It is now if the reason of the condition has just ended.
    """
    known = find_condition(draft.status.conditions, ConditionType.STALLED)
    if known is None:
        return 0.0
    if not known.is_true:
        return unix(known.last_transition_time)
    over = known.reason in _ENDS_AT_ONCE or (known.reason == StallReason.PAUSED and not workload.in_force.paused)
    return draft.now if over else 0.0


def _stall(
    snapshot: Snapshot, next_state: WorkloadState, now: float, resumed_at: float
) -> tuple[Stall | None, float | None]:
    """The reason why the release is stalled, or None; and the time when this may change by itself (Unix seconds), or
    None.

    `resumed_at`: when the release last resumed after it had been stalled, Unix seconds; 0 if it never was.
    """
    if next_state not in (WorkloadState.RUNNING, WorkloadState.TIME_OUT_PRE_THRESHOLD, WorkloadState.SUCCESS):
        return None, None
    if next_state is WorkloadState.SUCCESS and not health_counts(snapshot):
        return None, None
    groups = snapshot.groups
    for each in snapshot.batches:
        if each.of_release is not None and each.why_waiting:
            return (StallReason.CHECK_HELD, f"the release waits for a person: {each.why_waiting}"), None
    if groups is None:
        return _not_rolled_out(snapshot, now)
    stall = _of_existing_pods(snapshot, groups, now)
    if stall is not None:
        return stall, None
    missing = pods_missing(snapshot, groups)
    if (
        not (missing or groups.count(Group.DOWN))
        or groups.count(Group.OBSERVING)
        or next_state is WorkloadState.SUCCESS
    ):
        return None, None
    # pods that are down have their time from their creation; only then does the stall begin
    due = max(groups.progress_at, resumed_at) + snapshot.timing.start_timeout + groups.longest_limit(Group.DOWN)
    if now < due:
        return None, due
    if missing:
        return _of_missing_pods(snapshot, groups, missing, now)
    return _none_came_up(snapshot, groups), None


def _not_rolled_out(snapshot: Snapshot, now: float) -> tuple[Stall | None, float | None]:
    """The stall of a release without an object that holds its template, and when it begins. As for `_stall`."""
    workload, grace = snapshot.workload, snapshot.timing.start_timeout
    if workload.steps is not None and not workload.steps.pods:
        return None, None  # it is held before its first step
    due = snapshot.release.spec.create_time_unix + grace
    if now < due:
        return None, due
    text = (
        f"the controller of {workload.kind} {workload.metadata.name} has not begun to roll out this pod template "
        f"within {int(grace)} s; check that the workload is not paused and that its controller runs"
    )
    return (StallReason.NOT_ROLLED_OUT, text), None


def _of_existing_pods(snapshot: Snapshot, groups: PodGroups, now: float) -> Stall | None:
    """The stall of a release whose pods are not up in time, or wait for the decision of a person."""
    if groups.count(Group.FAULT):
        return _fault_stall(snapshot, groups)
    failing = failing_pods(snapshot, now)
    if failing:
        what = "overdue" if groups.count(Group.OVERDUE) else "restarting again and again"
        few = (
            f"{len(failing)} of {len(groups)} pods are {what}, too few to end the release: "
            f"{health_message(snapshot, now)}"
        )
        return StallReason.PODS_OVERDUE, few
    if groups.count(Group.OVERDUE):
        text = (
            f"{groups.count(Group.OVERDUE)} of {len(groups)} pods are not up, but a person gave them the verdict `pass`"
        )
        return StallReason.PODS_OVERDUE, text
    waiting = groups.waiting_batches()
    if waiting:
        return StallReason.CHECK_HELD, f"pods wait for the decision of a person: {waiting[0].why_waiting}"
    return None


def _none_came_up(snapshot: Snapshot, groups: PodGroups) -> Stall:
    """The stall of a release whose pods all exist, but none of them comes up."""
    down, first = groups.count(Group.DOWN), groups.not_up.first
    text = f"no pod came up for {int(snapshot.timing.start_timeout)} s, and {down} of {len(groups)} are not up"
    text += f": {first.pod.metadata.name}: {groups.words(first)}" if first is not None else ""
    return StallReason.PODS_OVERDUE, text


def _of_missing_pods(snapshot: Snapshot, groups: PodGroups, missing: int, now: float) -> tuple[Stall, float | None]:
    """The stall of a release of which `missing` pods do not exist. As for `_stall`."""
    workload, metadata = snapshot.workload, snapshot.workload.metadata
    refused = refusal(workload, groups)
    if refused:
        text = f"{missing} pods cannot be created: {refused}"
        return (StallReason.FAILED_CREATE, f"{text}; {_unless_caused(snapshot)}"), creation_wake(snapshot, groups, now)
    if workload.in_force.paused:
        return (StallReason.PAUSED, f"the rollout is paused, and {missing} pods of this version are missing"), None
    grace = int(snapshot.timing.start_timeout)
    text = f"{missing} of {groups.wanted} pods are missing, and none came up for {grace} s; "
    ending = awaited_ends(workload, groups)
    if ending:
        name, namespace = ending[0], metadata.namespace
        text += (
            f"{workload.kind} {metadata.name} waits for the end of pod {name}, which is terminating; "
            f"to see its finalizers and its node: kubectl get pod {name} -n {namespace} -o yaml"
        )
        return (StallReason.POD_TERMINATING, text), creation_wake(snapshot, groups, now)
    if groups.predecessors.last:
        text += f"the last one ended: {groups.predecessors.last}; "
    older = blocking_pods(workload, groups.older)
    if older:
        text += (
            f"{workload.kind} {metadata.name} waits for pod {older[0].metadata.name} of an older version; "
            f"to see what to do: altershield why {workload.kind.lower()}/{metadata.name} -n {metadata.namespace}"
        )
    elif snapshot.budget:
        text += (
            f"PodUnavailableBudget {snapshot.budget} admits no deletion of the workload's pods now; to see why: "
            f"altershield budgets {snapshot.budget} -n {metadata.namespace}"
        )
    else:
        text += f"to see why: kubectl describe {workload.kind.lower()} {metadata.name} -n {metadata.namespace}"
    return (StallReason.PODS_MISSING, text), creation_wake(snapshot, groups, now)


def awaited_ends(workload: Workload, groups: PodGroups) -> list[str]:
    """The names of the pods that are terminating in a place of which the workload's controller wants a new pod."""
    names = groups.predecessors.terminating
    if not BY_KIND[workload.group_kind].waits_for_end:
        return []
    if workload.ends_at is not None:  # a StatefulSet
        ordinals = {each: each.rpartition("-")[2] for each in names}
        return [each for each, number in ordinals.items() if number.isdecimal() and int(number) < workload.ends_at]
    places = workload.replicas - len(groups) - len(groups.older.staying())
    return names if places > 0 else []


def _fault_stall(snapshot: Snapshot, groups: PodGroups) -> Stall:
    """The stall because of the most frequent fault."""
    faults = Counter(fault for tracked in groups.pods_in(Group.FAULT) if (fault := groups.fault(tracked)) is not None)
    if not faults:
        return Fault.NODE_NOT_READY, f"{groups.count(Group.FAULT)} pods are not up, and the cluster is the cause"
    found, count = faults.most_common(1)[0]
    with_fault = [tracked for tracked in groups.pods_in(Group.FAULT) if groups.fault(tracked) is found]
    first = min(with_fault, key=lambda tracked: tracked.event is None)  # the Events of a few pods were read
    text = f"{count} of {len(groups)} pods are not up, and the cluster is the cause: {first.pod.metadata.name}: "
    if found is Fault.NODE_NOT_READY:
        return found, f"{text}{groups.words(first) or f'node {first.pod.node}'}"
    return found, f"{text}{groups.words(first) or reason(first)}; {_unless_caused(snapshot)}"


def _unless_caused(snapshot: Snapshot) -> str:
    return f"overdue after {int(snapshot.timing.unschedulable)} s if this release changed what causes it"


def with_settling(draft: Draft, snapshot: Snapshot, entered: bool) -> tuple[Draft, float | None]:
    """Sets the condition Settled of a release in Success. Also returns the time when it may change without an event
    (Unix seconds, or None).

    A pod that breaks or restarts delays the condition: the settle time begins anew when all pods are up again. It also
    begins anew if all pods that were up at its begin are gone, because their replacements have not proved anything yet.
    """
    now, groups, settle = draft.now, snapshot.groups, restarts.settle(snapshot)
    known = find_condition(draft.status.conditions, ConditionType.SETTLED)
    if not entered and (known is None or known.is_true):
        return draft, None  # settled, or succeeded before AlterShield had this condition
    counting = restarts.counting(snapshot, now, anew=entered)
    pods, number = restarts.restarting(snapshot, now)
    restarted = _restarts_text(pods, number, restarts.allowed(snapshot))
    draft = draft.replace(settling=msgspec.structs.replace(counting, restarting=pods))
    extended = restarts.extended(counting, settle, snapshot.timing.start_timeout, now)
    broken = _broken(groups) if groups is not None else 0
    until = draft.status.settle_time_unix
    if broken or (groups is not None and not len(groups)):
        if _broke_anew(draft):
            draft = draft.replace(settle_time_unix=extended)
        stay_up = f"the release settles when all pods have stayed up for {int(settle.seconds)} s"
        message = f"{_broken_text(broken)}{restarted}; {stay_up}"
        return draft.condition(ConditionType.SETTLED, False, "PodsDown", message), None
    all_up = groups is None or not _delays_settling(groups)
    if known is not None and known.reason == "PodsDown" and not entered:
        if not all_up:
            return draft, None
        until = extended
    elif entered or (now >= until and all_up and not _outlasted(groups, until - settle.seconds)):
        until = extended
    if now >= until and all_up:
        message = "all pods stayed up for the settle time; pods that break now do not end the release"
        draft = draft.replace(settling=Settling())
        return draft.condition(ConditionType.SETTLED, True, "StayedUp", message), None
    reason, text = ("PodsRestarted", "all pods are up") if pods else (OBSERVING, "all pods have passed")
    message = f"{text}{restarted}; the release settles at {rfc3339(until)}, unless a pod breaks before"
    draft = draft.replace(settle_time_unix=until).condition(ConditionType.SETTLED, False, reason, message)
    return draft, float(until) if until > now else None  # later, only an event of a pod changes it


def _restarts_text(pods: Sequence[RestartingPod], number: int, limit: int) -> str:
    """The part of a message about the pods whose restarts count. `number`: how many there are. `limit`: the restarts
    that fail a pod."""
    if not pods:
        return ""
    others = f" (and {number - 1} more)" if number > 1 else ""
    return f"; pod {pods[0].pod}{others}: {pods[0].message}; a pod with {limit} restarts fails"


def _delays_settling(groups: PodGroups) -> bool:
    """Whether a pod that is not up delays the condition Settled. A pod with a fault that was never up does not delay
    it: an autoscaler may have added the pod, and there may never be a node for it."""
    if any(map(groups.count, (Group.DOWN, Group.OBSERVING, Group.OVERDUE))):
        return True
    return any(tracked.broken for tracked in groups.pods_in(Group.FAULT))


def _broken_text(broken: int) -> str:
    """The message of the reason PodsDown."""
    match broken:
        case 0:
            return "the release has no pods"
        case 1:
            return "1 pod that was up is not up any more"
        case _:
            return f"{broken} pods that were up are not up any more"


def _outlasted(groups: PodGroups | None, since: float) -> bool:
    """Whether a pod that was created before `since` is still up."""
    return groups is None or any(
        tracked.pod.metadata.created <= since for group in _UP for tracked in groups.pods_in(group)
    )


def _broke_anew(draft: Draft) -> bool:
    """Whether the condition does not have the reason PodsDown yet."""
    known = find_condition(draft.status.conditions, ConditionType.SETTLED)
    return known is None or known.reason != "PodsDown"


def _broken(groups: PodGroups) -> int:
    """The number of pods that were up and are down."""
    return sum(1 for group in _NOT_UP if groups.count(group) for tracked in groups.pods_in(group) if tracked.broken)
