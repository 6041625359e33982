"""The queues of the controllers."""

from dataclasses import dataclass, field
from typing import Any

from altershield.kube.queue import WorkQueue
from reconciler.cluster.caches import Key
from reconciler.cluster.ownership import WorkloadKey


@dataclass(frozen=True)
class Queues:
    """One queue per controller."""

    namespaces: WorkQueue[Key] = field(default_factory=WorkQueue)
    settings: WorkQueue[Key] = field(default_factory=WorkQueue)
    policies: WorkQueue[Key] = field(default_factory=WorkQueue)
    batches: WorkQueue[Key] = field(default_factory=WorkQueue)
    releases: WorkQueue[WorkloadKey] = field(default_factory=WorkQueue)
    budgets: WorkQueue[Key] = field(default_factory=WorkQueue)
    generated_budgets: WorkQueue[WorkloadKey] = field(default_factory=WorkQueue)
    notifications: WorkQueue[Key] = field(default_factory=WorkQueue)
    flow_controls: WorkQueue[Key] = field(default_factory=WorkQueue)
    orders: WorkQueue[Key] = field(default_factory=WorkQueue)

    def by_name(self) -> dict[str, WorkQueue[Any]]:
        """The queues by the name of their controller."""
        return {
            "namespaces": self.namespaces,
            "settings": self.settings,
            "policies": self.policies,
            "batches": self.batches,
            "releases": self.releases,
            "budgets": self.budgets,
            "generated-budgets": self.generated_budgets,
            "notifications": self.notifications,
            "flow-controls": self.flow_controls,
            "orders": self.orders,
        }
