"""The status of a Deployment: counts, conditions, and the progress of its release. Pure functions.

Reasons and messages are those of Kubernetes (pkg/controller/deployment/progress.go): `kubectl rollout status` and
`kubectl wait` read them.
"""

from collections.abc import Sequence
from typing import TypeVar

from msgspec.structs import replace

from kube_base.times import rfc3339, unix
from kube_sandbox.cluster.deployments import rollout
from kube_sandbox.cluster.kinds import (
    NO_LIMIT,
    Condition,
    Deployment,
    DeploymentStatus,
    ReplicaSet,
    find,
    without,
)
from kube_sandbox.cluster.workload_kinds import CloneSetStatus

AVAILABLE = "Available"
PROGRESSING = "Progressing"
REPLICA_FAILURE = "ReplicaFailure"

NEW_RS_CREATED = "NewReplicaSetCreated"
NEW_RS_FOUND = "FoundNewReplicaSet"
NEW_RS_AVAILABLE = "NewReplicaSetAvailable"
RS_UPDATED = "ReplicaSetUpdated"
RS_CREATE_ERROR = "ReplicaSetCreateError"
TIMED_OUT = "ProgressDeadlineExceeded"
PAUSED = "DeploymentPaused"
RESUMED = "DeploymentResumed"

S = TypeVar("S", DeploymentStatus, CloneSetStatus)


def has_deadline(deployment: Deployment) -> bool:
    return deployment.spec.progress_deadline_seconds not in (None, NO_LIMIT)


def is_complete(deployment: Deployment, status: DeploymentStatus) -> bool:
    """Whether all replicas have the current template and are available, and no others exist."""
    desired = deployment.spec.replicas
    return (
        status.updated_replicas == status.replicas == status.available_replicas == desired
        and status.observed_generation >= deployment.metadata.generation
    )


def with_condition(status: S, new: Condition, now: float) -> S:
    """`status` with the condition `new`. A condition with the same status and reason stays unchanged, times
    included."""
    old = find(status.conditions, new.type)
    if old and (old.status, old.reason) == (new.status, new.reason):
        return status
    since = old.last_transition_time if old and old.status == new.status else rfc3339(now)
    new = replace(new, last_update_time=new.last_update_time or rfc3339(now), last_transition_time=since)
    return replace(status, conditions=(*without(status.conditions, new.type), new))


def with_progress(
    deployment: Deployment, status: DeploymentStatus, value: str, reason: str, message: str, now: float
) -> DeploymentStatus:
    """`status` with this condition Progressing, if the Deployment has a progress deadline."""
    if not has_deadline(deployment):
        return status
    return with_condition(status, Condition(PROGRESSING, value, reason, message), now)


def with_pause(deployment: Deployment, status: DeploymentStatus, now: float) -> DeploymentStatus:
    """`status` after a pause or resume, which restart the progress deadline unless it is exceeded."""
    condition = find(status.conditions, PROGRESSING)
    if condition and condition.reason == TIMED_OUT:
        return status
    was_paused = condition is not None and condition.reason == PAUSED
    if deployment.spec.paused and not was_paused:
        return with_progress(deployment, status, "Unknown", PAUSED, "Deployment is paused", now)
    if was_paused and not deployment.spec.paused:
        return with_progress(deployment, status, "Unknown", RESUMED, "Deployment is resumed", now)
    return status


