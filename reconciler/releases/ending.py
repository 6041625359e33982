"""When pods that are not up end a release, and how: it is undone where an older version serves, else suspended."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from altershield.api.kinds import ConditionType, WorkloadState
from altershield.api.meta import find_condition, has_reason
from altershield.releases import rolled_back, state, version
from altershield.workloads.pods import clip
from altershield.workloads.workload import Strategy
from reconciler.releases.health import TrackedPod
from reconciler.releases.pod_groups import Group
from reconciler.releases.snapshot import RollbackReason, Snapshot, Target


@dataclass(frozen=True, slots=True)
class Ending:
    """The release does not come up."""

    pods: Sequence[TrackedPod]
    """Those that are overdue."""
    why: str


def ending(snapshot: Snapshot, now: float) -> Ending | None:
    """Why the release ends, if it does."""
    groups = snapshot.groups
    if groups is None or not groups.count(Group.OVERDUE) or not health_counts(snapshot):
        return None
    overdue = overdue_pods(snapshot)
    if not overdue or len(overdue) < snapshot.settings.overdue(len(groups)):
        return None
    return Ending(overdue, overdue_message(overdue, now))


def health_counts(snapshot: Snapshot) -> bool:
    """Whether health counts against the release: until it has settled."""
    if state(snapshot.release) != WorkloadState.SUCCESS:
        return True
    settled = find_condition(snapshot.release.status.conditions, ConditionType.SETTLED)
    return settled is not None and not settled.is_true


def overdue_pods(snapshot: Snapshot) -> list[TrackedPod]:
    """Those that are overdue, but for pods of which a person said after all that they pass, until these are up."""
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
    """Which pods are not up, since when and why."""
    first = min(overdue, key=lambda tracked: (tracked.down_since, tracked.pod.metadata.name))
    others = f" (and {len(overdue) - 1} more)" if len(overdue) > 1 else ""
    return f"pod {first.pod.metadata.name}{others} is not up {_since(first, now)}: {first.trouble or 'not ready'}"


def overdue_verdict(tracked: TrackedPod, now: float) -> str:
    """What is said of an overdue pod as its failure."""
    return clip(f"not up {_since(tracked, now)}: {tracked.trouble or 'not ready'}")


def _since(tracked: TrackedPod, now: float) -> str:
    seconds = f"{int(now - tracked.down_since)} s"
    return f"any more for {seconds}" if tracked.was_up else f"after {seconds}"


def no_rollback_reason(snapshot: Snapshot, serving: int) -> str:
    """Why the release is not undone by itself; empty where it may be. `serving`: pods of other versions."""
    workload = snapshot.workload
    if not snapshot.settings.rollback:
        return "the setting `rollback` is off"
    if workload.strategy is not Strategy.ROLLING:
        return f"the update strategy is {workload.strategy}"
    if workload.paused:
        return "the rollout is paused"
    if has_reason(snapshot.release.status.conditions, ConditionType.ROLLED_BACK, RollbackReason.RELEASED_AGAIN):
        return "this version was rolled back once before and then released again"
    if not serving:
        return "no older version serves"
    return ""


def automatic_target(snapshot: Snapshot, targets: Sequence[Target]) -> Target | str:
    """What to go back to by itself; else why there is nothing.

    It is the last version that passed, recognised by its object or, where that was made anew, by its template. Where
    no version has passed, because AlterShield was not there, it is the newest one without a record of which all pods
    are ready.
    """
    previous = snapshot.previous
    if previous.uid:
        accepted = {previous.fingerprint, previous.version} - {""}
        same = [target for target in targets if target.source.fingerprint in accepted]
        exact = [target for target in same if target.source.uid == previous.uid]
        if exact or same:
            found = (exact or same)[0]
            version = found.source.version or previous.version
            return _healthy(replace(found, source=msgspec.structs.replace(found.source, version=version)))
        if any(target.source.uid == previous.uid for target in targets):
            return f"the template in {previous.kind} {previous.name} is not the one that passed any more"
        return f"{previous.kind} {previous.name}, which holds the last version that passed, is gone"
    healthy = [each for each in targets if each.release is None and each.serving and each.serving == each.pods]
    if healthy:
        return healthy[0]
    return "no older version is known to have passed"


def _healthy(target: Target) -> Target | str:
    """What has pods of which none is ready is no place to go back to, nor is what failed itself since it passed."""
    release = target.release
    if release is not None and (rolled_back(release) or state(release) is WorkloadState.SUSPEND):
        return f"version {version(release)}, the last one that passed, was itself rolled back or suspended since"
    if target.pods and not target.serving:
        return f"no pod of {target.source.kind} {target.source.name} is ready any more"
    return target
