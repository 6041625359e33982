"""The next step of a Job, and its status. Pure functions.

The rules are those of the Job controller (k8s.io/kubernetes, pkg/controller/job), without indexes, pod failure policies
and success policies. Pods have no tracking finalizers: a pod that a user deletes is not counted any more.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from kube_base.times import rfc3339, unix
from kube_sandbox.cluster.jobs.kinds import Job, JobStatus
from kube_sandbox.cluster.kinds import Condition, Object, Pod, find

_BACK_OFF_LIMIT = "Job has reached the specified backoff limit"
_DEADLINE = "Job was active longer than specified deadline"
_REACHED = "Reached expected number of succeeded pods"


@dataclass(frozen=True, slots=True)
class Plan:
    """The pods to create and delete, the status, and the seconds after which to decide again."""

    status: JobStatus
    create: int = 0
    delete: tuple[Pod, ...] = ()
    after: float | None = None
    expired: bool = False
    """Whether the Job itself is to be deleted: its time to live has passed."""


def plan(job: Job, pods: Sequence[Pod], now: float, back_off: float) -> Plan:
    """`pods` are those of the Job. `back_off`: seconds before the first failed pod is replaced; it doubles."""
    if (end := ended(job)) is not None:
        left = _left(job, end, now)
        active = tuple(pod for pod in pods if pod.active)
        return Plan(replace(job.status, active=0), delete=active, after=left or None, expired=left == 0)
    active = tuple(pod for pod in pods if pod.active)
    succeeded = sum(pod.status.phase == "Succeeded" for pod in pods)
    failed = [pod for pod in pods if pod.status.phase == "Failed"]
    start = job.status.start_time or (None if job.spec.suspend else rfc3339(now))
    status = replace(job.status, start_time=start, active=len(active), succeeded=succeeded, failed=len(failed))
    deadline = job.spec.active_deadline_seconds
    left = unix(start) + deadline - now if deadline is not None and start else None
    wanted = job.spec.completions
    if len(failed) + sum(map(_restarts, active)) > job.spec.backoff_limit:
        return _end(status, active, "Failed", "FailureTarget", "BackoffLimitExceeded", _BACK_OFF_LIMIT, now)
    if left is not None and left <= 0:
        return _end(status, active, "Failed", "FailureTarget", "DeadlineExceeded", _DEADLINE, now)
    if (succeeded >= wanted) if wanted is not None else (succeeded > 0 and not active):
        return _end(status, active, "Complete", "SuccessCriteriaMet", "CompletionsReached", _REACHED, now)
    if job.spec.suspend:
        return Plan(replace(status, active=0), delete=active)
    missing = job.spec.parallelism if wanted is None else min(job.spec.parallelism, wanted - succeeded)
    missing -= len(active)
    if wanted is None and succeeded:
        missing = 0  # the pods have begun to end
    wait = _wait(failed, now, back_off)
    if missing > 0 and wait > 0:
        return Plan(status, after=min(wait, left) if left is not None else wait)
    missing = max(missing, 0)
    return Plan(replace(status, active=len(active) + missing), create=missing, after=left)


def ended(job: Job) -> Condition | None:
    """The condition with which the Job ended."""
    for type_ in ("Complete", "Failed"):
        found = find(job.status.conditions, type_)
        if found is not None and found.status == "True":
            return found
    return None


def _end(
    status: JobStatus, active: tuple[Pod, ...], type_: str, before: str, reason: str, message: str, now: float
) -> Plan:
    time = rfc3339(now)
    conditions = tuple(Condition(each, "True", reason, message, last_transition_time=time) for each in (before, type_))
    done = time if type_ == "Complete" else None
    return Plan(replace(status, active=0, completion_time=done, conditions=conditions), delete=active)


def _left(job: Job, end: Condition, now: float) -> float | None:
    """Seconds until the Job is deleted; None if it is not deleted."""
    ttl = job.spec.ttl_seconds_after_finished
    return None if ttl is None else max(0.0, unix(end.last_transition_time) + ttl - now)


def _wait(failed: Sequence[Pod], now: float, back_off: float) -> float:
    """Seconds before the last failed pod is replaced."""
    if not failed:
        return 0.0
    last = max(_finished(pod) for pod in failed)
    return float(max(0.0, last + back_off * 2 ** min(len(failed) - 1, 20) - now))


def _finished(pod: Pod) -> float:
    times = [_terminated(status).get("finishedAt") for status in pod.status.container_statuses]
    return max((unix(time) for time in times if time), default=unix(pod.metadata.creation_timestamp))


def _terminated(status: Object) -> Object:
    return (status.get("state") or {}).get("terminated") or {}


def _restarts(pod: Pod) -> int:
    return sum(int(status.get("restartCount") or 0) for status in pod.status.container_statuses)
