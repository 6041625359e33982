"""When a pod is up, since when it is not, and whose fault that is. Pure.

A pod is up when it is available now: ready for `minReadySeconds` and for the observation time, without a restart
since. What it was before, whatever mark it carries, does not count.

Times are by our own clock, which follows the API server's. The kubelet's clock is believed only with an allowance:
where we have not tracked ourselves for how long a pod has been ready, because we have just begun.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from altershield.workloads.pods import Fault, Pod, Trouble

CLOCK_SKEW = 300
"""Seconds by which a kubelet's clock may differ from the API server's; tokens bear no more either."""

_MAX_DOUBLINGS = 20
_LOOKED_AT_AGAIN = 4  # times in a start timeout that a pod is looked at which the cluster holds up


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds."""

    start_timeout: float
    """A pod may take so long to come up, and so long to come up again."""
    observe: float
    """A pod has to stay ready so long before it is up."""


class Health(StrEnum):
    UP = "Up"
    OBSERVING = "Observing"
    """Ready, but not for long enough."""
    DOWN = "Down"
    """Not up, and in time."""
    OVERDUE = "Overdue"
    """Not up for longer than the start timeout, by its own fault; it may be ready just now."""
    HELD_UP = "HeldUp"
    """Not up for longer than the start timeout, by the cluster's fault."""


@dataclass(slots=True)
class TrackedPod:
    """What was tracked of one pod of a release."""

    pod: Pod
    down_since: float
    """When it was made, or when it was last up."""
    ready_since: float | None
    """Since when it was tracked to be ready without a restart or a break; None where it is not."""
    was_up: bool
    """Whether it was up once in this release."""
    broken: bool
    """Whether it was tracked not to be up any more, and has not been up since."""
    baseline: int
    """Restarts that do not count: those from before the release, of a pod that was updated in place."""
    fault: Fault | None = None
    """Whose fault it is where only its Events tell."""
    breaks: int = 0
    """How often it was up and then not any more."""
    held_up: bool = False
    """The cluster kept it from coming up when it was last looked at."""
    held_since: float = 0.0
    """Since when it does so."""
    inherited: bool = False
    """Its time is that of a pod which ended by itself, in whose place it came."""
    trouble: Trouble | None = None
    """Why it was not ready when it last was not."""
    ready_again: float | None = None
    """When it became ready, where that was tracked: by the kubelet's word, if we saw it later."""
    stayed_from: float | None = None
    """When it will have stayed ready for the observation time, `minReadySeconds` aside; None where it is not ready."""


def start_tracking(
    pod: Pod,
    began: float,
    now: float,
    *,
    was_up: bool,
    down_since: float | None,
    node_ready_at: float = 0.0,
    in_place: bool,
    held_up: bool = False,
) -> TrackedPod:
    """What can be said of a pod when we look at it for the first time, in a release that `began` then.

    `down_since`: what the record remembers of a pod that was up and is not any more. `in_place`: it is older than the
    release, and was updated for it. `held_up`: the record says that the cluster holds pods up. A pod's time begins anew
    when its node becomes ready after it was made (`node_ready_at`). A pod that is ready now may have been up until now.
    What was made in the future, by a clock that differs, was made now.
    """
    made = max(pod.metadata.created, pod.scheduled_at, began)
    since = down_since if down_since is not None else now if was_up or in_place or pod.ready else made
    if node_ready_at > made:
        since = max(since, node_ready_at + CLOCK_SKEW)
    since = min(since, now)
    return TrackedPod(
        pod=pod,
        down_since=since,
        # the container that is ready just after an update in place may still be the old one
        ready_since=(now if pod.ready else None) if in_place else _ready_since(pod, now),
        was_up=was_up,
        broken=down_since is not None or (was_up and not pod.ready),
        baseline=pod.restarts if in_place else 0,
        held_up=held_up,
        held_since=now,
        trouble=pod.trouble,
    )


def _ready_since(pod: Pod, now: float) -> float | None:
    """Since when a pod that nobody watched is ready: by the kubelet's word, as far as its clock can be believed."""
    if not pod.ready:
        return None
    return min(pod.ready_at + CLOCK_SKEW, now) if pod.ready_at else now


def update_tracked(tracked: TrackedPod, pod: Pod, now: float, *, updated_in_place: bool) -> None:
    """Take in what the pod says now."""
    before = tracked.pod
    tracked.pod, tracked.trouble = pod, pod.trouble or tracked.trouble
    if updated_in_place:
        tracked.baseline, tracked.was_up, tracked.broken, tracked.down_since = pod.restarts, False, False, now
    interrupted = pod.ready and tracked.ready_since is not None and _interrupted(before, pod)
    if interrupted or not pod.ready:
        if tracked.stayed_from is not None and now >= tracked.stayed_from:
            tracked.down_since = now  # only `minReadySeconds` kept it from being up until now
            tracked.breaks += 1
        tracked.ready_since, tracked.stayed_from = None, None
        tracked.broken = tracked.broken or tracked.was_up
    if pod.ready and tracked.ready_since is None:
        told = pod.ready_at if pod.ready_at != before.ready_at else 0
        tracked.ready_since, tracked.ready_again = now, min(told or now, now)
    if pod.ready or pod.unscheduled != before.unscheduled or pod.trouble != before.trouble:
        tracked.fault = None


