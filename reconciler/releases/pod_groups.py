"""The pods of one release, grouped by their progress, and updated with each event.

A decision reads the groups and their sizes. So it takes time only for the pods that have changed. After a restart, the
groups are rebuilt from the caches.
"""

import heapq
from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple, Protocol

from altershield.api.kinds import ChangeWorkloadStatus, ConditionType, PodInfo, SourceRef, Verdict
from altershield.api.meta import find_condition, unix
from altershield.releases.release import version as version_of
from altershield.workloads import BY_KIND, is_pod_of_revision
from altershield.workloads.amounts import share
from altershield.workloads.pods import Fault, Pod
from altershield.workloads.workload import Workload
from reconciler.batches.batch import Batch, Member
from reconciler.releases.health import Health, Timing, TrackedPod, assess, fault, start_tracking, update_tracked
from reconciler.releases.projection import Release, digest


class Group(StrEnum):
    """The progress of a pod in its release. The first value that applies counts."""

    FAILED = "failed"
    """A verdict of any origin fails the pod."""
    OVERDUE = "overdue"
    """See `Health`, also for HELD_UP, DOWN and OBSERVING."""
    HELD_UP = "held up"
    DOWN = "down"
    OBSERVING = "observing"
    PREPARING = "preparing"
    """Up, and in no batch."""
    CHECKING = "checking"
    """In a batch that is being verified."""
    PASSED = "passed"
    """Up, and its batch passed."""


_BY_HEALTH = {
    Health.OVERDUE: Group.OVERDUE,
    Health.HELD_UP: Group.HELD_UP,
    Health.DOWN: Group.DOWN,
    Health.OBSERVING: Group.OBSERVING,
}


class Nodes(Protocol):
    """The states of nodes, as the groups read them."""

    def node_ready(self, node: str) -> bool:
        """Whether a pod on this node can be up: False if the node is known to be not ready, True if it is unknown."""

    def node_lost(self, node: str) -> bool:
        """Whether the node does not exist or is not ready."""

    def node_ready_at(self, node: str) -> float:
        """Since when the node is ready, Unix seconds; 0 if it is not ready or the time is not known."""


class _Membership:
    """The newest batch of a pod, and the pod's entry in it."""

    __slots__ = ("batch", "member")

    def __init__(self, batch: Batch, member: Member) -> None:
        self.batch = batch
        self.member = member


class _EndedPod(NamedTuple):
    """A pod that ended by itself. Its controller creates another pod, whose start timeout begins with that of this
    pod."""

    at: float
    down_since: float
    breaks: int
    was_up: bool


