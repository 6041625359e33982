"""PodDisruptionBudgets: which pods they cover, and whether they refuse evictions."""

import msgspec

from altershield.budgets.pods import Pod
from altershield.workloads.workload import WireSelector
from kube_base.meta import ObjectMeta


class _Spec(msgspec.Struct, frozen=True, rename="camel", gc=False):
    selector: WireSelector | None = None
    max_unavailable: int | str | None = None
    min_available: int | str | None = None
    unhealthy_pod_eviction_policy: str | None = None
    target_ref: None = None


class _Status(msgspec.Struct, frozen=True, rename="camel", gc=False):
    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0


class DisruptionBudget(msgspec.Struct, frozen=True, gc=False):
    """The projection of a PodDisruptionBudget."""

    metadata: ObjectMeta
    spec: _Spec = _Spec()
    status: _Status = _Status()

    def blocks(self, pod: Pod) -> bool:
        """Whether the budget allows no eviction of this available pod now. An empty selector selects all pods."""
        selector = self.spec.selector
        return selector is not None and self.status.disruptions_allowed <= 0 and selector.matches(pod.labels)

    def blocks_unready(self, pod: Pod) -> bool:
        """Whether the budget allows no eviction of this pod, which is not ready, now. The rules are those of evictions
        (kubernetes/kubernetes, registry/core/pod/storage/eviction.go)."""
        if pod.pending or self.spec.unhealthy_pod_eviction_policy == "AlwaysAllow":
            return False
        status = self.status
        return self.blocks(pod) and not status.current_healthy >= status.desired_healthy > 0