def _interrupted(before: Pod, after: Pod) -> bool:
    """Whether it was not ready in between, though each time that we looked it was."""
    return before.restarts != after.restarts or before.ready_at != after.ready_at


def needed(tracked: TrackedPod, min_ready: int, timing: Timing) -> float:
    """Seconds for which the pod has to be ready. Each restart, and each loss of readiness, doubles what is observed, up
    to the start timeout: what crashes or flaps again and again must not seem up in between."""
    restarts = min(max(tracked.pod.restarts - tracked.baseline, tracked.breaks, 0), _MAX_DOUBLINGS)
    base = max(timing.observe, 1.0) if restarts else timing.observe
    return max(min_ready, 0) + min(base * 2.0**restarts, max(timing.start_timeout, timing.observe))


def assess(
    tracked: TrackedPod, min_ready: int, timing: Timing, now: float, *, node_ready: bool, node_lost: bool
) -> tuple[Health, float | None]:
    """How the pod is, and when that may change by itself (Unix seconds; None: not before it is tracked again)."""
    pod = tracked.pod
    if pod.ready and node_ready and tracked.ready_since is not None:
        _set_held_up(tracked, now, held_up=False)
        due = tracked.ready_since + needed(tracked, min_ready, timing)
        if now >= due:
            tracked.was_up, tracked.broken, tracked.stayed_from = True, False, None
            return Health.UP, None
        tracked.stayed_from = tracked.ready_since + needed(tracked, 0, timing)
        # what was not ready when its time was over has to be up before it counts as in time
        late = tracked.ready_again is not None and tracked.ready_again > tracked.down_since + timing.start_timeout
        return (Health.OVERDUE if late else Health.OBSERVING), due
    tracked.broken = tracked.broken or tracked.was_up
    held_up = fault(tracked, node_lost=node_lost) is not None
    _set_held_up(tracked, now, held_up=held_up)
    due = tracked.down_since + timing.start_timeout
    if now < due:
        return Health.DOWN, due
    if held_up:  # looked at again: that a node is back, no event of the pod need tell
        return Health.HELD_UP, now + timing.start_timeout / _LOOKED_AT_AGAIN
    return Health.OVERDUE, None


def _set_held_up(tracked: TrackedPod, now: float, *, held_up: bool) -> None:
    """The time of a pod that the cluster kept from coming up begins anew when it does so no longer. That of one whose
    predecessors ended by themselves goes on: each of these had to wait for its node, too."""
    if held_up and not tracked.held_up:
        tracked.held_since = now
    if tracked.held_up and not held_up:
        tracked.down_since = now if not tracked.inherited else min(now, tracked.down_since + now - tracked.held_since)
    tracked.held_up = held_up


def fault(tracked: TrackedPod, *, node_lost: bool) -> Fault | None:
    """Why the pod is not up where that is the cluster's fault."""
    pod = tracked.pod
    if pod.unscheduled:
        return Fault.UNSCHEDULABLE
    if pod.node and node_lost:
        return Fault.NODE_NOT_READY
    return tracked.fault


def events_fault(events: Iterable[tuple[str, str]]) -> Fault | None:
    """Whose fault the Events (reason and message) of a pod tell of whose containers cannot be started; None: the
    release's, or nobody's. One that tells of what the release itself lacks counts before all others: where a
    ConfigMap is missing, the kubelet complains of the volume too.
    """
    found = {_event_fault(*event) for event in events}
    if _OWN in found:
        return None
    return next((fault for fault in Fault if fault in found), None)


_OWN = "own"


def _event_fault(reason: str, message: str) -> Fault | str | None:
    """A volume that cannot be attached, or mounted in time, is the cluster's fault; a ConfigMap or Secret that is not
    there is the release's own (kubelet: volumemanager, kuberuntime)."""
    match reason:
        case "FailedAttachVolume" | "FailedMapVolume":
            return Fault.VOLUME
        case "FailedMount":
            missing = "not found" in message and any(kind in message for kind in ("configmap", "secret"))
            own = missing or "references non-existent" in message or "hostPath type check failed" in message
            return _OWN if own else Fault.VOLUME
        case "FailedCreatePodSandBox" | "NetworkNotReady":
            return Fault.SANDBOX
        case _:
            return None
