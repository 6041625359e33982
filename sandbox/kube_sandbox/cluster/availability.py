"""Availability: a pod is available when it has been ready for minReadySeconds. Pure functions."""

from collections.abc import Iterable

from kube_base.times import unix
from kube_sandbox.cluster.kinds import Pod


def seconds_to_available(pod: Pod, min_ready_seconds: int, now: float) -> float | None:
    """Seconds until the pod is available, 0 if it is; None for a pod that is not ready."""
    since = pod.ready_since
    return None if since is None else max(0.0, unix(since) + min_ready_seconds - now)


def is_available(pod: Pod, min_ready_seconds: int, now: float) -> bool:
    return seconds_to_available(pod, min_ready_seconds, now) == 0


def next_change(pods: Iterable[Pod], min_ready_seconds: int, now: float) -> float | None:
    """Seconds until the next ready pod becomes available; None if no pod waits for that."""
    waits = (seconds_to_available(pod, min_ready_seconds, now) for pod in pods)
    return min((wait for wait in waits if wait), default=None)
