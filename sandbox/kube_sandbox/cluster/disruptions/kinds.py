"""The fields of PodDisruptionBudgets that the simulation reads."""

import msgspec

from kube_sandbox.cluster.kinds import LabelSelector, Meta, Object


class BudgetSpec(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    selector: LabelSelector | None = None
    min_available: int | str | None = None
    max_unavailable: int | str | None = None


class BudgetStatus(msgspec.Struct, frozen=True, rename="camel"):
    """`disrupted_pods` has the time of each admitted eviction by the name of the pod."""

    observed_generation: int = 0
    disrupted_pods: dict[str, str] = {}
    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0
    conditions: tuple[Object, ...] = ()


class Budget(msgspec.Struct, frozen=True, omit_defaults=True):
    metadata: Meta
    spec: BudgetSpec = BudgetSpec()
    status: BudgetStatus = BudgetStatus()
