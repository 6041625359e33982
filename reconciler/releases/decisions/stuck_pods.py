"""Which pods of older versions are deleted because the workload's controller would wait for them without end. Without
I/O.

A pod that only starts slowly, or that was up and is not ready for a moment, is left alone: a wrong deletion is worse
than a wait. So a pod is deleted only if all of this is true:

- The controller waits for it (`altershield.workloads.blocking`).
- It is overdue, by the same rules as the pods of a release. A pod without a node is overdue too, because it never ran.
  The probes of its own template count too, which only the pod has (`starts_until`).
- Nothing says that it was up: neither its label `operate-finished`, nor a ChangePod, nor what this process saw.
- It was not ready when this process first read it, and by its kubelet's times it had never been ready. This is not
  required if its ChangePod says that AlterShield failed it because it did not come up.

The pods of a version that was rolled back are deleted as soon as they are not ready.
"""

from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import NamedTuple

from altershield.api.change_workload import WorkloadState
from altershield.api.condition_types import Giver
from altershield.releases import rolled_back, state
from altershield.workloads import BY_KIND, is_pod_of_revision
from altershield.workloads.blocking import blocking_pods
from altershield.workloads.pods import Pod
from altershield.workloads.start_budget import StartBudget
from altershield.workloads.workload import Strategy, Workload
from reconciler.cluster.batch import Batch
from reconciler.cluster.nodes import Nodes
from reconciler.cluster.release import Release
from reconciler.releases.pods.health import Health, Timing, TrackedPod, assess, start_tracking, update_tracked
from reconciler.releases.pods.limits import limit
from reconciler.releases.terms.rules import timing_of


class Stuck(NamedTuple):
    rolled_back: list[Pod]
    """The pods of versions that were rolled back."""
    overdue: list[Pod]
    """The other pods to delete, if their own templates give them no more time."""
    timing: Timing
    """The times for `starts_until`."""
    due: float | None
    """When another pod may become overdue, Unix seconds; None if this takes an event."""


class StuckPods:
    """The pods of one workload that are not up. `len` is their number."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._tracked: dict[str, TrackedPod] = {}
        self._doubtful: set[str] = set()
        """The uids of pods that had been ready before this process first read them. They may have been up."""

    def __len__(self) -> int:
        return len(self._tracked)

    def find(
        self,
        workload: Workload,
        pods: Iterable[Pod],
        present: Release,
        others: Sequence[Release],
        batches: Iterable[Batch],
        timing: Timing,
        now: float,
        *,
        enabled: bool,
    ) -> Stuck:
        """The pods to delete at `now` (Unix seconds).

        `pods`: those of the workload, of every version. `present`: its current release, `others`: its other releases.
        `batches`: the batches of all releases. `timing`: the times of releases without a policy. `enabled`: whether
        pods of versions that were not rolled back are deleted too.
        """
        timing = _longest(timing, [present, *others])
        overdue, due = self._overdue(workload, pods, timing, now)
        if state(present) is WorkloadState.ROLLBACK:
            return Stuck([], [], timing, None)  # the present version is about to be replaced
        waits_for = blocking_pods(workload, (tracked.pod for tracked in self._tracked.values()))
        rolled_back = _of_rolled_back(workload, waits_for, others)
        if not enabled or workload.held or workload.in_force.strategy is not Strategy.ROLLING:
            return Stuck(rolled_back, [], timing, None)
        known = {pod.metadata.uid for pod in rolled_back}
        candidates = [
            pod
            for pod in waits_for
            if pod.metadata.uid in overdue and pod.metadata.uid not in known and not pod.finished
        ]
        found = self._never_up(candidates, batches) if candidates else []
        return Stuck(rolled_back, found, timing, due if waits_for else None)

    def _never_up(self, pods: Sequence[Pod], batches: Iterable[Batch]) -> list[Pod]:
        """The pods without any sign that they were up."""
        failed, came_up = _in_batches(batches)
        found = []
        for pod in pods:
            names = {pod.metadata.packed_uid, pod.metadata.name}
            doubtful = pod.metadata.uid in self._doubtful and not names & failed
            if not doubtful and not names & came_up:
                found.append(pod)
        return found

    def _overdue(
        self, workload: Workload, pods: Iterable[Pod], timing: Timing, now: float
    ) -> tuple[set[str], float | None]:
        """The uids of the pods that are overdue, and when another one may be. A pod that became ready stays tracked
        until it is up, because it may crash before. The pods of the present version are tracked too: they may be those
        of an older version soon."""
        there = {
            pod.metadata.uid: pod for pod in pods if pod.exists and (not pod.ready or pod.metadata.uid in self._tracked)
        }
        self._tracked = {uid: tracked for uid, tracked in self._tracked.items() if uid in there}
        found, wakes = set(), []
        for uid, pod in there.items():
            tracked = self._tracked.get(uid)
            if tracked is None:
                tracked = start_tracking(pod, 0.0, now, was_up=False, down_since=None, in_place=False)
                self._tracked[uid] = tracked
                if pod.was_ready:
                    self._doubtful.add(uid)
            elif tracked.pod is not pod:
                update_tracked(tracked, pod, now, updated_in_place=tracked.pod.hash != pod.hash)
            health, due = assess(
                tracked,
                workload,
                timing,
                now,
                node_ready=self._nodes.node_ready(pod.node),
                node_lost=self._nodes.node_lost(pod.node),
            )
            if health is Health.UP:
                del self._tracked[uid]
            elif health is Health.OVERDUE or (health is Health.FAULT and pod.unscheduled):
                found.add(uid)
            elif due is not None:
                wakes.append(due)
        self._doubtful &= self._tracked.keys()
        return found, min(wakes, default=None)


def starts_until(pod: Pod, budget: StartBudget, timing: Timing) -> float:
    """Until when the containers of a pod that was never up may start, Unix seconds. `budget`: that of its own
    template."""
    allowed = limit(pod.starting, budget, timing.start_timeout, timing.max_start, 0)
    return max(pod.metadata.created, pod.scheduled_at) + allowed.seconds


def _of_rolled_back(workload: Workload, pods: Iterable[Pod], others: Iterable[Release]) -> list[Pod]:
    """The pods of versions that were rolled back. A pod that was ready when its version was rolled back may have become
    unready since."""
    adapter = BY_KIND[workload.group_kind]
    sources = [each.status.source for each in others if rolled_back(each) and each.status.source.uid]
    return [pod for pod in pods if any(is_pod_of_revision(adapter, pod, source.name, source.uid) for source in sources)]


def _longest(timing: Timing, own: Sequence[Release]) -> Timing:
    """The longest times of these releases, because the version of a pod may have no ChangeWorkload any more."""
    found = [timing_of(timing, each.spec.policy) for each in own]
    return Timing(**{field.name: max(getattr(each, field.name) for each in found) for field in fields(Timing)})


def _in_batches(batches: Iterable[Batch]) -> tuple[set[int | str], set[int | str]]:
    """The packed uids of the pods that failed because they did not come up, and of the other pods in ChangePods, which
    came up. An older release of AlterShield wrote names without uids."""
    failed, came_up = set[int | str](), set[int | str]()
    for batch in batches:
        (failed if batch.giver == Giver.HEALTH else came_up).update(
            member.packed_uid or member.pod for member in batch.members
        )
    return failed, came_up