def counted(
    deployment: Deployment,
    conditions: tuple[Condition, ...],
    new: ReplicaSet | None,
    old: Sequence[ReplicaSet],
    now: float,
) -> DeploymentStatus:
    """The status with counts from the ReplicaSets and the condition Available. Other conditions stay."""
    everything = [*old, *([new] if new else [])]
    available = rollout.available(everything)
    terminating = [
        rs.status.terminating_replicas
        for rs in everything
        if rs.status.observed_generation or rs.status.terminating_replicas is not None
    ]
    status = DeploymentStatus(
        observed_generation=deployment.metadata.generation,
        replicas=sum(rs.status.replicas for rs in everything),
        updated_replicas=new.status.replicas if new else 0,
        ready_replicas=sum(rs.status.ready_replicas for rs in everything),
        available_replicas=available,
        unavailable_replicas=max(0, rollout.total(everything) - available),
        terminating_replicas=None if None in terminating else sum(count or 0 for count in terminating),
        collision_count=deployment.status.collision_count,
        conditions=conditions,
    )
    if available >= deployment.spec.replicas - rollout.bounds(deployment).unavailable:
        availability = Condition(AVAILABLE, "True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    else:
        availability = Condition(
            AVAILABLE, "False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability."
        )
    return with_condition(status, availability, now)


def progressed(
    deployment: Deployment,
    conditions: tuple[Condition, ...],
    new: ReplicaSet | None,
    old: Sequence[ReplicaSet],
    now: float,
) -> DeploymentStatus:
    """The status of `counted`, with the conditions Progressing and ReplicaFailure."""
    status = counted(deployment, conditions, new, old, now)
    condition = find(conditions, PROGRESSING)
    finished = status.replicas == status.updated_replicas and condition and condition.reason == NEW_RS_AVAILABLE
    if not has_deadline(deployment):
        status = replace(status, conditions=without(status.conditions, PROGRESSING))
    elif not finished:
        status = _with_progressing(deployment, status, condition, new, now)

    failures = [
        failure for rs in [*([new] if new else []), *old] if (failure := find(rs.status.conditions, REPLICA_FAILURE))
    ]
    if not failures:
        return replace(status, conditions=without(status.conditions, REPLICA_FAILURE))
    failure = failures[0]
    return with_condition(status, replace(failure, last_update_time=failure.last_transition_time), now)


def next_check(deployment: Deployment, status: DeploymentStatus, now: float) -> float | None:
    """Seconds until the progress deadline must be checked; None if no deadline runs."""
    condition = find(status.conditions, PROGRESSING)
    if not has_deadline(deployment) or condition is None:
        return None
    if is_complete(deployment, status) or condition.reason in (TIMED_OUT, PAUSED, NEW_RS_AVAILABLE):
        return None
    deadline = unix(condition.last_update_time) + (deployment.spec.progress_deadline_seconds or 0)
    return max(0.0, deadline - now) + 1.0  # one more second, because times in objects are whole seconds


def _with_progressing(
    deployment: Deployment,
    status: DeploymentStatus,
    condition: Condition | None,
    new: ReplicaSet | None,
    now: float,
) -> DeploymentStatus:
    subject = f'ReplicaSet "{new.metadata.name}"' if new else f'Deployment "{deployment.metadata.name}"'
    if is_complete(deployment, status):
        done = Condition(PROGRESSING, "True", NEW_RS_AVAILABLE, f"{subject} has successfully progressed.")
        return with_condition(status, done, now)
    if _has_moved(deployment.status, status):
        moving = Condition(PROGRESSING, "True", RS_UPDATED, f"{subject} is progressing.", rfc3339(now))
        # The update time is renewed with each progress, because the deadline counts from it.
        since = condition.last_transition_time if condition and condition.status == "True" else rfc3339(now)
        moving = replace(moving, last_transition_time=since)
        return replace(status, conditions=(*without(status.conditions, PROGRESSING), moving))
    if _is_overdue(deployment, condition, now):
        overdue = Condition(PROGRESSING, "False", TIMED_OUT, f"{subject} has timed out progressing.")
        return with_condition(status, overdue, now)
    return status


def _has_moved(before: DeploymentStatus, after: DeploymentStatus) -> bool:
    return (
        after.updated_replicas > before.updated_replicas
        or after.replicas - after.updated_replicas < before.replicas - before.updated_replicas
        or after.ready_replicas > before.ready_replicas
        or after.available_replicas > before.available_replicas
    )


def _is_overdue(deployment: Deployment, condition: Condition | None, now: float) -> bool:
    if condition is None or condition.reason == NEW_RS_AVAILABLE:
        return False
    deadline = unix(condition.last_update_time) + (deployment.spec.progress_deadline_seconds or 0)
    return condition.reason == TIMED_OUT or deadline < now
