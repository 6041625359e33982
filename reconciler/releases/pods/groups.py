"""The pods of one release, grouped by their progress, and updated with each event.

A decision reads the groups and their sizes. So it takes time only for the pods that have changed. After a restart, the
groups are rebuilt from the caches.
"""

import heapq
import math
from collections.abc import Iterable, Iterator

from altershield.api.change_workload import SourceRef
from altershield.api.pod_verdicts import PodInfo
from altershield.api.rollout import Step
from altershield.releases.release import version_of
from altershield.workloads import BY_KIND, is_pod_of_revision
from altershield.workloads.pods import Fault, Pod, Trouble
from altershield.workloads.workload import Workload
from reconciler.cluster.batch import Batch, Member
from reconciler.cluster.nodes import Nodes
from reconciler.cluster.release import Release
from reconciler.releases.pods.blame import Cause, Parts, faults_of
from reconciler.releases.pods.group import Group, group_of
from reconciler.releases.pods.health import Health, Timing, TrackedPod, assess, fault, update_tracked
from reconciler.releases.pods.memberships import Membership, Memberships
from reconciler.releases.pods.not_up import NotUpPods, set_event
from reconciler.releases.pods.older import OlderPods
from reconciler.releases.pods.predecessors import Predecessors
from reconciler.releases.pods.starts import PodStarts
from reconciler.releases.pods.words import words
from reconciler.rollout.node_sets import NodeSet, node_sets


