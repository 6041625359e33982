"""The metrics of disruptions of pods, which budgets and flow controls count."""

from prometheus_client import CollectorRegistry, Counter


class DisruptionMetrics:
    """Counters of disruptions. Each disruption counts once for each PodUnavailableBudget and PodDeletionFlowControl
    that records it."""

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
