"""Decides which pods of a release that has not settled fail because their containers restart again and again. Pure
functions.

Such a pod is up between its restarts, so the start timeout does not fail it. Restarts count from the Success of the
release on, for `settleRestarts` times `settleSeconds`. They follow from the pod's own counters. The status lists the
restarts that do not count: those before the Success, those before the pod was verified, and those that a node caused.
So each leader comes to the same decision. Containers of a pod that end together count as one restart: the kubelet
starts the whole pod again if its sandbox is lost.

The restarts fail the pod, not the release. A crash loop is several restarts of one pod; in a workload with a thousand
pods, single restarts are normal. The number of failed pods that end the release is the same as for overdue pods.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from altershield.api.change_workload import MAX_RESTARTED, PodRestarts, RestartingPod, Settling, WorkloadState
from altershield.api.ops_config import Settings
from altershield.releases import state
from altershield.releases.release import version_of
from altershield.workloads.pods import Pod, Restarted, clip
from reconciler.cluster.release import Release
from reconciler.releases.pods.group import Group
from reconciler.releases.pods.groups import PodGroups
from reconciler.releases.pods.health import CLOCK_SKEW, TrackedPod
from reconciler.releases.terms.rules import Settle, settle_of
from reconciler.releases.terms.snapshot import Snapshot

_BACK_OFF = 300  # seconds, at most, that a kubelet waits before a restart
_NODE_RESTART = 600  # seconds, at most, from the end of a container until its node is ready again
_ROUNDING = 2  # seconds
_TOGETHER = 30  # seconds between the ends of containers that end together: the default grace period
_NAMED = 3  # containers that a message names
_LISTED = 20  # pods that the status lists


def settle(snapshot: Snapshot) -> Settle:
    """How long the release is watched after its Success, and how many restarts fail a pod in this time."""
    return settle_of(snapshot.timing, snapshot.release.spec.policy)


def counting(snapshot: Snapshot, now: float, *, anew: bool) -> Settling:
    """The record of which restarts count, updated to `now` (Unix seconds). `anew`: the release succeeds now, so no
    earlier restart counts."""
    known, groups = snapshot.release.status.settling, snapshot.groups
    anew = anew or not known.since_unix  # or it succeeded before AlterShield counted restarts
    if groups is None:
        return Settling(int(now)) if anew else known
    if anew:
        return _bounded(Settling(int(now)), [_entry(each.pod, _total(each.pod)) for each in groups.restarted()])
    listed = {each.uid: each for each in known.pods}
    changed = {}
    for tracked in groups.restarted():
        uid, total = tracked.pod.metadata.uid, _total(tracked.pod)
        uncounted = total - _count(known, listed, groups, tracked, now)
        before = listed.get(uid, PodRestarts(uncounted=known.others))
        unverified = groups.member(tracked) is None and groups.group(tracked) is not Group.PREPARING
        if uncounted > before.uncounted and not unverified:  # a pod that is not up may restart many times
            changed[uid] = _entry(tracked.pod, uncounted)
    if not changed:
        return known
    kept = {uid: each for uid, each in listed.items() if groups.has_pod(uid)}
    return _bounded(known, [*(kept | changed).values()])


def extended(settling: Settling, settle: Settle, start_timeout: float, now: float) -> int:
    """When a release settles, Unix seconds, if its pods are up again since `now` after a pod broke or restarted.

    The whole settle time begins again, but it ends with the time in which restarts count. After that time, a break
    extends it by the start timeout only, because in a large workload some container always restarts.
    """
    latest = settling.since_unix + settle.window
    return int(max(now + min(start_timeout, settle.seconds), min(now + settle.seconds, latest)))


def failing(snapshot: Snapshot, now: float) -> list[TrackedPod]:
    """The pods that fail because their containers restarted too often. Pods that failed before, overdue pods, and pods
    that a person passed after they had failed are not included."""
    groups = snapshot.groups
    if groups is None or not _restarts_count(snapshot, now):
        return []
    limit = allowed(snapshot)
    return [tracked for tracked, count in _counts(snapshot, groups, now) if count >= limit]


def allowed(snapshot: Snapshot) -> int:
    """How many restarts fail a pod."""
    return settle(snapshot).restarts + snapshot.release.spec.restarts_before


def restarting(snapshot: Snapshot, now: float) -> tuple[tuple[RestartingPod, ...], int]:
    """The pods whose restarts count, those with the most first, and their number. The list is bounded."""
    groups = snapshot.groups
    if groups is None or not _restarts_count(snapshot, now):
        return (), 0
    found = sorted(_counts(snapshot, groups, now), key=lambda each: -each[1])
    pods = tuple(
        RestartingPod(each.pod.metadata.name, each.pod.metadata.uid, count, words(snapshot, each, now))
        for each, count in found[:_LISTED]
    )
    return pods, len(found)


def message(snapshot: Snapshot, pods: Sequence[TrackedPod], now: float) -> str:
    """The message about pods that restart too often: their number, and the name and the restarts of the first one."""
    others = f" (and {len(pods) - 1} more)" if len(pods) > 1 else ""
    return f"pod {pods[0].pod.metadata.name}{others}: {words(snapshot, pods[0], now)}"


def words(snapshot: Snapshot, tracked: TrackedPod, now: float) -> str:
    """The restarts of a pod that count, in words: how many, in which time, and how the last run ended."""
    groups, settling, pod = snapshot.groups, snapshot.release.status.settling, tracked.pod
    if groups is None or not pod.restarted:
        return ""
    began = max(settling.since_unix, pod.metadata.created)
    counted = [each for each in pod.restarted if each.ended_at >= began - CLOCK_SKEW] or list(pod.restarted)
    last = max(counted, key=lambda each: each.ended_at)
    names = [each.name for each in sorted(counted, key=lambda each: (-each.count, each.name))[:_NAMED]]
    count = _count(settling, {each.uid: each for each in settling.pods}, groups, tracked, now)
    seconds = int((min(last.ended_at, now) if last.ended_at else now) - began)
    return clip(
        f"container{'s' if len(names) > 1 else ''} {', '.join(names)} restarted {count} time{'s' if count > 1 else ''} "
        f"in {max(seconds, 1)} s: {last.why}"
    )


def restarts_before(
    pods: Iterable[Pod], releases: Sequence[Release], version: str, settle: Settle, settings: Settings, now: float
) -> int:
    """How often a pod of the version before restarts in the time in which restarts count for the release of `version`,
    which begins at `now` (Unix seconds). `pods`: all pods of the workload. `releases`: its ChangeWorkloads.

    The number follows from the restarts and the age of the pods that exist now. So nothing has to be observed after a
    version has settled, and versions that were released before AlterShield was installed count too. Only pods of
    versions that are not known to have failed count. If there are none, the number of the previous release is used.

    If N failed pods end a release, the result is the Nth highest number of restarts of a pod. So a single pod that
    always restarts has no effect.
    """
    unproven = {version_of(each) for each in releases if state(each) is not WorkloadState.SUCCESS} | {version}
    found = [_in_window(each, settle, now) for each in pods if each.version not in unproven and not each.ended]
    if found:
        return sorted(found, reverse=True)[settings.overdue(len(found)) - 1]
    newest = max(releases, key=lambda each: each.spec.workload_generation, default=None)
    return newest.spec.restarts_before if newest is not None else 0


def _in_window(pod: Pod, settle: Settle, now: float) -> int:
    """How often a new pod that behaves like this one restarts in the time in which restarts count.

    A kubelet waits longer and longer before it restarts a container, and this pod may have reached the longest wait.
    """
    total, age = _total(pod), now - max(pod.metadata.created, pod.scheduled_at)
    running = max(age - _BACK_OFF * total, 1.0)
    return min(total, int(settle.window * total / running))


def _restarts_count(snapshot: Snapshot, now: float) -> bool:
    """Whether restarts count. A rollback that began because of restarts is not withdrawn because of the time."""
    release = snapshot.release
    match state(release):
        case WorkloadState.SUCCESS:
            at = now
        case WorkloadState.ROLLBACK:
            at = release.status.entry_time_unix
        case _:
            return False
    since = release.status.settling.since_unix
    return bool(since) and at <= since + settle(snapshot).window


def _counts(snapshot: Snapshot, groups: PodGroups, now: float) -> list[tuple[TrackedPod, int]]:
    """The pods whose restarts count, with their number."""
    settling = snapshot.release.status.settling
    listed = {each.uid: each for each in settling.pods}
    found = []
    for tracked in groups.restarted():
        member = groups.member(tracked)
        judged = groups.group(tracked) in (Group.FAILED, Group.OVERDUE) or (member is not None and member.overruled)
        if not judged and (count := _count(settling, listed, groups, tracked, now)) > 0:
            found.append((tracked, count))
    return found


def _count(
    settling: Settling, listed: Mapping[str, PodRestarts], groups: PodGroups, tracked: TrackedPod, now: float
) -> int:
    """The number of restarts of a pod that count."""
    pod = tracked.pod
    if groups.member(tracked) is None:
        return 0  # it has not been verified: the start timeout is about it
    total = _total(pod)
    known = listed.get(pod.metadata.uid, PodRestarts(uncounted=settling.others, seen=settling.others))
    fresh = max(0, total - known.seen)
    own = [each.ended_at for each in pod.restarted if not (each.lost or _ended_with_node(each, groups, tracked, now))]
    by_node = len(pod.restarted) - len(own)
    together = sum(first > 0 and then - first <= _TOGETHER for first, then in pairwise(sorted(own)))
    return max(0, total - known.uncounted - min(fresh, by_node + together))


def _ended_with_node(container: Restarted, groups: PodGroups, tracked: TrackedPod, now: float) -> bool:
    """Whether a container ended shortly before its node became ready, or while it is not ready."""
    ready_at = groups.node_ready_at(tracked, now)
    return container.ended_at > 0 and ready_at - _NODE_RESTART <= container.ended_at <= ready_at + _ROUNDING


def _total(pod: Pod) -> int:
    return sum(each.count for each in pod.restarted)


def _entry(pod: Pod, uncounted: int) -> PodRestarts:
    return PodRestarts(pod.metadata.name, pod.metadata.uid, uncounted, _total(pod))


def _bounded(settling: Settling, found: Sequence[PodRestarts]) -> Settling:
    """The restarts that do not count. If the list has no room for all pods, the number of the first pod without an
    entry applies to all of them."""
    found = sorted(found, key=lambda each: (-each.uncounted, each.pod))
    others = max((each.uncounted for each in found[MAX_RESTARTED:]), default=0)
    return Settling(settling.since_unix, tuple(found[:MAX_RESTARTED]), max(settling.others, others))
