"""The size of the simulated cluster."""

from dataclasses import dataclass

REPLICAS = 5
REVISIONS = 11
"""ReplicaSets per Deployment: the present one and ten old ones, the default revisionHistoryLimit."""

FAT = 200
"""Objects of each kind in a namespace that is not governed, each with the largest allowed annotations (256 KB)."""


@dataclass(frozen=True)
class Shape:
    deployments: int
    replicas: int = REPLICAS
    revisions: int = REVISIONS
    fat: int = FAT
    namespaces: int = 100
    nodes: int = 100
    budgets: int = 0
    """PodUnavailableBudgets, each for another Deployment."""

    @property
    def pods(self) -> int:
        return self.deployments * self.replicas
