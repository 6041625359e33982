"""The status of a PodDisruptionBudget, computed from its pods and the replicas of their workloads. Pure functions.

The rules are those of `pkg/controller/disruption`. Times are Unix seconds.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from kube_base.times import rfc3339, unix
from kube_sandbox.cluster import selectors
from kube_sandbox.cluster.disruptions.kinds import Budget, BudgetSpec, BudgetStatus
from kube_sandbox.cluster.kinds import Object, Pod
from kube_sandbox.cluster.shares import share

DELETION_TIMEOUT = 120.0
"""An evicted pod that is not terminating after these seconds counts as healthy again."""
_CONDITION = "DisruptionAllowed"


class Sync(NamedTuple):
    """The status that a budget should have. `overdue` are evicted pods that were not deleted in time. `recheck` is the
    seconds until the next entry of `disruptedPods` is overdue, None without entries."""

    status: BudgetStatus
    overdue: list[Pod]
    recheck: float | None


def selected(budget: Budget, pods: Iterable[Pod]) -> list[Pod]:
    """The pods of the budget, out of those of its namespace."""
    selector = budget.spec.selector
    return [pod for pod in pods if selector is not None and selectors.matches(selector, pod.metadata.labels)]


def needs_scale(spec: BudgetSpec) -> bool:
    """Whether the numbers of the budget depend on the replicas of the workloads, not only on the existing pods."""
    return spec.max_unavailable is not None or isinstance(spec.min_available, str)


def sync(budget: Budget, pods: Sequence[Pod], scale: int, now: float) -> Sync:
    """`pods` are those of the budget. `scale` is the sum of the replicas of their workloads; it is used if
    `needs_scale`."""
    expected = scale if needs_scale(budget.spec) else len(pods)
    desired = _desired(budget.spec, expected)
    overdue, disrupted, recheck = [], {}, None
    for pod in pods:
        evicted = budget.status.disrupted_pods.get(pod.metadata.name)
        if evicted is None or pod.metadata.deletion_timestamp is not None:
            continue
        left = unix(evicted) + DELETION_TIMEOUT - now
        if left < 0:
            overdue.append(pod)
        else:
            disrupted[pod.metadata.name] = evicted
            recheck = left if recheck is None else min(left, recheck)
    healthy = sum(
        pod.metadata.deletion_timestamp is None and pod.metadata.name not in disrupted and pod.ready_since is not None
        for pod in pods
    )
    status = BudgetStatus(
        observed_generation=budget.metadata.generation,
        disrupted_pods=disrupted,
        disruptions_allowed=max(0, healthy - desired) if expected > 0 else 0,
        current_healthy=healthy,
        desired_healthy=desired,
        expected_pods=expected,
    )
    reason = "SufficientPods" if status.disruptions_allowed > 0 else "InsufficientPods"
    conditions = _with_condition(budget, reason, "", status.observed_generation, now)
    return Sync(msgspec.structs.replace(status, conditions=conditions), overdue, recheck)


def failed(budget: Budget, error: str, now: float) -> BudgetStatus:
    """The status after an error. No disruption is allowed, so that outdated numbers admit no eviction."""
    conditions = _with_condition(budget, "SyncFailed", error, budget.status.observed_generation, now)
    return msgspec.structs.replace(budget.status, disruptions_allowed=0, conditions=conditions)


def patch(budget: Budget, wanted: BudgetStatus) -> Object:
    """A merge patch that changes the status to `wanted`; empty if it does not differ. It fails if the budget has
    changed since the decision, for example because another eviction was admitted."""
    if wanted == budget.status:
        return {}
    status = msgspec.to_builtins(wanted)
    dropped = budget.status.disrupted_pods.keys() - wanted.disrupted_pods.keys()
    kept = wanted.disrupted_pods
    status["disruptedPods"] = {**kept, **dict.fromkeys(dropped)} if kept else None
    metadata = budget.metadata
    return {"metadata": {"uid": metadata.uid, "resourceVersion": metadata.resource_version}, "status": status}


def _desired(spec: BudgetSpec, expected: int) -> int:
    if spec.max_unavailable is not None:
        return max(0, expected - share(spec.max_unavailable, expected, round_up=True))
    if spec.min_available is not None:
        return share(spec.min_available, expected, round_up=True)
    return 0


def _with_condition(budget: Budget, reason: str, message: str, generation: int, now: float) -> tuple[Object, ...]:
    wanted = "True" if reason == "SufficientPods" else "False"
    present = next((one for one in budget.status.conditions if one["type"] == _CONDITION), None)
    condition = {
        "type": _CONDITION,
        "status": wanted,
        "observedGeneration": generation,
        "lastTransitionTime": rfc3339(now),
        "reason": reason,
        "message": message,
    }
    if present is None:
        return (*budget.status.conditions, condition)
    if present["status"] == wanted:
        condition["lastTransitionTime"] = present["lastTransitionTime"]
    return tuple(condition if one is present else one for one in budget.status.conditions)
