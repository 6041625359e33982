"""The next step of a CloneSet, and its status. Pure functions.

The rules are those of OpenKruise (pkg/controller/cloneset/sync, cloneset_status.go). A CloneSet is scaled before it is
updated. One call is one step.
"""

from collections.abc import Sequence
from typing import NamedTuple

from kube_sandbox.cluster import selectors
from kube_sandbox.cluster.clone_sets import pods as clone_pods
from kube_sandbox.cluster.clone_sets import progress as clone_progress
from kube_sandbox.cluster.deployments import progress
from kube_sandbox.cluster.history import Revisions
from kube_sandbox.cluster.kinds import NO_LIMIT, Condition, Pod
from kube_sandbox.cluster.replica_sets import replicas
from kube_sandbox.cluster.shares import share
from kube_sandbox.cluster.workload_kinds import CloneSet, CloneSetStatus

FAILED_SCALE, FAILED_UPDATE = "FailedScale", "FailedUpdate"


class Plan(NamedTuple):
    create_current: int = 0
    create_update: int = 0
    delete: Sequence[Pod] = ()
    update: Sequence[Pod] = ()
    limited: int | None = None
    """The number of pods that scaleStrategy.maxUnavailable allows, if it limits the step."""


class _Counts(NamedTuple):
    """Counts of the active pods of a CloneSet."""

    total: int
    old: int
    new: int
    to_delete_old: int
    to_delete_new: int
    unavailable: int
    """Unavailable pods that are not marked for deletion."""

    @property
    def to_delete(self) -> int:
        return self.to_delete_old + self.to_delete_new


class _Surge(NamedTuple):
    total: int = 0
    old: int = 0


def plan(clone_set: CloneSet, pods: Sequence[Pod], revisions: Revisions, now: float) -> Plan:
    """The next step. `pods` are the active pods. The CloneSet is not being deleted."""
    return _scale(clone_set, pods, revisions, now) or _update(clone_set, pods, revisions, now)


def partition(clone_set: CloneSet) -> int:
    """The number of pods that keep the old template. A percentage below 100 leaves at least one pod to update."""
    wanted, desired = clone_set.spec.update_strategy.partition, clone_set.spec.replicas
    kept = share(wanted, desired, round_up=True)
    if desired > 1 and kept == desired and isinstance(wanted, str) and wanted != "100%":
        kept = desired - 1
    return max(0, min(kept, desired))


def status(
    clone_set: CloneSet,
    pods: Sequence[Pod],
    revisions: Revisions,
    collisions: int,
    failure: Condition | None,
    now: float,
) -> CloneSetStatus:
    """The status. `failure` is the condition for an error of the last scaling or update."""
    updated = [pod for pod in pods if clone_pods.is_of(pod, revisions.update)]
    wait = clone_set.spec.min_ready_seconds
    is_complete = len(updated) == len(pods) == clone_set.spec.replicas
    counted = CloneSetStatus(
        observed_generation=clone_set.metadata.generation,
        replicas=len(pods),
        ready_replicas=sum(clone_pods.is_updated_and_ready(pod, 0, now) for pod in pods),
        available_replicas=sum(clone_pods.is_available(pod, wait, now) for pod in pods),
        updated_replicas=len(updated),
        updated_ready_replicas=sum(clone_pods.is_updated_and_ready(pod, 0, now) for pod in updated),
        updated_available_replicas=sum(clone_pods.is_available(pod, wait, now) for pod in updated),
        expected_updated_replicas=clone_set.spec.replicas - partition(clone_set),
        current_revision=revisions.update if is_complete else revisions.current,
        update_revision=revisions.update,
        collision_count=collisions,
        label_selector=selectors.text(clone_set.spec.selector),
        conditions=clone_set.status.conditions,
    )
    if failure is not None:
        counted = progress.with_condition(counted, failure, now)
    return clone_progress.with_progressing(clone_set, counted, now)


def leftover_names(clone_set: CloneSet, pods: Sequence[Pod]) -> list[str] | None:
    """The names in podsToDelete whose pods still exist; None if all of them do."""
    names = {pod.metadata.name for pod in pods}
    listed = clone_set.spec.scale_strategy.pods_to_delete
    left = [name for name in listed if name in names]
    return None if len(left) == len(listed) else left


def _scale(clone_set: CloneSet, pods: Sequence[Pod], revisions: Revisions, now: float) -> Plan | None:
    """The step that scales the CloneSet; None if there is nothing to scale."""
    counts = _count(clone_set, pods, revisions, now)
    desired, kept = clone_set.spec.replicas, partition(clone_set)
    surge = _surge(clone_set, counts)
    missing = desired + surge.total - counts.total
    if missing > 0:
        return _grow(clone_set, counts, missing, kept + surge.old)
    allowed = max(_unavailable_bound(clone_set) + counts.total - desired - counts.unavailable, 0)
    marked = [pod for pod in pods if clone_pods.is_to_delete(clone_set, pod)]
    if marked:
        chosen = _within(marked, allowed)
        return Plan(delete=chosen) if chosen else None
    surplus = counts.total - desired - surge.total
    if surplus > 0:
        surplus_old = max(counts.old - kept - surge.old, 0)
        chosen = _expendable(pods, revisions, surplus, surplus_old, now)
        return Plan(delete=_within(chosen, allowed))
    return None


