"""The condition Progressing of a CloneSet with a progress deadline. Pure functions.

Reasons and messages are those of OpenKruise (pkg/controller/cloneset/cloneset_status.go).
"""

from msgspec.structs import replace

from kube_base.times import unix
from kube_sandbox.cluster.deployments.progress import PROGRESSING, with_condition
from kube_sandbox.cluster.kinds import NO_LIMIT, Condition, find, without
from kube_sandbox.cluster.workload_kinds import CloneSet, CloneSetStatus

AVAILABLE = "CloneSetAvailable"
PAUSED = "CloneSetPaused"
PARTITION_AVAILABLE = "ProgressPartitionAvailable"
TIMED_OUT = "ProgressDeadlineExceeded"
UPDATED = "CloneSetUpdated"


def with_progressing(clone_set: CloneSet, status: CloneSetStatus, now: float) -> CloneSetStatus:
    """`status` with the condition Progressing; without it if there is no deadline."""
    if clone_set.spec.progress_deadline_seconds in (None, NO_LIMIT):
        return replace(status, conditions=without(status.conditions, PROGRESSING))
    return with_condition(status, _progressing(clone_set, status, now), now)


def next_check(clone_set: CloneSet, status: CloneSetStatus, now: float) -> float | None:
    """Seconds until the progress deadline must be checked; None if no deadline runs."""
    condition = find(status.conditions, PROGRESSING)
    if condition is None or condition.reason != UPDATED:
        return None
    return (
        max(0.0, _deadline(clone_set, condition) - now) + 1.0
    )  # one more second, because times in objects are whole seconds


def _progressing(clone_set: CloneSet, status: CloneSetStatus, now: float) -> Condition:
    desired = clone_set.spec.replicas
    counts = (status.replicas, status.updated_replicas, status.updated_available_replicas)
    if status.current_revision == status.update_revision and counts == (desired, desired, desired):
        return Condition(PROGRESSING, "True", AVAILABLE, "CloneSet is available")
    if clone_set.spec.update_strategy.paused:
        return Condition(PROGRESSING, "True", PAUSED, "CloneSet is paused")
    if status.expected_updated_replicas < desired and (
        status.expected_updated_replicas <= status.updated_available_replicas
    ):
        return Condition(PROGRESSING, "True", PARTITION_AVAILABLE, "CloneSet has been paused due to partition ready")
    before = find(status.conditions, PROGRESSING)
    if before is not None and (before.reason == TIMED_OUT or _deadline(clone_set, before) < now):
        message = f"CloneSet revision {status.update_revision} has timed out progressing"
        return Condition(PROGRESSING, "False", TIMED_OUT, message)
    return Condition(PROGRESSING, "True", UPDATED, "CloneSet is progressing")


def _deadline(clone_set: CloneSet, condition: Condition) -> float:
    return unix(condition.last_update_time) + (clone_set.spec.progress_deadline_seconds or 0)
