"""Decides whether a pod is up, since when it is down, and whether the release or the cluster is the cause. Pure
functions.

A pod is up when it is available now: it has been ready for `minReadySeconds` and for the observation time, without a
restart since. Its history and its labels do not count.

Times are Unix seconds by our own clock, which follows the API server's. A kubelet's clock is used only with an
allowance, and only for one purpose: to find out how long a pod had been ready before this process first read it.
"""

from collections.abc import Container, Iterable
from dataclasses import dataclass
from enum import StrEnum

from altershield.api.policy import MAX_START_SECONDS, UNSCHEDULABLE_SECONDS
from altershield.workloads.pod_events import AFTER_VOLUMES_AND_NETWORK
from altershield.workloads.pods import Fault, Pod, Trouble
from altershield.workloads.workload import Workload
from reconciler.releases.pods.limits import Limit, limit, updated_in_place

CLOCK_SKEW = 300
"""Seconds by which a kubelet's clock may differ from the API server's. Kubernetes tolerates no more for
tokens either."""

_FIRST_STATUS = 10  # seconds after the start of a pod in which the kubelet writes its first condition Ready
_MAX_DOUBLINGS = 20
_FAULT_CHECKS = 4  # per start timeout, of a pod with a fault


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds."""

    start_timeout: float
    """The time that a pod may take to come up, and to come up again."""
    observe: float
    """The time for which a pod has to stay ready before it is up."""
    max_start: float = float(MAX_START_SECONDS)
    """To this time, the probes and init containers of a pod may extend the start timeout."""
    unschedulable: float = float(UNSCHEDULABLE_SECONDS)
    """After this time, a pod with a fault is overdue if the release caused the fault by what it changed."""


class Health(StrEnum):
    """The health of one pod of a release."""

    UP = "Up"
    OBSERVING = "Observing"
    """Ready, but not for long enough yet."""
    DOWN = "Down"
    """Not up, but not for longer than its limit."""
    OVERDUE = "Overdue"
    """Not up for longer than its limit, and the release is the cause. The pod may be ready at the moment."""
    FAULT = "Fault"
    """Not up for longer than the start timeout, and the cluster is the cause."""


@dataclass(slots=True)
class TrackedPod:
    """A pod of a release, and its health as far as it follows from its past states. Times are Unix seconds."""

    pod: Pod
    down_since: float
    """When the pod was created, or when it was last up."""
    ready_since: float | None
    """Since when the pod has been ready without a restart or an interruption; None if it is not ready."""
    was_up: bool
    """Whether the pod has been up in this release."""
    broken: bool
    """Whether the pod was up, went down, and has not been up since."""
    baseline: int
    """The number of restarts that do not count: the restarts before the release, if the pod was updated in place."""
    fault: Fault | None = None
    """The cause that only the pod's Events tell."""
    fault_until: float = 0.0
    """When the Events are to be read again, because no change of the pod shows that this cause is gone."""
    breaks: int = 0
    """How often the pod was up and then went down."""
    has_fault: bool = False
    """Whether the cluster kept the pod from coming up when the pod was last assessed."""
    fault_since: float = 0.0
    """Since when the cluster keeps the pod from coming up."""
    inherited: bool = False
    """Whether this pod replaces a pod that ended by itself, and has its `down_since`."""
    trouble: Trouble | None = None
    """The reason why the pod was not ready, from the last state that had a reason."""
    event: Trouble | None = None
    """The reason in the pod's Events."""
    asked_at: float = 0.0
    """When the Events were last read; 0: never."""
    changed: bool = True
    """Whether the pod has changed since its Events were read."""
    predecessor: Trouble | None = None
    """Why the pod ended that this pod replaces."""
    ready_again: float | None = None
    """When the pod became ready, if a change was read: the kubelet's time, or our own if that is earlier."""
    stayed_from: float | None = None
    """When the pod will have been ready for the observation time, without `minReadySeconds`; None if it is
    not ready."""
    in_place: bool = False
    """Whether the pod existed before it got the template of this release."""
    was_ready: bool = False
    """Whether the pod has been ready in this release."""
    limit: Limit | None = None
    """The limit when the pod was last assessed while it was not ready."""


