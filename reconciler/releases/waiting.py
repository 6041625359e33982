"""What a release waits for: that it has pods at all, that the cluster lets it go on, that it has settled."""

from collections import Counter

from altershield.api.kinds import ConditionType, WorkloadState
from altershield.api.meta import find_condition, unix
from altershield.workloads.pods import Fault
from altershield.workloads.workload import Workload
from reconciler.releases.ending import health_counts, overdue_message, overdue_pods
from reconciler.releases.pod_groups import Group, PodGroups
from reconciler.releases.snapshot import Snapshot, StallReason
from reconciler.releases.status import Draft

_NOT_UP = (Group.DOWN, Group.OBSERVING, Group.OVERDUE, Group.HELD_UP)

_UP = (Group.PASSED, Group.CHECKING, Group.PREPARING)

_ENDS_AT_ONCE = (StallReason.NOT_ROLLED_OUT, *Fault)
"""What keeps a release from going on until it ends; then pods have yet to come, which takes its time."""

Stall = tuple[StallReason | Fault, str]


def with_waits(draft: Draft, snapshot: Snapshot, target: WorkloadState) -> tuple[Draft, float | None]:
    """The conditions NoReplicas and Stalled; and when they may change by themselves (Unix seconds)."""
    draft = _no_replicas(draft, snapshot, target)
    stall, due = _stall(snapshot, target, draft.now, _resumed_at(draft, snapshot.workload))
    if stall is not None:
        return draft.condition(ConditionType.STALLED, True, *stall), due
    if find_condition(draft.status.conditions, ConditionType.STALLED) is not None:
        draft = draft.condition(ConditionType.STALLED, False, "GoesOn", "nothing keeps the release from going on")
    return draft, due


def reaches_nothing(snapshot: Snapshot) -> bool:
    """Whether there is no pod, and none is to be."""
    existing = len(snapshot.groups) if snapshot.groups is not None else 0
    return not existing and not snapshot.workload.reach


def _no_replicas(draft: Draft, snapshot: Snapshot, target: WorkloadState) -> Draft:
    if target is WorkloadState.RUNNING and reaches_nothing(snapshot):
        message = "no pod of this version exists or is to be made, so nothing can be said of it; its first pods decide"
        return draft.condition(ConditionType.NO_REPLICAS, True, "NoPods", message)
    if find_condition(draft.status.conditions, ConditionType.NO_REPLICAS) is not None:
        return draft.without(ConditionType.NO_REPLICAS)
    return draft


def _resumed_at(draft: Draft, workload: Workload) -> float:
    """When the release last went on after it had stalled (Unix seconds): now, where something else is said of it than
    before."""
    known = find_condition(draft.status.conditions, ConditionType.STALLED)
    if known is None:
        return 0.0
    if not known.is_true:
        return unix(known.last_transition_time)
    over = known.reason in _ENDS_AT_ONCE or (known.reason == StallReason.PAUSED and not workload.paused)
    return draft.now if over else 0.0


def _stall(
    snapshot: Snapshot, target: WorkloadState, now: float, resumed_at: float
) -> tuple[Stall | None, float | None]:
    """Why the release is stalled, or None; and when that may change by itself (Unix seconds), or None.

    `resumed_at`: when the release last resumed after it had been stalled, Unix seconds; 0 if it never was.
    """
    if target not in (WorkloadState.RUNNING, WorkloadState.TIME_OUT_PRE_THRESHOLD, WorkloadState.SUCCESS):
        return None, None
    if target is WorkloadState.SUCCESS and not health_counts(snapshot):
        return None, None
    groups, workload, grace = snapshot.groups, snapshot.workload, snapshot.timing.start_timeout
    if groups is None:
        due = snapshot.release.spec.create_time_unix + grace
        text = "the workload's controller has made nothing of the template yet"
        return ((StallReason.NOT_ROLLED_OUT, text), None) if now >= due else (None, due)
    if groups.count(Group.HELD_UP):
        return _held_up(groups), None
    overdue = overdue_pods(snapshot)
    if overdue:
        few = f"{len(overdue)} of {len(groups)} pods, too few to end the release: {overdue_message(overdue, now)}"
        return (StallReason.PODS_OVERDUE, few), None
    if groups.count(Group.OVERDUE):
        text = f"{groups.count(Group.OVERDUE)} of {len(groups)} pods are not up, of which a person said that they pass"
        return (StallReason.PODS_OVERDUE, text), None
    missing = max(0, groups.wanted - len(groups))
    if not (missing or groups.count(Group.DOWN)) or groups.count(Group.OBSERVING) or target is WorkloadState.SUCCESS:
        return None, None
    # pods that are not up have their own time first, which began when they were made
    due = max(groups.progress_at, resumed_at) + grace * (2 if groups.count(Group.DOWN) else 1)
    if now < due:
        return None, due
    if not missing:
        down = groups.count(Group.DOWN)
        text = f"no pod came up for {int(grace)} s: {down} are not up, and are made anew again and again"
        return (StallReason.PODS_OVERDUE, text), None
    if workload.refused:
        return (StallReason.FAILED_CREATE, f"{missing} pods cannot be made: {workload.refused}"), None
    if workload.paused:
        return (StallReason.PAUSED, f"the rollout is paused, {missing} pods of this version are to come"), None
    metadata = workload.metadata
    text = (
        f"{missing} of {groups.wanted} pods are missing, and none came up for {int(grace)} s; its Events say why: "
        f"kubectl describe {workload.kind.lower()} {metadata.name} -n {metadata.namespace}"
    )
    return (StallReason.PODS_MISSING, text), None


