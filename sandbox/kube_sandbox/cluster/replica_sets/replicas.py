"""The pods of one ReplicaSet: which to delete first, and the status. Pure functions.

The rules are those of pkg/controller/replicaset and of ActivePodsWithRanks in pkg/controller/controller_utils.go.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from kube_base.times import rfc3339, unix
from kube_sandbox.cluster import availability, selectors
from kube_sandbox.cluster.deployments.progress import REPLICA_FAILURE
from kube_sandbox.cluster.kinds import (
    Condition,
    LabelSelector,
    Pod,
    ReplicaSet,
    ReplicaSetStatus,
    find,
    without,
)

_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}
_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"


def to_delete(pods: Sequence[Pod], related: Iterable[Pod], count: int, now: float) -> list[Pod]:
    """The `count` pods to delete. First come pods that are not scheduled, not running or not ready; then those with a
    low deletion cost, with more related pods on their node, ready for a shorter time, restarted more often, or younger.
    `related` are all pods of ReplicaSets with the same owner."""
    on_node = Counter(pod.spec.node_name for pod in related if pod.active)

    def rank(pod: Pod) -> tuple[object, ...]:
        since = pod.ready_since
        return (
            bool(pod.spec.node_name),
            _PHASES.get(pod.status.phase, 1),
            since is not None,
            _cost(pod),
            -on_node[pod.spec.node_name],
            _magnitude(since, now) if since is not None else 0,
            -max((int(status.get("restartCount", 0)) for status in pod.status.container_statuses), default=0),
            _magnitude(pod.metadata.creation_timestamp, now) if since is None else 0,
            pod.metadata.uid,
        )

    return sorted(pods, key=rank)[:count]


def status(
    rs: ReplicaSet, active: Sequence[Pod], terminating: int, failure: str | None, now: float
) -> ReplicaSetStatus:
    """The status. `failure` is the error of the last create or delete, if it failed."""
    labels = LabelSelector((rs.spec.template.get("metadata") or {}).get("labels") or {})
    conditions = rs.status.conditions
    if failure is None:
        conditions = without(conditions, REPLICA_FAILURE)
    elif find(conditions, REPLICA_FAILURE) is None:
        reason = "FailedCreate" if len(active) < rs.spec.replicas else "FailedDelete"
        since = rfc3339(now)
        conditions = (
            *conditions,
            Condition(REPLICA_FAILURE, "True", reason, failure, last_transition_time=since),
        )
    return ReplicaSetStatus(
        observed_generation=rs.metadata.generation,
        replicas=len(active),
        fully_labeled_replicas=sum(selectors.matches(labels, pod.metadata.labels) for pod in active),
        ready_replicas=sum(pod.ready_since is not None for pod in active),
        available_replicas=sum(availability.is_available(pod, rs.spec.min_ready_seconds, now) for pod in active),
        terminating_replicas=terminating,
        conditions=conditions,
    )


def _cost(pod: Pod) -> int:
    try:
        return int(pod.metadata.annotations.get(_DELETION_COST, "0"))
    except ValueError:
        return 0


def _magnitude(since: str | None, now: float) -> int:
    """The age as a power of two: pods of about the same age are equal, and their uid decides."""
    age = now - unix(since)
    return int(math.log2(age * 1e9)) if age > 0 else -1