def start_tracking(
    pod: Pod,
    began: float,
    now: float,
    *,
    was_up: bool,
    up_at: float = 0.0,
    down_since: float | None,
    node_ready_at: float = 0.0,
    ready_since: float | None = None,
    in_place: bool,
    has_fault: bool = False,
) -> TrackedPod:
    """The first assessment of a pod, in a release that began at `began`.

    - `was_up`: the pod's batch shows that it was up. `up_at`: when the batch was created. If the pod became ready
      later, it broke meanwhile. A kubelet's clock that is ahead only delays the condition Settled.
    - `down_since`: since when a pod that was up is down, as the ChangeWorkload says.
    - `node_ready_at`: when the pod's node became ready. If the node became ready after the pod was created, the start
      timeout of the pod begins at that time.
    - `ready_since`: since when this process has seen that the pod is ready; None if it has not seen it become ready.
    - `in_place`: the pod is older than the release and was updated for it.
    - `has_fault`: the ChangeWorkload says that a fault keeps pods from being up.

    The start timeout begins

    - now, if the pod is ready: it may have been up until now;
    - when the pod lost its readiness, if it is not ready any more: perhaps no reconciler saw that it was up.

    A time in the future counts as now.
    """
    made = max(pod.metadata.created, pod.scheduled_at, began)
    since = down_since if down_since is not None else now if was_up or in_place or pod.ready else made
    if node_ready_at > made:
        since = max(since, node_ready_at + CLOCK_SKEW)
    if down_since is None and not pod.ready and pod.ready_at > made + _FIRST_STATUS:  # the pod was ready until then
        since = max(since, pod.ready_at + CLOCK_SKEW)
    since = min(since, now)
    return TrackedPod(
        pod=pod,
        down_since=since,
        # just after an update in place, the ready container may still be the old one
        ready_since=(now if pod.ready else None) if in_place else _ready_since(pod, now, ready_since),
        was_up=was_up,
        broken=down_since is not None or (was_up and (not pod.ready or pod.ready_at > up_at > 0)),
        baseline=pod.restarts if in_place else 0,
        has_fault=has_fault,
        fault_since=now,
        trouble=pod.trouble,
        in_place=in_place,
        was_ready=pod.ready,
    )


def _ready_since(pod: Pod, now: float, seen: float | None) -> float | None:
    """Since when a pod that was not tracked before has been ready: the time that this process has seen, or if that is
    earlier, the kubelet's time plus the allowance for its clock; None if it is not ready."""
    if not pod.ready:
        return None
    return min(now if seen is None else seen, pod.ready_at + CLOCK_SKEW if pod.ready_at else now, now)


def update_tracked(tracked: TrackedPod, pod: Pod, now: float, *, updated_in_place: bool) -> None:
    """Take over a new state of the pod."""
    before, known = tracked.pod, tracked.trouble
    tracked.pod, tracked.trouble = pod, pod.trouble or tracked.trouble
    if updated_in_place:
        tracked.baseline, tracked.was_up, tracked.broken, tracked.down_since = pod.restarts, False, False, now
        tracked.in_place, tracked.was_ready = True, False
    interrupted = pod.ready and tracked.ready_since is not None and is_interrupted(before, pod)
    if interrupted or not pod.ready:
        if tracked.stayed_from is not None and now >= tracked.stayed_from:
            tracked.breaks += 1  # only `minReadySeconds` kept it from being up until now
        tracked.ready_since, tracked.stayed_from = None, None
        tracked.broken = tracked.broken or tracked.was_up
    tracked.was_ready = tracked.was_ready or pod.ready
    if pod.ready and tracked.ready_since is None:
        kubelet_time = pod.ready_at if pod.ready_at != before.ready_at else 0
        tracked.ready_since, tracked.ready_again = now, min(kubelet_time or now, now)
    if pod.ready or pod.unscheduled != before.unscheduled or pod.trouble != before.trouble:
        tracked.fault = None
    if pod.creating != before.creating or pod.trouble not in (None, known):
        tracked.event = None  # a pod that only became ready and unready again has the reason that it had
    if (pod.ready, pod.creating, pod.trouble) != (before.ready, before.creating, before.trouble):
        tracked.changed = True


def is_interrupted(before: Pod, after: Pod) -> bool:
    """Whether the pod was not ready between two states in which it was ready."""
    return before.restarts != after.restarts or before.ready_at != after.ready_at


def needed(tracked: TrackedPod, min_ready: int, timing: Timing) -> float:
    """Seconds for which the pod has to be ready before it is up.

    Each restart and each loss of readiness doubles the observation time, up to the start timeout. So a pod that crashes
    or flaps repeatedly does not seem to be up in between.
    """
    restarts = min(max(tracked.pod.restarts - tracked.baseline, tracked.breaks, 0), _MAX_DOUBLINGS)
    base = max(timing.observe, 1.0) if restarts else timing.observe
    return max(min_ready, 0) + min(base * 2.0**restarts, max(timing.start_timeout, timing.observe))


