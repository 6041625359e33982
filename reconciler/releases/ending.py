"""Decides when overdue pods end a release. It is rolled back if an older version serves, else it is suspended. Pure
functions."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from altershield.api.change_workload import WorkloadState
from altershield.api.condition_types import ConditionType
from altershield.api.meta import find_condition, has_reason
from altershield.releases import rolled_back, state, version
from altershield.workloads.pods import clip
from altershield.workloads.workload import Strategy
from reconciler.releases.group import Group
from reconciler.releases.health import TrackedPod
from reconciler.releases.snapshot import RollbackReason, Snapshot, Target
from reconciler.releases.words import words


@dataclass(frozen=True, slots=True)
class Ending:
    """The release ends, because its pods do not come up."""

    pods: Sequence[TrackedPod]
    """The overdue pods."""
    why: str
    """The reason, for conditions and Events."""


def ending(snapshot: Snapshot, now: float) -> Ending | None:
    """The end of the release, at `now` (Unix seconds); None if the release does not end now."""
    groups = snapshot.groups
    if groups is None or not groups.count(Group.OVERDUE) or not health_counts(snapshot):
        return None
    overdue = overdue_pods(snapshot)
    if not overdue or len(overdue) < snapshot.settings.overdue(len(groups)):
        return None
    return Ending(overdue, overdue_message(overdue, now))


def health_counts(snapshot: Snapshot) -> bool:
    """Whether the health of pods counts against the release: until it has settled."""
    if state(snapshot.release) != WorkloadState.SUCCESS:
        return True
    settled = find_condition(snapshot.release.status.conditions, ConditionType.SETTLED)
    return settled is not None and not settled.is_true


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
    return f"pod {first.pod.metadata.name}{others} is not up {_since(first, now)}: {words(first) or 'not ready'}"


def overdue_verdict(tracked: TrackedPod, now: float) -> str:
    """The message of the failing verdict on an overdue pod."""
    return clip(f"not up {_since(tracked, now)}: {words(tracked) or 'not ready'}")


def _since(tracked: TrackedPod, now: float) -> str:
    seconds = f"{int(now - tracked.down_since)} s"
    if tracked.was_up:
        return f"any more (it was up until {seconds} ago)"
    return f"after {seconds}, counted with the pods that it replaces" if tracked.inherited else f"after {seconds}"


def no_rollback_reason(snapshot: Snapshot, serving: int) -> str:
    """The reason why the release is not rolled back automatically; empty if it may be rolled back. `serving`: the
    number of ready pods of other versions. The reason that rollbacks are off comes last, because the report about the
    mode `enforce` needs the other reasons."""
    workload = snapshot.workload
    if snapshot.settings.no_start_rollback:  # first: the mode `enforce` would not roll back either
        return snapshot.settings.no_start_rollback
    if workload.strategy is not Strategy.ROLLING:
        return f"the update strategy is {workload.strategy}, not a rolling one"
    if workload.paused:
        return "the rollout is paused"
    if has_reason(snapshot.release.status.conditions, ConditionType.ROLLED_BACK, RollbackReason.RELEASED_AGAIN):
        return "this version was rolled back once before and then released again"
    if not serving:
        return "no pod of an older version is ready"
    if not snapshot.settings.rollback:
        return snapshot.settings.rollback_off
    return ""


def serving(targets: Sequence[Target]) -> int:
    """The number of ready pods of other versions, without those of versions that were rolled back: they serve only
    until the controller has deleted them."""
    return sum(each.serving for each in targets if each.release is None or not rolled_back(each.release))


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
        return f"version {version(release)}, the last one that passed, has been rolled back or suspended since"
    if target.pods and not target.serving:
        return (
            f"no pod of {target.source.kind} {target.source.name}, which holds the last version that passed, is ready"
        )
    return target
