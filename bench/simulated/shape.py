"""The size of the simulated cluster."""

from dataclasses import dataclass

NODES, PODS, DEPLOYMENTS, LARGEST = 5_000, 150_000, 25_000, 10_000
"""The limits that Kubernetes supports: nodes and pods of a cluster. One Deployment has `LARGEST` of the pods."""

REVISIONS = 11
"""ReplicaSets per Deployment: the present one and ten old ones, the default revisionHistoryLimit."""

FAT = 200
"""Objects of each kind in a namespace that is not governed, each with the largest allowed annotations (256 KB)."""


@dataclass(frozen=True)
class Shape:
    """The Deployment 0 has `largest` pods. The other Deployments share the other pods evenly: the first ones have one
    pod more than the last ones."""

    pods: int = PODS
    deployments: int = DEPLOYMENTS
    largest: int = LARGEST
    revisions: int = REVISIONS
    fat: int = FAT
    namespaces: int = 100
    nodes: int = NODES
    budgets: int = 0
    """PodUnavailableBudgets, each for another Deployment."""

    @property
    def title(self) -> str:
        return (
            f"{self.pods:,} pods in {self.deployments:,} Deployments of {self.revisions} ReplicaSets, "
            f"{self.largest:,} in one of them, {self.nodes:,} nodes"
        )

    def replicas(self, deployment: int) -> int:
        """The number of pods of a Deployment."""
        return self.first_pod(deployment + 1) - self.first_pod(deployment)

    def first_pod(self, deployment: int) -> int:
        """The number of the first pod of a Deployment."""
        each, more = self._others
        return self.largest + (deployment - 1) * each + min(deployment - 1, more) if deployment else 0

    def deployment_of(self, pod: int) -> tuple[int, int]:
        """The Deployment of a pod, and the number of the pod in it."""
        each, more = self._others
        if pod < self.largest:
            return 0, pod
        longer = self.first_pod(more + 1)  # from here on, Deployments have `each` pods
        size, first, start = (each + 1, 1, self.largest) if pod < longer else (each, more + 1, longer)
        further, own = divmod(pod - start, size)
        return first + further, own

    @property
    def _others(self) -> tuple[int, int]:
        """The pods of each Deployment but the largest one, and how many of them have one pod more."""
        return divmod(self.pods - self.largest, max(1, self.deployments - 1))


def limits(scale: float = 1.0, *, fat: int = FAT, budgets: int = 0) -> Shape:
    """A cluster at the limits of Kubernetes, or at a part or a multiple of them."""
    pods, deployments, largest, nodes = (max(1, round(each * scale)) for each in (PODS, DEPLOYMENTS, LARGEST, NODES))
    return Shape(pods, deployments, largest, fat=fat, nodes=nodes, budgets=budgets, namespaces=min(100, deployments))
