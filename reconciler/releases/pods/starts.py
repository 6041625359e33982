"""When the start timeout of a new pod of a release begins. The ChangeWorkload may store the time, or the pod continues
the timeout of a pod that ended. Without I/O."""

from typing import NamedTuple

from altershield.api.condition_types import ConditionType
from altershield.api.meta import find_condition
from altershield.workloads.pods import Fault, Pod
from kube_base.times import unix
from reconciler.cluster.release import Release
from reconciler.releases.pods.health import Timing, TrackedPod, start_tracking


class _EndedPod(NamedTuple):
    """A pod that ended by itself. Its controller creates another pod. The start timeout of that pod begins when the
    start timeout of this pod began."""

    at: float
    down_since: float
    breaks: int
    was_up: bool


class PodStarts:
    """The starts of the pods of one release. `in_place`: the workload's controller may give a pod another template
    without replacing it."""

    def __init__(self, release: Release, timing: Timing, *, in_place: bool) -> None:
        self._timing = timing
        self._in_place = in_place
        self._created = release.spec.create_time_unix
        # after a retry, pods that are not up have the start timeout once more
        self._began = max(self._created, release.status.retry_time_unix)
        stall = find_condition(release.status.conditions, ConditionType.STALLED)
        self._has_fault = stall is not None and stall.is_true and stall.reason in list(Fault)
        if stall is not None and not stall.is_true:
            # the release was stalled until that time, so the start timeout of its pods begins then
            self._began = max(self._began, int(unix(stall.last_transition_time)))
        self._remembered = {down.uid: float(down.since_unix) for down in release.status.down_pods}
        self._ended: list[_EndedPod] = []  # not replaced yet

    @property
    def replacement_due(self) -> bool:
        """Whether a pod that ended by itself is not replaced yet."""
        return bool(self._ended)

    def track(
        self,
        pod: Pod,
        now: float,
        *,
        was_up: bool,
        up_at: float,
        node_ready_at: float,
        ready_since: float | None,
        updated_in_place: bool,
    ) -> TrackedPod:
        """Begin to track a pod, at `now` (Unix seconds). `updated_in_place`: until now, the pod had another template. A
        pod that is older than the release had another one, too. The other values are those of `start_tracking`."""
        in_place = self._in_place and (updated_in_place or pod.metadata.created < self._created - 1)
        remembered = self._remembered.get(pod.metadata.uid)
        ended = self._ended.pop(0) if remembered is None and self._ended else None
        tracked = start_tracking(
            pod,
            self._began,
            now,
            was_up=was_up,
            up_at=up_at,
            down_since=remembered,
            node_ready_at=node_ready_at,
            ready_since=ready_since,
            in_place=in_place,
            has_fault=self._has_fault and not pod.ready,
        )
        if ended is not None:
            tracked.inherited, tracked.down_since = True, ended.down_since
            tracked.breaks, tracked.broken = ended.breaks, ended.was_up
        return tracked

    def keep(self, tracked: TrackedPod, now: float, *, up: bool) -> None:
        """Keep the start of the timeout of a pod that ended by itself, for the pod that replaces it. `up`: whether the
        pod was up until `now` (Unix seconds)."""
        self._ended.append(_EndedPod(now, now if up else tracked.down_since, tracked.breaks + up, tracked.was_up))

    def forget_ended(self, now: float, *, all_replaced: bool) -> None:
        """Forget the pods that ended a start timeout before `now` (Unix seconds), or all of them."""
        if all_replaced:
            self._ended.clear()
        self._ended = [each for each in self._ended if now - each.at < self._timing.start_timeout]