class PodGroups:
    """The pods of one release. `source` is the object with their template."""

    def __init__(self, workload: Workload, release: Release, source: SourceRef, nodes: Nodes, timing: Timing) -> None:
        self.release_uid = release.metadata.uid
        self.source = source
        self.workload = workload
        self.highest_batch = release.status.retried_batches
        """The highest number of its ChangePods, including those that a retry deleted."""
        self.revision = 0
        """Increases with each change of a group."""
        self.written_revision = -1
        """The revision that the lists in the ChangeWorkload show."""
        self.progress_at = float(release.spec.create_time_unix)
        """When a pod last came up, Unix seconds."""
        self._adapter = BY_KIND[workload.kind]
        self._created = release.spec.create_time_unix
        self._retried = release.status.retry_time_unix
        # after a retry, pods that are not up have the start timeout once more
        self._began = max(self._created, self._retried)
        self._nodes = nodes
        self._timing = timing
        stall = find_condition(release.status.conditions, ConditionType.STALLED)
        self._held_up = stall is not None and stall.is_true and stall.reason in list(Fault)
        if stall is not None and not stall.is_true:
            # the release was stalled until that time, so the start timeout of its pods begins then
            self._began = max(self._began, int(unix(stall.last_transition_time)))
        self._ended: list[_EndedPod] = []  # not replaced yet
        self._named_memberships: dict[str, _Membership] = {}  # by pod name: batches without uids
        self._remembered = {down.uid: float(down.since_unix) for down in release.status.down_pods}
        self._tracked: dict[str, TrackedPod] = {}
        self._up_at: dict[str, float] = {}
        self._group_of: dict[str, Group] = {}
        self._groups: dict[Group, dict[str, TrackedPod]] = {group: {} for group in Group}
        self._older: dict[str, Pod] = {}
        self._older_ending: set[str] = set()
        """The uids of the pods of other versions that are terminating or have ended."""
        self._batches: dict[str, Batch] = {}
        self._held: dict[str, Batch] = {}
        self._memberships: dict[str, _Membership] = {}
        self._uid_by_name: dict[str, str] = {}
        self._due: list[tuple[float, str]] = []
        self._changed: set[str] = set()
        self._mislabelled: set[str] = set()
        self._version = version_of(release)

    def is_for(self, workload: Workload, release: Release, source: SourceRef) -> bool:
        """Whether these groups are about exactly this release."""
        return (self.workload.metadata.uid, self.release_uid, self.source.uid, self._created, self._retried) == (
            workload.metadata.uid,
            release.metadata.uid,
            source.uid,
            release.spec.create_time_unix,
            release.status.retry_time_unix,
        )

    # queries

    def __len__(self) -> int:
        """The number of pods of this version that exist."""
        return len(self._group_of)

    @property
    def wanted(self) -> int:
        """The number of pods of this version that should exist now.

        It is the number that the rollout is to reach. Under OnDelete, it is the number of replicas minus the number of
        pods of other versions. If no pods of other versions exist, it is the number of replicas, because a partition
        can hold back existing pods only.
        """
        reach, replicas = self.workload.reach, self.workload.replicas
        if reach is None:
            return max(0, replicas - len(self._older))
        return reach if self._older else replicas

    @property
    def reached(self) -> int:
        """The number of pods of this version that count towards `wanted`. These pods do not count: pods that a
        StatefulSet is about to delete, pods that its partition holds back, and pods on nodes that are lost.

        The pods of a deleted node look ready until they are deleted too, a minute later.
        """
        return sum(self._counts(tracked.pod) for tracked in self._tracked.values())

    def _counts(self, pod: Pod) -> bool:
        workload, ordinal = self.workload, pod.metadata.name.rpartition("-")[2]
        if self._nodes.node_lost(pod.node):
            return False
        if workload.ends_at is None or not ordinal.isdecimal():
            return True
        return (workload.kept_below if self._older else 0) <= int(ordinal) < workload.ends_at

    @property
    def scales_down(self) -> bool:
        """Whether more pods exist than the workload is to have. It is not known which of them its controller will
        delete.

        If no pods of other versions exist, this does not matter.
        """
        if not self._older or self.workload.reach is None:
            return False
        if self.workload.ends_at is not None:
            return False  # see `reached`
        counted = max(len(self), self.workload.updated)  # the status may still count a pod whose deletion is known here
        replicas = self.workload.replicas
        older = len(self._older) - len(self._older_ending)
        return counted > replicas or counted + older > replicas + share(self.workload.max_surge, replicas)

    def count(self, group: Group) -> int:
        """The number of pods in a group."""
        return len(self._groups[group])

    def pods_in(self, group: Group) -> Iterable[TrackedPod]:
        """The pods of a group, in the order in which they entered it."""
        return self._groups[group].values()

    @property
    def older(self) -> Iterable[Pod]:
        """Pods of other versions."""
        return self._older.values()

    def up_at(self, tracked: TrackedPod) -> float:
        """When the pod came up, Unix seconds; 0 if it is not up."""
        return self._up_at.get(tracked.pod.metadata.uid, 0.0)

    def fault(self, tracked: TrackedPod) -> Fault | None:
        """The reason why the cluster keeps the pod from being up; None if the cluster does not."""
        return fault(tracked, node_lost=self._nodes.node_lost(tracked.pod.node))

    def member(self, tracked: TrackedPod) -> Member | None:
        """The pod's entry in its newest batch, or None."""
        membership = self._memberships.get(tracked.pod.metadata.uid)
        return membership.member if membership is not None else None

    def info(self, tracked: TrackedPod) -> PodInfo:
        """The pod as ChangeWorkloads and ChangePods list it, with its explicit verdict."""
        pod, member = tracked.pod, self.member(tracked)
        return PodInfo(
            pod=pod.metadata.name,
            uid=pod.metadata.uid,
            app=self.workload.metadata.name,
            host_name=pod.metadata.name,
            namespace=pod.metadata.namespace,
            work_space="default",
            ip=pod.ip,
            verdict=member.verdict if member is not None else "",
            message=member.message if member is not None else "",
        )

    def giver(self, tracked: TrackedPod) -> str:
        """The `Giver` of the verdict that fails the pod; empty if no verdict fails it."""
        membership = self._memberships.get(tracked.pod.metadata.uid)
        return membership.batch.giver if membership is not None else ""

    @property
    def batch_count(self) -> int:
        """The number of ChangePods."""
        return len(self._batches)

    def batches(self) -> Iterable[Batch]:
        """The ChangePods of the release."""
        return self._batches.values()

    def held(self) -> list[Batch]:
        """The ChangePods that wait for a person because a check has no result. Only ChangePods with an existing pod are
        included."""
        return [each for each in self._held.values() if any(self.has_pod(member.uid) for member in each.members)]

    def changes(self, release: Release, status: ChangeWorkloadStatus) -> bool:
        """Whether the lists in this status differ from the lists in the ChangeWorkload. If they are equal, they count
        as written."""
        if digest(status) != release.digest or _message(status) != _message(release.status):
            return True
        self.written_revision = self.revision
        return False

    def mislabelled(self) -> list[Pod]:
        """Pods of the release whose version label has another value."""
        return [self._tracked[uid].pod for uid in self._mislabelled]

    def uids(self) -> list[str]:
        """The uids of all pods of the workload, of every version."""
        return [*self._tracked, *self._older]

    @property
    def rebuildable(self) -> bool:
        """Whether everything in the groups can be rebuilt from the caches."""
        return not self._ended and self.count(Group.PASSED) + self.count(Group.FAILED) == len(self)

    def has_pod(self, uid: str) -> bool:
        """Whether a pod with this uid exists in the release."""
        return uid in self._group_of

    def has_no_batch(self, uid: str) -> bool:
        """Whether a pod with this uid exists in the release and is in no batch."""
        return uid in self._group_of and uid not in self._memberships

    # updates

    def update_pod(self, pod: Pod, now: float) -> None:
        """Take over a new or changed pod of the workload."""
        uid = pod.metadata.uid
        if not is_pod_of_revision(self._adapter, pod, self.source.name, self.source.uid):
            # a failing verdict lasts as long as the pod exists, even if its template hash changes
            failed = uid in self._memberships and _fails(self._memberships[uid].member) and pod.exists
            if not failed:
                self._untrack(uid)
                if pod.exists:
                    self._older[uid] = pod
                elif uid in self._older:
                    self._older_ending.add(uid)
                return
        self._forget_older(uid)
        if not pod.exists:
            if pod.ended and not pod.disrupted and not pod.metadata.deleting and uid in self._tracked:
                self._keep_time(self._tracked[uid], now)
            self._untrack(uid)
            return
        known = self._tracked.get(uid)
        if known is None:
            self._track(pod, now)
        else:
            update_tracked(known, pod, now, updated_in_place=known.pod.hash != pod.hash)
        if pod.version == self._version:
            self._mislabelled.discard(uid)
        else:
            self._mislabelled.add(uid)
        self._changed.add(uid)

    def remove_pod(self, uid: str) -> None:
        """Remove a pod that was deleted, or that does not belong to the workload any more."""
        self._forget_older(uid)
        self._untrack(uid)

    def _forget_older(self, uid: str) -> None:
        self._older.pop(uid, None)
        self._older_ending.discard(uid)

    def update_batch(self, batch: Batch) -> None:
        """Take over a new or changed batch of the release."""
        self._batches[batch.metadata.name] = batch
        self._held.pop(batch.metadata.name, None)
        if batch.held:
            self._held[batch.metadata.name] = batch
        self.highest_batch = max(self.highest_batch, batch.number)
        # a pod that passed in an earlier release of this version may have been updated in place twice since
        stale = self._adapter.in_place and batch.metadata.created < self._created - 1
        for member in batch.members:
            if stale and not _fails(member):
                continue
            if member.uid:
                self._set_membership(member.uid, _Membership(batch, member))
                continue
            named = self._named_memberships.get(member.pod)
            if named is None or named.batch.number <= batch.number:
                self._named_memberships[member.pod] = _Membership(batch, member)
                self._set_membership_by_name(member.pod)

    def _set_membership_by_name(self, name: str) -> None:
        """Find the pod of a batch without uids, which an older release of AlterShield wrote: the pod with this name, if
        it existed when the batch was created."""
        membership, uid = self._named_memberships.get(name), self._uid_by_name.get(name)
        tracked = self._tracked.get(uid) if uid is not None else None
        if membership is None or uid is None or tracked is None:
            return
        if membership.batch.metadata.created >= tracked.pod.metadata.created:
            tracked.was_up = tracked.was_up or not membership.member.overruled
            self._set_membership(uid, membership)

    def _set_membership(self, uid: str, membership: _Membership) -> None:
        known = self._memberships.get(uid)
        if known is None or known.batch.number <= membership.batch.number:
            self._memberships[uid] = membership
            tracked = self._tracked.get(uid)
            if tracked is not None and membership.member.overruled and known is not None and _fails(known.member):
                tracked.was_up = False  # it counts as not up yet, so it fails again only if it comes up and breaks
            self._changed.add(uid)
            self.revision += 1

    def _keep_time(self, tracked: TrackedPod, now: float) -> None:
        """Keep the start of the timeout of a pod that ended by itself, for the pod that replaces it."""
        up = tracked.pod.metadata.uid in self._up_at
        self._ended.append(_EndedPod(now, now if up else tracked.down_since, tracked.breaks + up, tracked.was_up))

    def set_events_fault(self, uid: str, found: Fault | None, now: float) -> None:
        """Set the cause in the Events of a pod, as read at `now` (Unix seconds); None: they name no cause."""
        tracked = self._tracked.get(uid)
        if tracked is not None:
            tracked.fault, tracked.fault_until = found, now + self._timing.start_timeout
            self._changed.add(uid)

    def refresh(self, workload: Workload, now: float) -> None:
        """Bring the groups up to date at `now` (Unix seconds)."""
        if workload.min_ready != self.workload.min_ready:
            self._changed.update(self._tracked)
        self.workload = workload
        if self._ended:
            self._forget_ended(now)
        while self._due and self._due[0][0] <= now:
            self._changed.add(heapq.heappop(self._due)[1])
        changed, self._changed = self._changed, set()
        for uid in sorted(changed, key=self._order):
            tracked = self._tracked.get(uid)
            if tracked is not None:
                self._assign(uid, tracked, now)

    def _forget_ended(self, now: float) -> None:
        """Forget ended pods that were replaced, and all of them while the cluster refuses to create pods."""
        if self.workload.refused or len(self) >= self.wanted:
            self._ended.clear()
        self._ended = [each for each in self._ended if now - each.at < self._timing.start_timeout]

    def next_due(self) -> float | None:
        """When the group of a pod may change without an event, Unix seconds; None if no group can."""
        return self._due[0][0] if self._due else None

    def _order(self, uid: str) -> tuple[float, str]:
        """Pods enter a group in the order in which they became ready."""
        tracked = self._tracked.get(uid)
        if tracked is None:
            return 0.0, uid
        return tracked.ready_since or 0.0, tracked.pod.metadata.name

    def _track(self, pod: Pod, now: float) -> None:
        uid = pod.metadata.uid
        in_place = self._adapter.in_place and pod.metadata.created < self._created - 1
        remembered = self._remembered.get(uid)
        ended = self._ended.pop(0) if remembered is None and self._ended else None
        membership = self._memberships.get(uid)
        tracked = self._tracked[uid] = start_tracking(
            pod,
            self._began,
            now,
            was_up=membership is not None and not membership.member.overruled,
            down_since=remembered,
            node_ready_at=self._nodes.node_ready_at(pod.node),
            in_place=in_place,
            held_up=self._held_up and not pod.ready,
        )
        if ended is not None:
            tracked.inherited, tracked.down_since = True, ended.down_since
            tracked.breaks, tracked.broken = ended.breaks, ended.was_up
        self._uid_by_name[pod.metadata.name] = uid
        self._set_membership_by_name(pod.metadata.name)

    def _assign(self, uid: str, tracked: TrackedPod, now: float) -> None:
        if uid in self._up_at:
            tracked.down_since, tracked.broken = now, True  # for the case that the pod is not up any more
        health, due = assess(
            tracked,
            self.workload.min_ready,
            self._timing,
            now,
            node_ready=self._nodes.node_ready(tracked.pod.node),
            node_lost=self._nodes.node_lost(tracked.pod.node),
        )
        if due is not None:
            heapq.heappush(self._due, (due, uid))
        if health is Health.UP:
            if uid not in self._up_at:
                self._up_at[uid] = now
                self.progress_at = max(self.progress_at, now)
        elif self._up_at.pop(uid, None) is not None:
            tracked.breaks += 1
        group = self._group(uid, health)
        old = self._group_of.get(uid)
        if group != old:
            if old is not None:
                del self._groups[old][uid]
            self._groups[group][uid] = tracked
            self._group_of[uid] = group
            self.revision += 1

    def _group(self, uid: str, health: Health) -> Group:
        membership = self._memberships.get(uid)
        if membership is not None and _fails(membership.member):
            return Group.FAILED
        if health is not Health.UP:
            return _BY_HEALTH[health]
        if membership is None:
            return Group.PREPARING
        return Group.PASSED if membership.member.verdict or membership.batch.done else Group.CHECKING

    def _untrack(self, uid: str) -> None:
        self._mislabelled.discard(uid)
        tracked = self._tracked.pop(uid, None)
        if tracked is None:
            return
        self._uid_by_name.pop(tracked.pod.metadata.name, None)
        self._up_at.pop(uid, None)
        group = self._group_of.pop(uid, None)
        if group is not None:
            del self._groups[group][uid]
            self.revision += 1


def _fails(member: Member) -> bool:
    """Whether the explicit verdict fails the pod."""
    return bool(member.verdict) and member.verdict != Verdict.PASS


def _message(status: ChangeWorkloadStatus) -> str:
    verified = find_condition(status.conditions, ConditionType.VERIFIED)
    return verified.message if verified is not None else ""