def _grow(clone_set: CloneSet, counts: _Counts, missing: int, old_wanted: int) -> Plan:
    bound = clone_set.spec.scale_strategy.max_unavailable
    allowed = NO_LIMIT if bound is None else share(bound, clone_set.spec.replicas, round_up=True)
    created = min(missing, max(allowed - counts.unavailable, 0))
    old = min(created, max(old_wanted - counts.old, 0))
    return Plan(old, created - old, limited=created if created < missing else None)


def _within(pods: Sequence[Pod], allowed: int) -> list[Pod]:
    """The pods that are not ready, and of the ready ones at most `allowed`."""
    chosen = []
    for pod in pods:
        if clone_pods.is_ready(pod):
            if allowed <= 0:
                continue
            allowed -= 1
        chosen.append(pod)
    return chosen


def _expendable(pods: Sequence[Pod], revisions: Revisions, count: int, count_old: int, now: float) -> list[Pod]:
    new = [pod for pod in pods if clone_pods.is_of(pod, revisions.update)]
    old = [pod for pod in pods if not clone_pods.is_of(pod, revisions.update)]
    count_old = min(count, count_old)
    chosen = replicas.to_delete(old, old, count_old, now)
    return [*chosen, *replicas.to_delete(new, new, count - count_old, now)]


def _update(clone_set: CloneSet, pods: Sequence[Pod], revisions: Revisions, now: float) -> Plan:
    strategy = clone_set.spec.update_strategy
    if strategy.paused or strategy.type == "OnDelete":
        return Plan()
    counts = _count(clone_set, pods, revisions, now)
    desired, kept = clone_set.spec.replicas, partition(clone_set)
    number = min(max(counts.old - kept, 0), max(desired - kept - counts.new, 0))
    outdated = [
        pod
        for pod in pods
        if not clone_pods.is_of(pod, revisions.update) and not clone_pods.is_to_delete(clone_set, pod)
    ]
    candidates = replicas.to_delete(outdated, (), number, now)
    bound = _unavailable_bound(clone_set) + counts.total - desired
    wait = clone_set.spec.min_ready_seconds
    unavailable = [pod for pod in pods if not clone_pods.is_available(pod, wait, now)]
    broken = sum(clone_pods.is_of(pod, revisions.update) for pod in unavailable)
    down = len(unavailable)
    chosen: list[Pod] = []
    for pod in candidates:
        if broken + len(chosen) >= bound:
            break
        if clone_pods.is_available(pod, wait, now):
            if down >= bound:
                break
            down += 1
        chosen.append(pod)
    return Plan(update=chosen)


def _count(clone_set: CloneSet, pods: Sequence[Pod], revisions: Revisions, now: float) -> _Counts:
    new = [pod for pod in pods if clone_pods.is_of(pod, revisions.update)]
    old = [pod for pod in pods if not clone_pods.is_of(pod, revisions.update)]
    wait = clone_set.spec.min_ready_seconds
    return _Counts(
        total=len(pods),
        old=len(old),
        new=len(new),
        to_delete_old=sum(clone_pods.is_to_delete(clone_set, pod) for pod in old),
        to_delete_new=sum(clone_pods.is_to_delete(clone_set, pod) for pod in new),
        unavailable=sum(
            not clone_pods.is_available(pod, wait, now) and not clone_pods.is_to_delete(clone_set, pod) for pod in pods
        ),
    )


def _surge(clone_set: CloneSet, counts: _Counts) -> _Surge:
    """The pods that may exist beyond `spec.replicas`, to replace pods that are deleted or updated."""
    most = _surge_bound(clone_set)
    if most <= 0:
        return _Surge()
    scaling = scaling_old = 0
    if counts.to_delete:
        excess = counts.unavailable + counts.to_delete - _unavailable_bound(clone_set)
        scaling = min(max(excess, 0), counts.to_delete)
        scaling_old = max(scaling - counts.to_delete_new, 0)
    kept = partition(clone_set)
    too_many_old = max(counts.old - kept, 0)
    too_few_new = max(clone_set.spec.replicas - kept - counts.new, 0)
    updating = min(too_many_old, too_few_new)
    if scaling >= updating:
        total = min(most, scaling)
        return _Surge(total, min(total, scaling_old))
    return _Surge(min(most, updating))


def _surge_bound(clone_set: CloneSet) -> int:
    strategy = clone_set.spec.update_strategy
    return 0 if strategy.paused else share(strategy.max_surge, clone_set.spec.replicas, round_up=True)


def _unavailable_bound(clone_set: CloneSet) -> int:
    """maxUnavailable in pods. A percentage is rounded up, unless maxSurge allows additional pods."""
    strategy = clone_set.spec.update_strategy
    return share(strategy.max_unavailable, clone_set.spec.replicas, round_up=_surge_bound(clone_set) == 0)
