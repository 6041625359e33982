"""Builds the status of a ChangeWorkload, and decides when it is written.

States, failures and conditions are written at once. A change of the lists of pods is written a few seconds later,
together with the changes that follow it: a pod that comes up, is checked and passes meanwhile costs one write. Long
lists are written less often.
"""

from dataclasses import dataclass

import msgspec

from altershield.api.change_workload import ChangeWorkloadStatus, DownPod, WorkloadState
from altershield.api.condition_types import ConditionType
from altershield.api.meta import Condition, find_condition, plain_time, set_condition
from altershield.api.pod_verdicts import PodInfo
from reconciler.cluster.release import Release, digest
from reconciler.releases.pods.group import Group
from reconciler.releases.pods.groups import PodGroups
from reconciler.releases.terms.snapshot import Snapshot

UNDER_WAY = (WorkloadState.INIT, WorkloadState.RUNNING, WorkloadState.TIME_OUT_PRE_THRESHOLD)
"""States in which the release has the condition PodsNotUp."""

LISTS_INTERVAL = 5
"""Seconds from a change of the lists until it is written; more if they are long."""

_LISTED = 2000  # pods in all lists together
_LISTED_BYTES = 1_200_000  # of all lists together: etcd limits an object to 1.5 MiB
LISTED_FAILED = 500
_LISTED_DOWN = 100
_SHORT = 100  # pods that have passed; longer lists are written less often, in proportion to their length


@dataclass(frozen=True, slots=True)
class Draft:
    """A status under construction. Conditions that are not set stay as they are. `now`: Unix seconds."""

    status: ChangeWorkloadStatus
    generation: int
    now: float

    def enter(self, state: WorkloadState) -> "Draft":
        """Enter a state."""
        if self.status.status == state:
            return self
        draft = self if state in UNDER_WAY else self.without(ConditionType.PODS_NOT_UP)
        return draft.replace(status=state, entry_time=plain_time(self.now), entry_time_unix=int(self.now))

    def replace(self, **fields: object) -> "Draft":
        """Set fields of the status."""
        return Draft(msgspec.structs.replace(self.status, **fields), self.generation, self.now)

    def condition(self, type_: ConditionType, status: bool | None, reason: str, message: str) -> "Draft":
        """Set a condition. `status` None is Unknown."""
        text = "Unknown" if status is None else str(status)
        new = Condition(type_, text, reason, message, observed_generation=self.generation)
        return self.replace(conditions=set_condition(self.status.conditions, new, self.now))

    def without(self, type_: ConditionType) -> "Draft":
        """Remove a condition."""
        kept = tuple(each for each in self.status.conditions if each.type != type_)
        return self if kept == self.status.conditions else self.replace(conditions=kept)


def begin(release: Release, now: float) -> Draft:
    """A draft that begins with the stored status."""
    generation = release.metadata.generation
    return Draft(msgspec.structs.replace(release.status, observed_generation=generation), generation, now)


def begin_with(snapshot: Snapshot, now: float) -> Draft:
    """A draft that also contains the fields of the snapshot: the sources, and the condition Reported."""
    draft = begin(snapshot.release, now).replace(source=snapshot.source, previous=snapshot.previous)
    if snapshot.reported is None:
        return draft
    return draft.replace(conditions=set_condition(draft.status.conditions, snapshot.reported, now))


def down_pods(groups: PodGroups) -> tuple[DownPod, ...]:
    """The pods that were up in this release and are down. Only the status stores since when they are down."""
    found = [
        DownPod(
            tracked.pod.metadata.name,
            tracked.pod.metadata.uid,
            int(tracked.down_since),
            str(groups.words(tracked) or "not ready"),
        )
        for group in (Group.DOWN, Group.OVERDUE, Group.FAULT)
        for tracked in groups.pods_in(group)
        if tracked.was_up
    ]
    found.sort(key=lambda down: (down.since_unix, down.pod))
    return tuple(found[:_LISTED_DOWN])


