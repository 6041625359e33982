"""What the steps of a policy that only observes or warns would have done. It is recorded when the release succeeds or
fails, because its pods are gone later. Pure functions."""

from collections.abc import Iterator, Sequence, Set

from altershield.api.change_workload import ChangeWorkloadStatus, WorkloadState
from altershield.api.condition_types import ConditionType, Giver
from altershield.api.meta import find_condition
from altershield.api.rollout import Rollout
from altershield.releases import state
from altershield.releases.release import version_of
from altershield.rollout.observed import Failure, held_steps, stopping_step
from altershield.rollout.steps import steps_of
from reconciler.releases.pods.group import Group
from reconciler.releases.pods.groups import PodGroups
from reconciler.releases.pods.health import TrackedPod
from reconciler.releases.terms.draft import Draft
from reconciler.releases.terms.effects import Announce
from reconciler.releases.terms.snapshot import Snapshot
from reconciler.rollout.node_sets import NodeSet

_ENDS = (WorkloadState.SUCCESS, WorkloadState.SUSPEND)
_AT_FIRST = (Giver.CHECK, Giver.SERVER)
"""Who fails a pod with its first verdict."""


def observed(draft: Draft, snapshot: Snapshot, obstacle: str) -> tuple[Draft, tuple[Announce, ...]]:
    """Sets the condition StepsObserved when the release succeeds or fails, with an Event. `obstacle`: why it could not
    be made in steps; empty if it could."""
    release, groups, now_in = snapshot.release, snapshot.groups, draft.status.status
    rollout = release.spec.policy.rollout
    if rollout is None or groups is None or now_in not in _ENDS or now_in == state(release):
        return draft, ()
    if obstacle:
        stays, reason, text = False, "StepsNotPossible", f"the release would be made without steps: {obstacle}"
    else:
        stays, reason, text = _outcome(rollout, draft, snapshot, groups)
    text = f"version {version_of(release)}: with mode enforce, {text}"
    known = find_condition(draft.status.conditions, ConditionType.STEPS_OBSERVED)
    if known is not None and known.message == text:
        return draft, ()
    draft = draft.condition(ConditionType.STEPS_OBSERVED, stays, reason, text)
    return draft, (Announce("StepsObserved", text, warning=False),)


def _outcome(rollout: Rollout, draft: Draft, snapshot: Snapshot, groups: PodGroups) -> tuple[bool, str, str]:
    """Status, reason and message of the condition."""
    replicas, held = snapshot.workload.replicas, steps_of(rollout)[:-1]
    selects = any(each.node_selector for each in held)
    nodes = groups.node_sets(held) if selects else (NodeSet(),) * len(held)
    found = list(held_steps(rollout, replicas, [each.pods for each in nodes]))
    count = len(steps_of(rollout))
    if draft.status.status == WorkloadState.SUCCESS:
        sizes = ", ".join(str(each.pods) for each in found)
        passed = f"the release would have passed its {count} steps, first with {sizes} of {replicas} pods"
        return True, "WouldPass", passed
    step = stopping_step(found, failures(failed_uids(draft.status), groups, nodes, draft.now))
    had = f"{len(groups)} of {replicas} pods had the version when it failed"
    if step is None:
        return False, "WouldFailLast", f"the release would have failed in its last step, with all pods; {had}"
    where = f"step {step.number} of {count} ({step.pods} of {replicas} pods)"
    return False, "WouldStop", f"the release would have stopped at {where}; {had}"


def failures(failed: Set[str], groups: PodGroups, nodes: Sequence[NodeSet], now: float) -> Iterator[Failure]:
    """The pods that failed, by their uids. Of pods that were created in the same second, those that passed are counted
    first. `nodes`: the nodes that each held step selects. `now`: Unix seconds."""
    if not failed:
        return
    tracked = [each for group in Group for each in groups.pods_in(group)]

    def order(each: TrackedPod) -> tuple[int, int, int, bool]:
        pod = each.pod
        selected = (number for number, own in enumerate(nodes) if pod.node in own.names)
        passed = pod.metadata.uid not in failed and groups.group(each) is Group.PASSED
        return next(selected, len(nodes)), pod.metadata.created, not passed, pod.metadata.uid not in failed

    for place, each in enumerate(sorted(tracked, key=order), 1):
        if each.pod.metadata.uid in failed:
            at_first = groups.memberships.giver(each.pod.metadata.uid) in _AT_FIRST
            yield Failure(place, 0 if at_first else _seconds_up(each, now))


def failed_uids(status: ChangeWorkloadStatus) -> Set[str]:
    return {info.uid for info in status.defense_check_fail_pods}


def _seconds_up(each: TrackedPod, now: float) -> int:
    """For how long the pod had been up; 0 if it never was."""
    value, created = each.pod.finished, each.pod.metadata.created
    at = int(value) if value.isascii() and value.isdigit() and len(value) <= 12 else 0
    return int(now) - at if created <= at <= now else 0
