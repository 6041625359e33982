"""What is simulated, and how long everything takes."""

from dataclasses import dataclass, replace
from typing import Self

ALL_CONTROLLERS = frozenset(
    {
        "clonesets",
        "daemonsets",
        "deployments",
        "endpointslices",
        "garbage",
        "namespaces",
        "nodelifecycle",
        "replicasets",
        "serviceaccounts",
        "statefulsets",
    }
)
"""What a kube-controller-manager would do (and OpenKruise's manager, once CloneSets are defined): for an API that has
none, as our own sandbox."""


@dataclass(frozen=True, slots=True)
class SimulationSettings:
    """All times in seconds, and small, so that nothing has to wait for a simulated machine."""

    controllers: frozenset[str] = ALL_CONTROLLERS
    """Of `ALL_CONTROLLERS`; empty where a real kube-controller-manager is at work. Nodes, scheduler and kubelets
    are always simulated."""

    define_clone_sets: bool = False
    """Define CloneSets at the start, and simulate them even beside real controllers."""

    nodes: int = 3
    node_cpu: str = "64"
    node_memory: str = "256Gi"
    node_pods: int = 5000
    node_heartbeat: float = 10.0
    """How often a node renews its Lease; a real node controller taints nodes that are silent for 40 s."""

    node_grace: float = 0.1
    """From the silence of a kubelet to the node's condition Unknown (a real node controller waits 50 s)."""
    eviction: float = 300.0
    """The longest that pods stay on a node that is not ready; their tolerations may say less."""
    pod_gc: float = 40.0
    """From the end of a node to that of its pods."""

    scheduling: float = 0.01
    """From a pod's creation to its binding."""
    image_pull: float = 0.02
    """The first time a node needs an image."""
    container_start: float = 0.02
    slow_start: float = 2.0
    """`container_start` of images whose name says `slow`."""
    ready: float = 0.02
    """From running to ready, for containers with a readiness probe (which may ask for more by
    `initialDelaySeconds`). Without a probe a running container is ready."""
    termination: float = 0.02
    """From the deletion of a pod to its end; never more than its grace period."""
    crash: float = 0.0
    """From start to exit of images whose name says `crash`; at 0 nobody sees them running."""
    crash_back_off: float = 0.5
    """The wait before the second restart; doubled from restart to restart (a real kubelet begins at 10 s)."""
    crash_back_off_max: float = 300.0
    pull_back_off: float = 0.5
    """The wait between attempts to pull an image that is not there, doubled likewise."""
    pull_back_off_max: float = 300.0

    def only_nodes(self) -> Self:
        """The same beside a real kube-controller-manager."""
        return replace(self, controllers=frozenset({"clonesets"} if self.define_clone_sets else ()))
