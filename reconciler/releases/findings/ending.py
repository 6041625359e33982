"""Decides when overdue pods end a release. Pure functions.

The release is rolled back in two cases: pods of an older version are ready, or no pod of any version is ready. In the
second case, no ready pod shows that the older version works. So a version that was itself released by a rollback is not
rolled back then. In all other cases, the release is suspended.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from altershield.api.change_workload import WorkloadState
from altershield.api.condition_types import ConditionType
from altershield.api.meta import find_condition, has_reason
from altershield.api.policy import OnNothingServes
from altershield.releases import rolled_back, state, version_of
from altershield.releases.enforcement import named
from altershield.workloads import BY_KIND
from altershield.workloads.pods import clip
from altershield.workloads.workload import Strategy, Workload
from kube_base.times import unix
from reconciler.cluster.release import went_back_to
from reconciler.releases.findings import restarts
from reconciler.releases.pods.blame import causes
from reconciler.releases.pods.group import Group
from reconciler.releases.pods.groups import PodGroups
from reconciler.releases.pods.health import TrackedPod, fault_overdue_at
from reconciler.releases.pods.words import words
from reconciler.releases.terms.snapshot import RollbackReason, Snapshot, Target

_SERVING = (Group.PASSED, Group.CHECKING, Group.PREPARING, Group.OBSERVING)


@dataclass(frozen=True, slots=True)
class Ending:
    """The release ends, because its pods do not come up or do not stay up."""

    pods: Sequence[TrackedPod]
    """The pods that are overdue or restart too often."""
    why: str
    """The reason, for conditions and Events."""


def ending(snapshot: Snapshot, now: float) -> Ending | None:
    """The end of the release, at `now` (Unix seconds); None if the release does not end now."""
    groups = snapshot.groups
    if groups is None or not health_counts(snapshot):
        return None
    failing = failing_pods(snapshot, now)
    refused = _refused(snapshot, groups, now)
    late = len(failing) + refused
    if not late or late < snapshot.settings.overdue(len(groups) + refused):
        return None
    texts = [health_message(snapshot, now)] if failing else []
    if refused:
        why = refusal(snapshot.workload, groups)
        texts.append(f"{refused} pods cannot be created because of what this release changed: {why}")
    return Ending(failing, "; ".join(texts))


def refusal(workload: Workload, groups: PodGroups) -> str:
    """Why pods cannot be created; empty if they can, or if it is not known."""
    return workload.refused or groups.cause.refusal


def _refused(snapshot: Snapshot, groups: PodGroups, now: float) -> int:
    """The number of pods that are overdue because they cannot be created, and the release is the cause."""
    text = refusal(snapshot.workload, groups)
    if not text or not groups.cause.changed or not causes(groups.cause.changed, text):
        return 0
    return pods_missing(snapshot, groups) if _is_creation_late(snapshot, groups, now) else 0


def pods_missing(snapshot: Snapshot, groups: PodGroups) -> int:
    """The number of pods that should exist and do not."""
    return max(0, groups.wanted - len(groups))


def _creation_late_at(snapshot: Snapshot, groups: PodGroups) -> float:
    """When pods that cannot be created are overdue, Unix seconds."""
    stall = find_condition(snapshot.release.status.conditions, ConditionType.STALLED)
    resumed_at = unix(stall.last_transition_time) if stall is not None and not stall.is_true else 0.0
    return max(groups.progress_at, resumed_at) + snapshot.timing.unschedulable


def creation_wake(snapshot: Snapshot, groups: PodGroups, now: float) -> float | None:
    """The next time to find out why pods are not created, Unix seconds; None if no time is known."""
    times = (_creation_late_at(snapshot, groups), groups.cause.refusal_until)
    return min((each for each in times if each > now), default=None)


def _is_creation_late(snapshot: Snapshot, groups: PodGroups, now: float) -> bool:
    present = state(snapshot.release)
    if present is WorkloadState.SUSPEND or snapshot.workload.in_force.paused or not pods_missing(snapshot, groups):
        return False
    # a rollback that has begun goes on, although a new leader does not know when the last pod came up
    return present is WorkloadState.ROLLBACK or now >= _creation_late_at(snapshot, groups)


def unknown_again_at(snapshot: Snapshot, now: float) -> float:
    """The next time to look for the cause if there is no version to go back to at the moment, Unix seconds. The pods of
    the previous version may be unready for a short time only."""
    return now + snapshot.timing.unschedulable if snapshot.previous.uid else math.inf


def cause_unknown(snapshot: Snapshot, now: float) -> bool:
    """Whether the API server has to be read to find out whether the cluster refuses pods because of what this release
    changed."""
    groups, workload = snapshot.groups, snapshot.workload
    if groups is None or state(snapshot.release) is WorkloadState.SUCCESS:
        return False
    cause = groups.cause
    known = cause.changed is not None and now < cause.changed_until
    if not known and any(now >= fault_overdue_at(tracked, snapshot.timing) for tracked in groups.pods_in(Group.FAULT)):
        return True
    if (known and not cause.changed) or not _is_creation_late(snapshot, groups, now):
        return False
    if BY_KIND[workload.group_kind].intermediate is not None:
        return not known and bool(workload.refused)
    return now >= cause.refusal_until


def health_counts(snapshot: Snapshot) -> bool:
    """Whether the health of pods counts against the release: until it has settled."""
    if state(snapshot.release) != WorkloadState.SUCCESS:
        return True
    settled = find_condition(snapshot.release.status.conditions, ConditionType.SETTLED)
    return settled is not None and not settled.is_true


def failing_pods(snapshot: Snapshot, now: float) -> list[TrackedPod]:
    """The pods that end the release if they are enough: overdue pods, and pods that restart too often."""
    return [*overdue_pods(snapshot), *restarts.failing(snapshot, now)]


def overdue_pods(snapshot: Snapshot) -> list[TrackedPod]:
    """The overdue pods. If a person overruled the failing verdict on a pod, the pod is included only if it has been up
    since."""
    groups = snapshot.groups
    if groups is None:
        return []
    found = []
    for tracked in groups.pods_in(Group.OVERDUE):
        member = groups.member(tracked)
        if member is None or not member.overruled or tracked.was_up:
            found.append(tracked)
    return found


def overdue_message(overdue: Sequence[TrackedPod], now: float) -> str:
    """The message about overdue pods: their number, and the name, the time and the reason of the oldest one."""
    first = min(overdue, key=lambda tracked: (tracked.down_since, tracked.pod.metadata.name))
    others = f" (and {len(overdue) - 1} more)" if len(overdue) > 1 else ""
    return f"pod {first.pod.metadata.name}{others} is not up {_since(first, now)}: {reason(first)}"


def health_message(snapshot: Snapshot, now: float) -> str:
    """The message about the pods that are overdue or restart too often; empty if there are none."""
    overdue, restarting = overdue_pods(snapshot), restarts.failing(snapshot, now)
    messages = [overdue_message(overdue, now)] if overdue else []
    if restarting:
        messages.append(restarts.message(snapshot, restarting, now))
    return "; ".join(messages)


def health_verdict(snapshot: Snapshot, tracked: TrackedPod, now: float) -> str:
    """The message of the failing verdict on a pod that is overdue or restarts too often."""
    overdue = snapshot.groups is None or snapshot.groups.group(tracked) is Group.OVERDUE
    return overdue_verdict(tracked, now) if overdue else restarts.words(snapshot, tracked, now)


def overdue_verdict(tracked: TrackedPod, now: float) -> str:
    """The message of the failing verdict on an overdue pod."""
    return clip(f"not up {_since(tracked, now)}: {reason(tracked)}")


def reason(tracked: TrackedPod) -> str:
    """Why the pod is not up, in the words of the kubelet or the scheduler if there are any."""
    if tracked.pod.unscheduled and tracked.pod.trouble is None:
        return "no scheduler has looked at it; check that the scheduler of its schedulerName runs"
    return str(words(tracked) or "not ready")


def _since(tracked: TrackedPod, now: float) -> str:
    seconds = f"{int(now - tracked.down_since)} s"
    if tracked.was_up:
        return f"any more (it was up until {seconds} ago)"
    why = tracked.limit.why if tracked.limit is not None else ""
    counted = ", counted with the pods that it replaces" if tracked.inherited else ""
    return f"after {seconds}{f' ({why})' if why else ''}{counted}"


def no_rollback_reason(snapshot: Snapshot, targets: Sequence[Target]) -> str:
    """The reason why the release is not rolled back automatically; empty if it may be rolled back. The reason that
    rollbacks are off comes last, because the report about the mode `enforce` needs the other reasons."""
    workload, policy = snapshot.workload, snapshot.release.spec.policy
    nothing_serves = not _serving(targets) and not _is_any_up(snapshot)
    always = nothing_serves and policy.on_nothing_serves is OnNothingServes.ROLLBACK
    if snapshot.settings.no_start_rollback and not always:  # first: the mode `enforce` would not roll back either
        return snapshot.settings.no_start_rollback
    if workload.in_force.strategy is not Strategy.ROLLING and not always:
        return f"the update strategy is {workload.in_force.strategy}, not a rolling one"
    if workload.in_force.paused:
        return "the rollout is paused"
    if has_reason(snapshot.release.status.conditions, ConditionType.ROLLED_BACK, RollbackReason.RELEASED_AGAIN):
        return "this version was rolled back once before and then released again"
    if nothing_serves:
        if policy.on_nothing_serves is OnNothingServes.SUSPEND:
            return f"no pod of any version serves, and {named(policy)} has onNothingServes: suspend"
        if any(rolled_back(each) and went_back_to(each, workload) for each in snapshot.others):
            return "no pod of any version serves, and this version was itself restored by a rollback"
    elif not _serving(targets):
        return "no pod of an older version is ready"
    if not snapshot.settings.rollback:
        return snapshot.settings.rollback_off
    return ""


def _serving(targets: Sequence[Target]) -> int:
    """The number of ready pods of other versions, without those of versions that were rolled back: they serve only
    until the controller has deleted them."""
    return sum(each.serving for each in targets if each.release is None or not rolled_back(each.release))


def _is_any_up(snapshot: Snapshot) -> bool:
    """Whether a pod of this version is up, or is ready and has time left to come up. A pod that is overdue is neither,
    although it may be ready at the moment."""
    groups = snapshot.groups
    if groups is None or any(map(groups.count, _SERVING)):
        return True
    return any(tracked.pod.ready for tracked in groups.pods_in(Group.FAILED))


def automatic_target(snapshot: Snapshot, targets: Sequence[Target]) -> Target | str:
    """The target of an automatic rollback, or the reason why there is no target.

    The target is the last version that passed. It is recognised by its object, or by its template if the object was
    created again. If no version has passed since AlterShield was installed, the target is the newest object without a
    ChangeWorkload of which all pods are ready.
    """
    previous = snapshot.previous
    if previous.uid:
        accepted = {previous.fingerprint, previous.version} - {""}
        same = [target for target in targets if target.source.fingerprint in accepted]
        exact = [target for target in same if target.source.uid == previous.uid]
        if exact or same:
            found = (exact or same)[0]
            version = found.source.version or previous.version
            return _if_healthy(replace(found, source=msgspec.structs.replace(found.source, version=version)))
        if any(target.source.uid == previous.uid for target in targets):
            return f"the pod template in {previous.kind} {previous.name} has been changed since it passed"
        return f"{previous.kind} {previous.name}, which held the last version that passed, does not exist any more"
    healthy = [each for each in targets if each.release is None and each.serving and each.serving == each.pods]
    if healthy:
        return healthy[0]
    return "no older version has passed verification"


def _if_healthy(target: Target) -> Target | str:
    """The target, or the reason why it is unsuitable: it has been rolled back or suspended since it passed, or none of
    its pods is ready."""
    release = target.release
    if release is not None and (rolled_back(release) or state(release) is WorkloadState.SUSPEND):
        return f"version {version_of(release)}, the last one that passed, has been rolled back or suspended since"
    if target.pods and not target.serving:
        return (
            f"no pod of {target.source.kind} {target.source.name}, which holds the last version that passed, is ready"
        )
    return target