def assess(
    tracked: TrackedPod,
    workload: Workload,
    timing: Timing,
    now: float,
    *,
    node_ready: bool,
    node_lost: bool,
    blamed: Container[Fault] = (),
) -> tuple[Health, float | None]:
    """The health of the pod, and the time when it may change without a new event (Unix seconds; None if it cannot).

    `blamed`: the faults of the cluster that this release causes, by what it changed.
    """
    pod = tracked.pod
    if pod.ready and node_ready and tracked.ready_since is not None:
        _note_fault(tracked, now, has_fault=False)
        due = tracked.ready_since + needed(tracked, workload.min_ready, timing)
        if now >= due:
            tracked.was_up, tracked.broken, tracked.stayed_from = True, False, None
            return Health.UP, None
        tracked.stayed_from = tracked.ready_since + needed(tracked, 0, timing)
        # a pod that became ready after its time was over stays overdue until it is up
        seconds = tracked.limit.seconds if tracked.limit is not None else timing.start_timeout
        late = tracked.ready_again is not None and tracked.ready_again > tracked.down_since + seconds
        return (Health.OVERDUE if late else Health.OBSERVING), due
    tracked.broken = tracked.broken or tracked.was_up
    found = fault(tracked, node_lost=node_lost)
    _note_fault(tracked, now, has_fault=found is not None)
    tracked.limit = _limit(tracked, workload, timing)
    due = tracked.down_since + tracked.limit.seconds
    if now < due:
        return Health.DOWN, due
    by_cluster = pod.unscheduled or (pod.node and node_lost)
    if found is not None and (by_cluster or now < tracked.fault_until):
        ends = fault_overdue_at(tracked, timing)
        if found in blamed and now >= ends:
            tracked.limit = Limit(ends - tracked.down_since, f"the limit for {found} is {int(timing.unschedulable)} s")
            return Health.OVERDUE, None
        # checked again: a node that is back need not cause an event of the pod
        again = now + timing.start_timeout / _FAULT_CHECKS
        return Health.FAULT, min(again, ends) if now < ends else again
    return Health.OVERDUE, None


def _limit(tracked: TrackedPod, workload: Workload, timing: Timing) -> Limit:
    """The time that a pod that is not ready may take to come up. If it was up before, or replaces a pod that ended by
    itself, it is the start timeout. A pod that was up starts anew if its node was restarted."""
    starting, allowed = tracked.pod.starting, workload.start.containers
    if tracked.was_up and tracked.pod.restarted and all(each.lost for each in tracked.pod.restarted) and allowed:
        seconds = min(timing.start_timeout + allowed, max(timing.max_start, timing.start_timeout))
        return Limit(seconds, f"its node was restarted, and its probes allow {allowed} s")
    if tracked.was_up or tracked.inherited:
        return Limit(timing.start_timeout)
    if starting is not None and tracked.in_place:
        starting = updated_in_place(starting, restarts=tracked.pod.restarts - tracked.baseline)
    min_ready = workload.min_ready if tracked.was_ready else 0
    return limit(starting, workload.start, timing.start_timeout, timing.max_start, min_ready)


def fault_overdue_at(tracked: TrackedPod, timing: Timing) -> float:
    """When a pod with a fault becomes overdue if the release caused the fault, Unix seconds."""
    return tracked.down_since + timing.unschedulable


def _note_fault(tracked: TrackedPod, now: float, *, has_fault: bool) -> None:
    """Store whether a fault keeps the pod from being up.

    When the fault ends, the start timeout of the pod begins again. There is one exception: if the pod replaces a pod
    that ended by itself, its start timeout goes on, and only the time of the fault does not count.
    """
    if has_fault and not tracked.has_fault:
        tracked.fault_since = now
    if tracked.has_fault and not has_fault:
        tracked.down_since = now if not tracked.inherited else min(now, tracked.down_since + now - tracked.fault_since)
    tracked.has_fault = has_fault


def fault(tracked: TrackedPod, *, node_lost: bool) -> Fault | None:
    """The reason why the cluster, not the release, keeps the pod from being up; None if the cluster does not."""
    pod = tracked.pod
    if pod.unscheduled:
        return Fault.UNSCHEDULABLE
    if pod.node and node_lost:
        return Fault.NODE_NOT_READY
    return tracked.fault


def events_fault(events: Iterable[tuple[str, str, float]]) -> Fault | None:
    """The cause in the Events of a pod (reason, message and Unix seconds); None if the release is the cause, or if the
    Events name no cause.

    An Event about an image or a container shows that volumes and network were available. So problems that were reported
    before are over. An Event that blames the release counts before all others: if a ConfigMap is missing, the kubelet
    also reports the volume.
    """
    events = list(events)
    available_at = max((at for reason, _, at in events if reason in AFTER_VOLUMES_AND_NETWORK), default=-1.0)
    found = {_event_fault(reason, message) for reason, message, at in events if at > available_at}
    if _BY_RELEASE in found:
        return None
    return next((fault for fault in Fault if fault in found), None)


_BY_RELEASE = "release"


def _event_fault(reason: str, message: str) -> Fault | str | None:
    """The cause in one Event of the kubelet (its volumemanager and kuberuntime).

    If a volume cannot be attached, or cannot be mounted in time, the cluster is the cause. If a ConfigMap or Secret
    does not exist, the release is the cause.
    """
    match reason:
        case "FailedAttachVolume" | "FailedMapVolume":
            return Fault.VOLUME
        case "FailedMount":
            missing = "not found" in message and any(kind in message for kind in ("configmap", "secret"))
            by_release = missing or "references non-existent" in message or "hostPath type check failed" in message
            return _BY_RELEASE if by_release else Fault.VOLUME
        case "FailedCreatePodSandBox" | "NetworkNotReady":
            return Fault.SANDBOX
        case _:
            return None
