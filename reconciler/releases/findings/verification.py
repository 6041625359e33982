"""Derives the batches to verify, and the state of the release, from the current pods and their verdicts. Pure
functions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import msgspec

from altershield.api.change_workload import WorkloadState
from altershield.api.condition_types import ConditionType, Giver
from altershield.api.meta import find_condition
from altershield.api.pod_verdicts import PodInfo, Verdict
from altershield.releases import state, version_of
from altershield.workloads.pods import Pod
from reconciler.cluster.batch import Batch
from reconciler.cluster.release import Release
from reconciler.releases.findings.waiting import reaches_nothing
from reconciler.releases.pods.group import Group
from reconciler.releases.pods.groups import PodGroups
from reconciler.releases.pods.health import CLOCK_SKEW, TrackedPod
from reconciler.releases.terms.effects import CreateBatch, Mark
from reconciler.releases.terms.snapshot import Snapshot

KEPT_BATCHES = 20
"""The number of ChangePods per version that are kept after all of their pods are gone."""

MAX_FAILED = 250
"""Pods in one batch that is created with failing verdicts. Its ChangePod has their messages twice, in `spec` and in
`status`, and must fit into one object (1.5 MiB in etcd)."""

_MARK_ROUNDING = 2  # seconds by which a mark may seem older than its pod, because both times are rounded
_NAMED = 3  # failed pods that a message names


@dataclass(frozen=True, slots=True)
class Batches:
    """The batches to create now."""

    full: Sequence[tuple[PodInfo, ...]]
    """The full batches."""
    overdue: tuple[PodInfo, ...] = ()
    """An incomplete batch that has waited long enough, or empty."""
    left: float | None = None
    """Seconds until an incomplete batch has waited long enough, or None."""


def next_state(snapshot: Snapshot) -> WorkloadState:
    """The state that follows from the pods."""
    present, groups = state(snapshot.release), snapshot.groups
    if groups is None:
        return present if present in (WorkloadState.SUSPEND, WorkloadState.SUCCESS) else WorkloadState.RUNNING
    if groups.count(Group.FAILED):
        return WorkloadState.SUSPEND
    if present is WorkloadState.SUSPEND and not (len(groups) and snapshot.workload.replicas):
        return WorkloadState.SUSPEND  # without pods there is no evidence: the verdicts on the first new pods decide
    if present is WorkloadState.SUSPEND and unreplaced(snapshot):
        return WorkloadState.SUSPEND
    if present is WorkloadState.SUCCESS and not _reaches_further(snapshot, groups):
        return WorkloadState.SUCCESS  # pods that are added later do not change the state unless they fail
    return WorkloadState.SUCCESS if complete(snapshot, groups) else WorkloadState.RUNNING


def unreplaced(snapshot: Snapshot) -> tuple[PodInfo, ...]:
    """The failed pods that were deleted while AlterShield pauses the rollout of this version, and that no pod replaces.
    Empty if a pod of the version has not passed yet: it may replace a failed pod, and its verdict decides. Pods that
    passed do not show that the failure is repaired.
    """
    groups, workload = snapshot.groups, snapshot.workload
    if groups is None or not workload.held or workload.held_version != version_of(snapshot.release):
        return ()
    if groups.count(Group.PASSED) < len(groups):
        return ()
    return tuple(
        info for info in snapshot.release.status.defense_check_fail_pods if info.uid and not groups.has_pod(info.uid)
    )


def complete(snapshot: Snapshot, groups: PodGroups) -> bool:
    """Whether every pod that the release is to reach is up and has passed at this moment.

    A rollout that AlterShield paused is not complete, also if it was because of an earlier version: while it is paused,
    the strategy of a StatefulSet or DaemonSet does not show how many pods the release is to reach.
    """
    existing, workload = len(groups), snapshot.workload
    if workload.held:
        return False
    return (
        existing > 0
        and workload.replicas > 0
        and groups.count(Group.PASSED) == existing
        and groups.reached >= groups.wanted
        and not groups.scales_down
        and workload.up_to_date
        and not reaches_nothing(snapshot)
    )


def _reaches_further(snapshot: Snapshot, groups: PodGroups) -> bool:
    """Whether the strategy lets the release reach further than when it succeeded: a partition was lowered, or another
    pod was deleted under OnDelete. Pods that are added by scaling up do not count."""
    known, (reached, replicas) = snapshot.release.status, extent(snapshot, groups)
    added = replicas - known.replicas
    workload = snapshot.workload.in_force
    if workload.reach is None or workload.partition_is_share:
        added = max(0, added)  # scaling down does not show how many pods the release would reach now
    return reached > max(0, known.reached + added) and not complete(snapshot, groups)


def extent(snapshot: Snapshot, groups: PodGroups) -> tuple[int, int]:
    """The number of pods that the strategy lets the release reach, and the number of replicas."""
    workload = snapshot.workload.in_force
    return len(groups) if workload.reach is None else workload.reach, workload.replicas


def next_extent(snapshot: Snapshot, groups: PodGroups) -> tuple[int, int]:
    """The extent to store, with which later extents of a release in Success are compared.

    If a partition keeps pods at the old version, the extent is updated when the workload is scaled. Under OnDelete, it
    is updated only when the workload is scaled down, because new pods are created some time after `replicas` has
    changed.
    """
    known, (reached, replicas) = snapshot.release.status, extent(snapshot, groups)
    if snapshot.workload.in_force.reach is None:
        return known.reached, min(known.replicas, replicas)
    scaled = replicas != known.replicas and reached != replicas
    return (reached, replicas) if scaled else (known.reached, known.replicas)


def batches(snapshot: Snapshot, groups: PodGroups, now: float) -> Batches:
    """The pods that wait for verification, in batches. The pod that came up first is in the first batch. `now`: Unix
    seconds."""
    waiting = groups.count(Group.PREPARING)
    if not waiting:
        return Batches(())
    size = snapshot.settings.batch_size(snapshot.workload.replicas)
    full = waiting // size * size
    waiting_pods = iter(list(groups.pods_in(Group.PREPARING)))
    found = [tuple(groups.info(each) for each in islice(waiting_pods, size)) for _ in range(full // size)]
    rest = list(waiting_pods)
    if not rest:
        return Batches(found)
    left = groups.up_at(rest[0]) + snapshot.release.spec.wait_time_threshold - now
    if left > 0:
        return Batches(found, left=left)
    return Batches(found, tuple(groups.info(each) for each in rest))


def create_batches(groups: PodGroups, found: Sequence[tuple[PodInfo, ...]]) -> tuple[CreateBatch, ...]:
    """The effects that create these batches."""
    return tuple(
        CreateBatch(groups.memberships.highest_batch + offset, pods) for offset, pods in enumerate(found, start=1)
    )


def failed_batches(pods: Sequence[PodInfo]) -> list[tuple[PodInfo, ...]]:
    """Pods that get failing verdicts now, in batches."""
    return [tuple(pods[start : start + MAX_FAILED]) for start in range(0, len(pods), MAX_FAILED)]


def repeat_batch(release: Release, groups: PodGroups, pods: tuple[PodInfo, ...]) -> CreateBatch:
    """The effect that creates the batch of failed pods again. It has the `Giver` of the verdict that failed the
    release."""
    known = find_condition(release.status.conditions, ConditionType.VERIFIED)
    by = known.reason if known is not None and known.reason in (Giver.PERSON, Giver.SERVER, Giver.CHECK) else ""
    return CreateBatch(groups.memberships.highest_batch + 1, pods, by)


def failed_without_batch(release: Release, groups: PodGroups) -> tuple[PodInfo, ...]:
    """The failed pods that still exist, and whose ChangePod with the failing verdict does not exist any more."""
    known = find_condition(release.status.conditions, ConditionType.VERIFIED)
    by_health = known is not None and known.reason == Giver.HEALTH
    return tuple(
        info
        for info in release.status.defense_check_fail_pods
        if info.verdict
        and groups.has_pod(info.uid)
        and groups.memberships.lacks_failing_batch(info.uid, by_health=by_health)
    )


def marks(snapshot: Snapshot, groups: PodGroups, now: float) -> tuple[Mark, ...]:
    """The effects that write `operate-finished` on pods that are up and do not have a valid one. A pod that failed
    because it was late gets it too when it comes up: its absence says that a pod was never up."""
    began = snapshot.release.spec.create_time_unix
    return tuple(
        Mark(tracked.pod, int(groups.up_at(tracked)))
        for group in (Group.PREPARING, Group.FAILED)
        for tracked in groups.pods_in(group)
        if groups.up_at(tracked) and not _marked(tracked.pod, began, now)
    )


def _marked(pod: Pod, began: float, now: float) -> bool:
    """Whether the value of `operate-finished` can be right.

    A time before the pod or the release, or a time in the future, is wrong: somebody copied the labels of another pod
    into the template.
    """
    value = pod.finished
    at = int(value) if value.isascii() and value.isdigit() and len(value) <= 12 else 0
    return max(pod.metadata.created, began) - _MARK_ROUNDING <= at <= now + CLOCK_SKEW


def surplus(groups: PodGroups) -> list[Batch]:
    """The oldest ChangePods of which no pod exists any more, beyond the number that is kept."""
    if groups.memberships.batch_count <= KEPT_BATCHES + len(groups):
        return []
    gone = [
        each
        for each in groups.memberships.batches()
        if not any(groups.has_pod(member.uid) for member in each.members) and (each.done or each.of_release is None)
    ]
    gone.sort(key=lambda each: each.number)
    return gone[:-KEPT_BATCHES]


def giver(groups: PodGroups) -> Giver:
    """The `Giver` of the verdict that failed the release. A person counts first, then the AlterShield server, then a
    check, then the health checks."""
    found = {groups.memberships.giver(tracked.pod.metadata.uid) for tracked in groups.pods_in(Group.FAILED)}
    return next((each for each in Giver if each in found), Giver.PERSON)


def summary(snapshot: Snapshot, failing: Sequence[PodInfo] = ()) -> str:
    """The progress of the release in one sentence. `failing`: pods that get a failing verdict now."""
    groups = snapshot.groups
    if groups is None:
        return "no pod of this version exists yet"
    failed = [*(groups.info(tracked) for tracked in islice(groups.pods_in(Group.FAILED), _NAMED)), *failing]
    count = groups.count(Group.FAILED) + len(failing)
    if count:
        failed.sort(key=lambda info: info.pod)
        named = "; ".join(f"{pod.pod} ({pod.message or pod.verdict})" for pod in failed[:_NAMED])
        more = f" and {count - _NAMED} more" if count > _NAMED else ""
        return f"{count} of {len(groups)} pods failed verification: {named}{more}"
    total = max(groups.wanted, len(groups))
    waits = (
        (total - len(groups) + groups.count(Group.DOWN) + groups.count(Group.OBSERVING), "coming up"),
        (groups.count(Group.OVERDUE) + groups.count(Group.FAULT), "not up in time"),
        (groups.count(Group.PREPARING), "waiting to be verified"),
        (groups.count(Group.CHECKING), "being verified"),
    )
    passed = f"{groups.count(Group.PASSED)} of {total} pods passed"
    return ", ".join([passed, *(f"{number} {state}" for number, state in waits if number)])


def unchecked(groups: PodGroups) -> int:
    """How many pods count as passed although nobody gave a verdict on them."""
    members = (groups.member(tracked) for tracked in groups.pods_in(Group.PASSED))
    return sum(member is None or not member.verdict for member in members)


def failed_now(groups: PodGroups, tracked: TrackedPod, message: str) -> PodInfo:
    """The pod with a failing verdict, because it was not up in time."""
    return msgspec.structs.replace(groups.info(tracked), verdict=Verdict.UNPASS.value, message=message)
