"""The texts of refusals. The message is one sentence that says the cause, because controllers put it into Events. The
warnings name the pods that are not available, and say what the user can do.
"""

from altershield.api import labels
from altershield.api.annotations import GENERATE
from altershield.api.budgets import DisruptionRecord, PodUnavailableBudget, PodUnavailableBudgetSpec
from altershield.budgets.numbers import Counted, Numbers, recorded

_MAX_PODS = 5


def exceeded(budget: PodUnavailableBudget, found: Numbers) -> str:
    """Why a disruption is refused: too few pods are available."""
    return (
        f"PodUnavailableBudget {budget.metadata.name}: {found.current} of {found.total} pods are available and "
        f"{found.desired} must be ({amount(budget.spec)})"
    )


def full(budget: PodUnavailableBudget) -> str:
    """Why a disruption is refused: the status has no room for another record."""
    return f"PodUnavailableBudget {budget.metadata.name}: too many disruptions are under way, so none can be recorded"


def too_many(covering: int, limit: int) -> str:
    """Why a disruption is refused: more budgets than `limit` cover the pod."""
    return f"{covering} PodUnavailableBudgets cover the pod, and a pod can have at most {limit}: delete some of them"


def busy(name: str) -> str:
    """Why a disruption is refused: the status could not be written in time."""
    return f"PodUnavailableBudget {name} is busy with other requests: try again"


def unknown(name: str) -> str:
    """Why a disruption is refused: the pods of a budget could not be read in time."""
    return f"PodUnavailableBudget {name}: its pods could not be read in time: try again"


def unread() -> str:
    """Why a disruption is refused: the objects that decide whether a budget covers the pod could not be read in
    time."""
    return "PodUnavailableBudgets: the pods or workloads of the namespace could not be read in time: try again"


def blocked_by_pdb(name: str) -> str:
    """Why an eviction is refused before a record is written: the PodDisruptionBudget `name` allows none. The words are
    those of the API server."""
    return f"Cannot evict pod as it would violate the pod's disruption budget {name}."


def unavailable(budget: PodUnavailableBudget, found: Counted) -> list[str]:
    """The pods that are not available, and why. At most six lines."""
    status, with_record = budget.status, recorded(budget.status)
    if not with_record and not found.unavailable:
        return []
    lines = [
        _recorded(each) for records in (status.disrupted_pods, status.unavailable_pods) for each in records.values()
    ]
    lines += [f"pod {pod.name} is not available" for pod in found.unavailable if pod.packed_uid not in with_record]
    if len(lines) > _MAX_PODS:
        lines[_MAX_PODS:] = [f"and {len(lines) - _MAX_PODS} more pods are not available"]
    return lines


def way_out(budget: PodUnavailableBudget, found: Numbers) -> str:
    """How the user can have the disruption admitted. A command is at the end, so that people can paste it."""
    metadata = budget.metadata
    change = f"raise maxUnavailable or lower minAvailable: kubectl edit pub {metadata.name} -n {metadata.namespace}"
    owner = metadata.controller
    if owner is not None and metadata.labels.get(labels.MANAGED_BY) == labels.MANAGED_BY_VALUE:
        # AlterShield undoes other changes of a budget that it made
        change = f"change the annotation {GENERATE}pub-maxUnavailable or -minAvailable of {owner.kind} {owner.name}"
    if found.desired >= found.total:
        return f"the budget allows no disruption at all: add pods, or {change}"
    return f"wait until other pods are available again, or {change}"


def only_warned(refusal: str) -> str:
    return f"the budget has the mode Warn; with Enforce, this request would be refused: {refusal}"


def passed_by_break_glass(refusal: str) -> str:
    return f"passed by break glass, and recorded: {refusal}"


def passed_without_record(refusal: str) -> str:
    return f"passed by break glass, and not recorded: {refusal}"


def amount(spec: PodUnavailableBudgetSpec) -> str:
    """The field that says how many pods may be unavailable, with its value."""
    if spec.min_available is not None:
        return f"minAvailable {spec.min_available}"
    return f"maxUnavailable {spec.max_unavailable}"


def _recorded(record: DisruptionRecord) -> str:
    return f"pod {record.name} is not available: {record.operation} by {record.by} at {record.time}"
