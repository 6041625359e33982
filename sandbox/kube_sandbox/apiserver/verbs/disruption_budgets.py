"""Whether PodDisruptionBudgets allow the eviction of a pod. Pure functions.

The rules are those of `pkg/registry/core/pod/storage/eviction.go`. Times are RFC 3339.
"""

from collections.abc import Iterable
from typing import NamedTuple

from kube_sandbox.apiserver.attributes import Object, copied
from kube_sandbox.apiserver.errors import StatusError, forbidden
from kube_sandbox.apiserver.storage import selectors

_MAX_DISRUPTED_PODS = 2000
_REFUSED = "Cannot evict pod as it would violate the pod's disruption budget."
_ALLOWED = "DisruptionAllowed"


class Charge(NamedTuple):
    """The budget to which an eviction is charged: its name, and its status with the eviction in it."""

    budget: str
    status: Object


def needs_no_budget(pod: Object) -> bool:
    """Whether the eviction of the pod needs no budget, because the pod does not serve yet or does not serve any
    more."""
    return bool(pod["metadata"].get("deletionTimestamp")) or pod["status"].get("phase") in (
        "Pending",
        "Succeeded",
        "Failed",
    )


def selecting(budgets: Iterable[Object], labels: dict[str, str]) -> list[Object]:
    """The budgets that select a pod with these labels. An empty selector selects each pod; a missing one, none."""
    return [
        budget
        for budget in budgets
        if (selector := budget["spec"].get("selector")) is not None and selectors.matches(selector, labels)
    ]


def charge(pod: Object, budgets: Iterable[Object], now: str) -> Charge | None:
    """The charge for the eviction of a pod; None if no budget selects the pod, or if the pod is unhealthy and its
    budget allows the eviction of unhealthy pods.

    Raises StatusError: 429 if the budget allows no disruption now, 500 if two budgets select the pod, 403 if the status
    of the budget is invalid.
    """
    found = selecting(budgets, pod["metadata"].get("labels") or {})
    if len(found) > 1:
        why = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        raise StatusError(500, why, reason="")
    if not found or (not _is_ready(pod) and _allows_unhealthy(found[0])):
        return None
    (budget,) = found
    metadata, status = budget["metadata"], budget.get("status") or {}
    name, allowed = metadata["name"], status.get("disruptionsAllowed", 0)
    if status.get("observedGeneration", 0) < metadata.get("generation", 0):
        raise _too_many(f"The disruption budget {name} is still being processed by the server.", 10)
    if allowed < 0:
        raise forbidden("policy", "poddisruptionbudget", name, "pdb disruptions allowed is negative")
    if len(status.get("disruptedPods") or {}) > _MAX_DISRUPTED_PODS:
        why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise forbidden("policy", "poddisruptionbudget", name, why)
    if allowed == 0:
        raise _too_many(_refusal(name, status))
    charged = copied(status)
    charged["disruptionsAllowed"] = allowed - 1
    charged["disruptedPods"] = {**(status.get("disruptedPods") or {}), pod["metadata"]["name"]: now}
    if allowed == 1:
        charged["conditions"] = _exhausted(charged.get("conditions") or [], charged.get("observedGeneration", 0), now)
    return Charge(name, charged)


def _is_ready(pod: Object) -> bool:
    return any(
        condition["type"] == "Ready" and condition["status"] == "True"
        for condition in pod["status"].get("conditions") or ()
    )


def _allows_unhealthy(budget: Object) -> bool:
    """Whether the budget allows the eviction of pods that are not ready."""
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status") or {}
    desired = status.get("desiredHealthy", 0)
    return bool(status.get("currentHealthy", 0) >= desired > 0)


def _refusal(name: str, status: Object) -> str:
    found: Object = next((one for one in status.get("conditions") or () if one["type"] == _ALLOWED), {})
    message = found.get("message") if found.get("status") == "False" else ""
    desired, current = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
    if message and found.get("reason") == "SyncFailed":
        why = f"does not allow evicting pods currently because it failed sync: {message}"
    elif current <= desired:
        why = f"needs {desired} healthy pods and has {current} currently"
    elif message:
        why = f"does not allow evicting pods currently ({found.get('reason', '')}): {message}"
    else:
        why = "does not allow evicting pods currently"
    return f"The disruption budget {name} {why}"


def _too_many(cause: str, retry_after: int = 0) -> StatusError:
    details: Object = {"causes": [{"reason": "DisruptionBudget", "message": cause}]}
    if retry_after:
        details["retryAfterSeconds"] = retry_after
    return StatusError(429, _REFUSED, details=details)


def _exhausted(conditions: list[Object], generation: int, now: str) -> list[Object]:
    """The conditions of a budget that allows no more disruptions."""
    present = next((one for one in conditions if one["type"] == _ALLOWED), None)
    since = present["lastTransitionTime"] if present and present["status"] == "False" else now
    condition = {
        "type": _ALLOWED,
        "status": "False",
        "observedGeneration": generation,
        "lastTransitionTime": since,
        "reason": "InsufficientPods",
        "message": "",
    }
    if present is None:
        return [*conditions, condition]
    return [condition if one is present else one for one in conditions]