def _held_up(groups: PodGroups) -> Stall:
    faults = Counter(fault for tracked in groups.pods_in(Group.HELD_UP) if (fault := groups.fault(tracked)) is not None)
    if not faults:
        return Fault.NODE_NOT_READY, f"{groups.count(Group.HELD_UP)} pods are not up, which is the cluster's fault"
    found, count = faults.most_common(1)[0]
    first = next(tracked for tracked in groups.pods_in(Group.HELD_UP) if groups.fault(tracked) is found)
    words = str(first.pod.trouble) if first.pod.trouble is not None else f"node {first.pod.node}"
    return (
        found,
        f"{count} of {len(groups)} pods are not up, which is the cluster's fault: {first.pod.metadata.name}: {words}",
    )


def with_settling(draft: Draft, snapshot: Snapshot, entered: bool) -> tuple[Draft, float | None]:
    """The condition Settled of a release that is in Success; and when it may change by itself (Unix seconds).

    What breaks puts it off by one more start timeout, counted from when all pods are up again. So does the loss of all
    pods that were up when it began to be observed: those that came in their place have proved nothing yet.
    """
    now, grace, groups = draft.now, snapshot.timing.start_timeout, snapshot.groups
    known = find_condition(draft.status.conditions, ConditionType.SETTLED)
    if not entered and (known is None or known.is_true):
        return draft, None  # history, as what succeeded before there was this condition
    broken = _broken(groups) if groups is not None else 0
    until = draft.status.settle_time_unix
    if broken or (groups is not None and not len(groups)):
        message = _broken_text(broken)
        return draft.replace(settle_time_unix=int(now + grace)).condition(
            ConditionType.SETTLED, False, "PodsDown", message
        ) if _broke_anew(draft) else draft, None
    all_up = groups is None or not any(map(groups.count, _NOT_UP))
    if known is not None and known.reason == "PodsDown" and not entered:
        if not all_up:
            return draft, None
        until = int(now + grace)
    elif entered or (now >= until and all_up and not _outlasted(groups, until - grace)):
        until = int(now + grace)
    if now >= until and all_up:
        message = "all pods stayed up for the start timeout after they had passed; what breaks now is another matter"
        return draft.condition(ConditionType.SETTLED, True, "StayedUp", message), None
    message = "its pods have passed; until the start timeout is over, what breaks ends the release"
    draft = draft.replace(settle_time_unix=until).condition(ConditionType.SETTLED, False, "Observing", message)
    return draft, float(until) if until > now else None  # past it, a pod's standing is what is waited for


def _broken_text(broken: int) -> str:
    match broken:
        case 0:
            return "there is no pod"
        case 1:
            return "1 pod that was up is not up any more"
        case _:
            return f"{broken} pods that were up are not up any more"


def _outlasted(groups: PodGroups | None, since: float) -> bool:
    """Whether a pod from before that time is still up."""
    return groups is None or any(
        tracked.pod.metadata.created <= since for group in _UP for tracked in groups.pods_in(group)
    )


def _broke_anew(draft: Draft) -> bool:
    known = find_condition(draft.status.conditions, ConditionType.SETTLED)
    return known is None or known.reason != "PodsDown"


def _broken(groups: PodGroups) -> int:
    return sum(1 for group in _NOT_UP if groups.count(group) for tracked in groups.pods_in(group) if tracked.broken)
