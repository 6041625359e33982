"""What the writer writes, and the disruptions of pods that no gatekeeper decided: metrics of several subjects."""

from prometheus_client import CollectorRegistry, Counter

from altershield.api.resources import (
    CHANGE_PODS,
    CHANGE_WORKLOADS,
    CONFIG_MAPS,
    DEFENSE_POLICIES,
    DISRUPTION_BUDGETS,
    OPS_CONFIG_INFOS,
    POD_DELETION_FLOW_CONTROLS,
    POD_UNAVAILABLE_BUDGETS,
    PODS,
)
from altershield.releases import history
from altershield.workloads import ADAPTERS

WRITES = {
    **{adapter.resource.kind: ("patch",) for adapter in ADAPTERS},
    **{adapter.intermediate.kind: ("patch",) for adapter in ADAPTERS if adapter.intermediate is not None},
    PODS.kind: ("patch", "delete"),
    CHANGE_WORKLOADS.kind: ("create", "patch", "patch status", "delete"),
    CHANGE_PODS.kind: ("create", "patch status", "delete"),
    OPS_CONFIG_INFOS.kind: ("create", "patch status"),
    DEFENSE_POLICIES.kind: ("patch status",),
    POD_DELETION_FLOW_CONTROLS.kind: ("update status",),
    POD_UNAVAILABLE_BUDGETS.kind: ("create", "patch", "update status", "delete"),
    DISRUPTION_BUDGETS.kind: ("create", "patch", "delete"),
    history.RESOURCE.kind: ("create", "patch", "delete"),
    CONFIG_MAPS.kind: ("create", "delete"),
}
"""The verbs of the writes by kind."""


class DisruptionMetrics:
    """Counted for each PodUnavailableBudget and each PodDeletionFlowControl."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.ungated_deletions = Counter(
            "altershield_ungated_deletions",
            "Pods that were deleted, evicted by a kubelet, or lost with their node, although no gatekeeper was asked: "
            "one for each PodUnavailableBudget and PodDeletionFlowControl.",
            registry=registry,
        )
        self.break_glass = Counter(
            "altershield_break_glass",
            "Disruptions of pods that passed by break glass: one for each PodUnavailableBudget and each "
            "PodDeletionFlowControl that recorded it. They are counted when their records end.",
            registry=registry,
        )