def failed_pods(groups: PodGroups) -> tuple[PodInfo, ...]:
    """The failed pods, by name."""
    found = sorted((groups.info(tracked) for tracked in groups.pods_in(Group.FAILED)), key=lambda info: info.pod)
    return tuple(found[:LISTED_FAILED])


def with_lists(status: ChangeWorkloadStatus, groups: PodGroups) -> ChangeWorkloadStatus:
    """The status with the three lists of pods, cut to a total length."""
    first = [
        sorted(groups.pods_in(group), key=lambda tracked: tracked.pod.metadata.name)[:_LISTED]
        for group in (Group.CHECKING, Group.PREPARING, Group.PASSED)
    ]
    found = [[groups.info(tracked) for tracked in pods] for pods in first]
    failed = status.defense_check_fail_pods
    left = _LISTED_BYTES - len(msgspec.json.encode((failed, status.resumption)))
    size = max((len(msgspec.json.encode(pods[0])) for pods in found if pods), default=1)  # the names are of one length
    space = max(0, min(_LISTED - len(failed), left // size))
    lists: list[tuple[PodInfo, ...]] = []
    for pods in found:
        lists.append(tuple(pods[:space]))
        space -= len(lists[-1])
    checking, preparing, passed = lists
    return msgspec.structs.replace(
        status,
        defense_checking_pods=checking,
        defense_preparing_pods=preparing,
        defense_check_pass_pods=passed,
    )


def lists_differ(release: Release, status: ChangeWorkloadStatus) -> bool:
    """Whether the three lists of pods in this status, or the message about them, differ from those in the
    ChangeWorkload."""
    return digest(status) != release.digest or _verified_message(status) != _verified_message(release.status)


def _verified_message(status: ChangeWorkloadStatus) -> str:
    verified = find_condition(status.conditions, ConditionType.VERIFIED)
    return verified.message if verified is not None else ""


def urgent(before: ChangeWorkloadStatus, wanted: ChangeWorkloadStatus) -> bool:
    """Whether the status has to be written now, because more than lists and counts has changed."""
    return _without_counts(before) != _without_counts(wanted)


def are_short(passed: int) -> bool:
    """Whether the lists are short if so many pods have passed. Each write of the status then includes them."""
    return passed <= _SHORT


def lists_due(release: Release, passed: int, changed_at: float, now: float) -> float:
    """Seconds until lists that changed at `changed_at` (Unix seconds) are to be written. `passed`: how many pods have
    passed."""
    due = changed_at + LISTS_INTERVAL
    interval = LISTS_INTERVAL * max(1.0, min(passed, _LISTED) / _SHORT)
    if not are_short(passed):
        due = max(due, release.status.update_time_unix + interval)
    left = due - now
    return left if 0 < left <= interval else 0.0


def with_update_time(status: ChangeWorkloadStatus, now: float) -> ChangeWorkloadStatus:
    """The status with the time of the update."""
    return msgspec.structs.replace(status, update_time=plain_time(now), update_time_unix=int(now))


def _without_counts(status: ChangeWorkloadStatus) -> ChangeWorkloadStatus:
    """The status without lists, counts and times."""
    # these messages contain counts: the next write updates them
    counted = (ConditionType.VERIFIED, ConditionType.STALLED, ConditionType.SETTLED)
    conditions = [
        msgspec.structs.replace(each, message="") if each.type in counted else each
        for each in status.conditions
        if each.type != ConditionType.PODS_NOT_UP  # `not_up` decides when it is written
    ]
    restarting = tuple(msgspec.structs.replace(each, message="") for each in status.settling.restarting)
    return msgspec.structs.replace(
        status,
        conditions=tuple(sorted(conditions, key=lambda each: each.type)),
        defense_preparing_pods=(),
        defense_checking_pods=(),
        defense_check_pass_pods=(),
        down_pods=(),
        rollout=msgspec.structs.replace(status.rollout, updated=0, passed=0),
        settling=msgspec.structs.replace(status.settling, restarting=restarting),
        update_time="",
        update_time_unix=0,
    )