class PodGroups:
    """The pods of one release. `source` is the object with their template."""

    def __init__(self, workload: Workload, release: Release, source: SourceRef, nodes: Nodes, timing: Timing) -> None:
        self.release_uid = release.metadata.uid
        self.source = source
        self.workload = workload
        self.memberships = Memberships(release.status.retried_batches)
        self.older = OlderPods()
        self.not_up = NotUpPods(timing)
        self.revision = 0
        """Increases with each change of a group."""
        self.written_revision = -1
        """The revision that the lists in the ChangeWorkload show; -1 if it is not known, because the groups are new."""
        self.lists_changed_at: float | None = None
        """When `revision` first changed since the lists were written, Unix seconds; None if it has not."""
        self.progress_at = float(release.spec.create_time_unix)
        """When a pod last came up, or further ones were wanted than there are, Unix seconds."""
        self.cause = Cause()
        self._adapter, self._wanted = BY_KIND[workload.group_kind], math.inf
        self._created = release.spec.create_time_unix
        self._retried = release.status.retry_time_unix
        self._nodes = nodes
        self._timing = timing
        self.predecessors = Predecessors()
        self._starts = PodStarts(release, timing, in_place=self._adapter.in_place)
        self._tracked: dict[str, TrackedPod] = {}
        self._up_at: dict[str, float] = {}
        self._group_of: dict[str, Group] = {}
        self._groups: dict[Group, dict[str, TrackedPod]] = {group: {} for group in Group}
        self._uid_by_name: dict[str, str] = {}
        self._due: list[tuple[float, str]] = []
        self._changed: set[str] = set()
        self._mislabelled: set[str] = set()
        self._restarted: set[str] = set()
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

    def __len__(self) -> int:
        """The number of pods of this version that exist."""
        return len(self._group_of)

    @property
    def wanted(self) -> int:
        """The number of pods of this version that should exist now."""
        return self.older.wanted(self.workload)

    @property
    def reached(self) -> int:
        """The number of pods of this version that count towards `wanted`. Pods on nodes that are lost do not count: the
        pods of a deleted node look ready until they are deleted too, a minute later."""
        pods = (self._tracked[uid].pod for uid in self._group_of)
        return sum(self.older.leave_room_for(pod, self.workload) for pod in pods if not self._nodes.node_lost(pod.node))

    @property
    def scales_down(self) -> bool:
        """Whether more pods exist than the workload is to have. Its controller will delete some of them, and it is not
        known which ones."""
        return self.older.are_too_many(self.workload, len(self))

    def count(self, group: Group) -> int:
        """The number of pods in a group."""
        return len(self._groups[group])

    def pods_in(self, group: Group) -> Iterable[TrackedPod]:
        """The pods of a group, in the order in which they entered it."""
        return self._groups[group].values()

    def longest_limit(self, group: Group) -> float:
        """The longest time that a pod of the group may take to come up, in seconds; 0 if the group is empty."""
        limits = (each.limit for each in self._groups[group].values())
        return max((each.seconds if each is not None else self._timing.start_timeout for each in limits), default=0.0)

    def up_at(self, tracked: TrackedPod) -> float:
        """When the pod came up, Unix seconds; 0 if it is not up."""
        return self._up_at.get(tracked.pod.metadata.uid, 0.0)

    def group(self, tracked: TrackedPod) -> Group | None:
        """The group of a pod; None if it has none yet."""
        return self._group_of.get(tracked.pod.metadata.uid)

    def restarted(self) -> list[TrackedPod]:
        """The pods with containers that were restarted, by name."""
        found = [self._tracked[uid] for uid in self._restarted if uid in self._group_of]
        return sorted(found, key=lambda each: each.pod.metadata.name)

    def node_ready_at(self, tracked: TrackedPod, now: float) -> float:
        """When the pod's node became ready, Unix seconds: `now` if it is not ready, 0 if the time is not known."""
        node = tracked.pod.node
        return self._nodes.node_ready_at(node) if self._nodes.node_ready(node) else now

    def on_ready_node(self, pod: Pod) -> bool:
        """Whether the pod is on a node that is ready."""
        return self._nodes.node_ready(pod.node) and not self._nodes.node_lost(pod.node)

    def node_sets(self, steps: Iterable[Step]) -> tuple[NodeSet, ...]:
        """The nodes that each of these steps selects."""
        return node_sets(
            steps,
            self.workload.replicas,
            updated=(self._tracked[uid].pod for uid in self._group_of),
            older=self.older,
            nodes=self._nodes.node_labels(),
            on_ready_node=self.on_ready_node,
        )

    def fault(self, tracked: TrackedPod) -> Fault | None:
        """The reason why the cluster keeps the pod from being up; None if the cluster does not."""
        return fault(tracked, node_lost=self._nodes.node_lost(tracked.pod.node))

    def words(self, tracked: TrackedPod) -> Trouble | None:
        """Why the pod is not up; None if nothing says why."""
        return words(tracked, node_lost=self._nodes.node_lost(tracked.pod.node))

    def member(self, tracked: TrackedPod) -> Member | None:
        """The pod's entry in its newest batch, or None."""
        membership = self.memberships.newest(tracked.pod.metadata.uid)
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

    def waiting_batches(self) -> list[Batch]:
        """The ChangePods that wait for a person because a check has no result. Only ChangePods with an existing pod are
        included."""
        waiting = self.memberships.waiting_batches()
        return [each for each in waiting if any(self.has_pod(member.uid) for member in each.members)]

    def lists_are_written(self) -> None:
        """The ChangeWorkload shows the present lists."""
        self.written_revision, self.lists_changed_at = self.revision, None

    def mislabelled(self) -> list[Pod]:
        """Pods of the release whose version label has another value."""
        return [self._tracked[uid].pod for uid in self._mislabelled]

    def pods_by_uid(self) -> dict[str, Pod]:
        """All pods of the workload, of every version, by uid."""
        return {uid: tracked.pod for uid, tracked in self._tracked.items()} | self.older.by_uid

    @property
    def rebuildable(self) -> bool:
        """Whether everything in the groups can be rebuilt from the caches."""
        return not self._starts.replacement_due and self.count(Group.PASSED) + self.count(Group.FAILED) == len(self)

    def has_pod(self, uid: str) -> bool:
        """Whether a pod with this uid exists in the release."""
        return uid in self._group_of

    def update_pod(self, pod: Pod, now: float, ready_since: float | None = None) -> None:
        """Take over a new or changed pod of the workload. `ready_since`: see `start_tracking`."""
        uid = pod.metadata.uid
        self.predecessors.see(pod)
        if not is_pod_of_revision(self._adapter, pod, self.source.name, self.source.uid):
            # a failing verdict lasts as long as the pod exists, even if its template hash changes
            membership = self.memberships.newest(uid)
            failed = membership is not None and membership.fails and pod.exists
            if not failed:
                self._untrack(uid)
                self.older.update(pod)
                return
        updated_in_place = self.older.remove(uid)
        if not pod.exists:
            if uid in self._tracked:
                self.predecessors.ended(pod)
            if pod.ended and not pod.disrupted and not pod.metadata.deleting and uid in self._tracked:
                self._starts.keep(self._tracked[uid], now, up=uid in self._up_at)
            self._untrack(uid)
            return
        known = self._tracked.get(uid)
        if known is None:
            self._track(pod, now, ready_since, updated_in_place=updated_in_place)
        else:
            update_tracked(known, pod, now, updated_in_place=known.pod.hash != pod.hash)
        if pod.restarted:
            self._restarted.add(uid)
        if pod.version == self._version:
            self._mislabelled.discard(uid)
        else:
            self._mislabelled.add(uid)
        self._changed.add(uid)

    def remove_pod(self, uid: str) -> None:
        """Remove a pod that was deleted, or that does not belong to the workload any more."""
        self.predecessors.remove(uid)
        self.older.remove(uid)
        self._untrack(uid)

    def update_batch(self, batch: Batch) -> None:
        """Take over a new or changed batch of the release."""
        self.memberships.update_batch(batch)
        # a pod that passed in an earlier release of this version may have been updated in place twice since
        stale = self._adapter.in_place and batch.metadata.created < self._created - 1
        for member in batch.members:
            membership = Membership(batch, member)
            if stale and not membership.fails:
                continue
            if member.uid:
                self._join(member.uid, membership)
            elif self.memberships.add_named(membership):
                self._join_by_name(member.pod)

    def _join_by_name(self, name: str) -> None:
        """Find the pod of a batch without uids: the pod with this name, if it existed when the batch was created."""
        membership, uid = self.memberships.newest_named(name), self._uid_by_name.get(name)
        tracked = self._tracked.get(uid) if uid is not None else None
        if membership is None or uid is None or tracked is None:
            return
        if membership.batch.metadata.created >= tracked.pod.metadata.created:
            tracked.was_up = tracked.was_up or not membership.member.overruled
            self._join(uid, membership)

    def _join(self, uid: str, membership: Membership) -> None:
        known = self.memberships.newest(uid)
        if not self.memberships.add(uid, membership):
            return
        tracked = self._tracked.get(uid)
        if tracked is not None and membership.member.overruled and known is not None and known.fails:
            tracked.was_up = False  # so it fails again only if it comes up and then breaks
        self._changed.add(uid)
        self.revision += 1

    def set_events_fault(self, uid: str, found: Fault | None, now: float) -> None:
        """Set the cause in the Events of a pod, as read at `now` (Unix seconds); None: they name no cause."""
        tracked = self._tracked.get(uid)
        if tracked is not None:
            tracked.fault, tracked.fault_until = found, now + self._timing.start_timeout
            self._changed.add(uid)

    def set_changed(self, parts: Parts | None, until: float = math.inf) -> None:
        """Set what the release changed. None: it is not known, or does not matter because all pods came up. `until`:
        when it is to be found out again, Unix seconds."""
        self.cause.changed_until = until
        if parts != self.cause.changed:
            self.cause.changed = parts
            self._changed.update(*(self._groups[group] for group in (Group.FAULT, Group.OVERDUE)))

    def set_refusal(self, text: str, now: float) -> None:
        """Set why pods cannot be created, as read at `now` (Unix seconds); empty if the Events do not say so."""
        self.cause.refusal, self.cause.refusal_until = text, now + self._timing.unschedulable

    def set_event(self, uid: str, found: Trouble | None, now: float) -> None:
        """Set what the Events of a pod say, as read at `now` (Unix seconds); None: nothing."""
        tracked = self._tracked.get(uid)
        if tracked is not None:
            set_event(tracked, found, now)
            self._changed.add(uid)

    def refresh(self, workload: Workload, now: float) -> None:
        """Bring the groups up to date at `now` (Unix seconds)."""
        list(self.refresh_in_steps(workload, now))

    def refresh_in_steps(self, workload: Workload, now: float) -> Iterator[None]:
        """`refresh` with one pod at each step. Nothing else may change the groups between the steps."""
        if (workload.min_ready, workload.start) != (self.workload.min_ready, self.workload.start):
            self._changed.update(self._tracked)
        self.workload = workload
        if len(self) >= self._wanted < self.wanted:  # a step begins, or the workload is scaled: further pods have time
            self.progress_at = max(self.progress_at, now)
        self._wanted = self.wanted
        # while the cluster refuses to create pods, no pod replaces another one
        all_replaced = bool(workload.refused) or len(self) >= self.wanted
        self._starts.forget_ended(now, all_replaced=all_replaced)
        if all_replaced:
            self.predecessors.forget()
        while self._due and self._due[0][0] <= now:
            self._changed.add(heapq.heappop(self._due)[1])
        changed, self._changed = self._changed, set()
        for uid in sorted(changed, key=self._order):
            tracked = self._tracked.get(uid)
            if tracked is not None:
                self._assign(uid, tracked, now)
                yield
        if self.revision != self.written_revision and self.lists_changed_at is None:
            self.lists_changed_at = now

    def next_due(self) -> float | None:
        """When the group of a pod may change without an event, Unix seconds; None if no group can."""
        return self._due[0][0] if self._due else None

    def _order(self, uid: str) -> tuple[float, str]:
        """Pods enter a group in the order in which they became ready."""
        tracked = self._tracked.get(uid)
        if tracked is None:
            return 0.0, uid
        return tracked.ready_since or 0.0, tracked.pod.metadata.name

    def _track(self, pod: Pod, now: float, ready_since: float | None, *, updated_in_place: bool) -> None:
        uid = pod.metadata.uid
        membership = self.memberships.newest(uid)
        self._tracked[uid] = self._starts.track(
            pod,
            now,
            was_up=membership is not None and not membership.member.overruled,
            up_at=float(membership.batch.metadata.created) if membership is not None else 0.0,
            node_ready_at=self._nodes.node_ready_at(pod.node),
            ready_since=ready_since,
            updated_in_place=updated_in_place,
        )
        self._tracked[uid].predecessor = self.predecessors.take(pod)
        self._uid_by_name[pod.metadata.name] = uid
        self._join_by_name(pod.metadata.name)

    def _assign(self, uid: str, tracked: TrackedPod, now: float) -> None:
        if uid in self._up_at:
            tracked.down_since, tracked.broken = now, True  # for the case that the pod is not up any more
        node_lost = self._nodes.node_lost(tracked.pod.node)
        health, due = assess(
            tracked,
            self.workload,
            self._timing,
            now,
            node_ready=self._nodes.node_ready(tracked.pod.node),
            node_lost=node_lost,
            blamed=faults_of(self.cause.changed) if self.cause.changed else (),
        )
        if due is not None:
            heapq.heappush(self._due, (due, uid))
        if health is Health.UP:
            if uid not in self._up_at:
                self._up_at[uid] = now
                self.progress_at = max(self.progress_at, now)
        elif self._up_at.pop(uid, None) is not None:
            tracked.breaks += 1
        group = group_of(health, self.memberships.newest(uid))
        self.not_up.update(tracked, group, node_lost=node_lost)
        old = self._group_of.get(uid)
        if group != old:
            if old is not None:
                del self._groups[old][uid]
            self._groups[group][uid] = tracked
            self._group_of[uid] = group
            self.revision += 1

    def _untrack(self, uid: str) -> None:
        self._mislabelled.discard(uid)
        self._restarted.discard(uid)
        tracked = self._tracked.pop(uid, None)
        if tracked is None:
            return
        self._uid_by_name.pop(tracked.pod.metadata.name, None)
        self._up_at.pop(uid, None)
        self.not_up.remove(uid)
        group = self._group_of.pop(uid, None)
        if group is not None:
            del self._groups[group][uid]
            self.revision += 1
