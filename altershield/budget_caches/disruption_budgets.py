"""PodDisruptionBudgets: which pods they cover, and whether they refuse evictions."""

import msgspec

from altershield.api.meta import ObjectMeta
from altershield.budgets.pods import Pod
from altershield.workloads.workload import WireSelector


class _Spec(msgspec.Struct, frozen=True, rename="camel", gc=False):
    selector: WireSelector | None = None
    max_unavailable: int | str | None = None
    min_available: int | str | None = None
    target_ref: None = None


class _Status(msgspec.Struct, frozen=True, rename="camel", gc=False):
    disruptions_allowed: int = 0


class DisruptionBudget(msgspec.Struct, frozen=True, gc=False):
    """The projection of a PodDisruptionBudget."""

    metadata: ObjectMeta
    spec: _Spec = _Spec()
    status: _Status = _Status()

    def blocks(self, pod: Pod) -> bool:
        """Whether the budget allows no eviction of this available pod now. An empty selector selects all pods."""
        selector = self.spec.selector
        return selector is not None and self.status.disruptions_allowed <= 0 and selector.matches(pod.labels)
