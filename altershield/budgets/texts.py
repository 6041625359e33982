"""The texts of a refusal. The message has one sentence for one cause, because controllers put it into Events. What
changes from moment to moment is in warnings.
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


def too_many(covering: int, asked: int) -> str:
    """Why a disruption is refused: the pod has more budgets than are asked."""
    return f"{covering} PodUnavailableBudgets cover the pod, and at most {asked} are asked: delete the others"


def busy(name: str) -> str:
    """Why a disruption is refused: no write of the status came through in time."""
    return f"PodUnavailableBudget {name} is busy, others are deciding: try again"


def unknown(name: str) -> str:
    """Why a disruption is refused: pods or workloads could not be read in time."""
    return f"PodUnavailableBudget {name}: its pods could not be read in time: try again"


def unread() -> str:
    """Why a disruption is refused: it could not be read whether a budget covers the pod."""
    return "PodUnavailableBudgets: the pods or workloads of the namespace could not be read in time: try again"


def blocked_by_pdb(name: str) -> str:
    """Why an eviction is refused before it is reserved, in the words of the API server and in the PDB's name."""
    return f"Cannot evict pod as it would violate the pod's disruption budget {name}."


def unavailable(budget: PodUnavailableBudget, found: Counted) -> list[str]:
    """Which pods are not available, and why."""
    status, away = budget.status, recorded(budget.status)
    if not away and not found.unavailable:
        return []
    lines = [
        _recorded(each) for records in (status.disrupted_pods, status.unavailable_pods) for each in records.values()
    ]
    lines += [f"pod {pod.name} is not available" for pod in found.unavailable if pod.packed_uid not in away]
    if len(lines) > _MAX_PODS:
        lines[_MAX_PODS:] = [f"and {len(lines) - _MAX_PODS} more pods are not available"]
    return lines


def way_out(budget: PodUnavailableBudget, found: Numbers) -> str:
    """What the user can do."""
    metadata = budget.metadata
    edit = f"kubectl edit pub {metadata.name} -n {metadata.namespace}"
    change = f"edit the budget: {edit}"
    owner = metadata.controller
    if owner is not None and metadata.labels.get(labels.MANAGED_BY) == labels.MANAGED_BY_VALUE:
        # AlterShield takes back what somebody changes of a budget that it made
        edit = f"by the annotation {GENERATE}pub-maxUnavailable or -minAvailable of {owner.kind} {owner.name}"
        change = f"change the budget {edit}"
    if found.desired >= found.total:
        return f"the budget allows no disruption at all: raise maxUnavailable, lower minAvailable or add pods ({edit})"
    return f"wait until other pods are available again, or {change}"


def only_warned(refusal: str) -> str:
    return f"the budget has the mode Warn; with Enforce, this request would be refused: {refusal}"


def passed_by_break_glass(refusal: str) -> str:
    return f"passed by break glass, and recorded: {refusal}"


def amount(spec: PodUnavailableBudgetSpec) -> str:
    """How many pods may be unavailable, as the budget says it."""
    if spec.min_available is not None:
        return f"minAvailable {spec.min_available}"
    return f"maxUnavailable {spec.max_unavailable}"


def _recorded(record: DisruptionRecord) -> str:
    return f"pod {record.name} is not available: {record.operation} by {record.by} at {record.time}"
