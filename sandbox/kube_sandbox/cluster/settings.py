"""The settings of the simulation: which controllers run, and how long each step takes."""

from dataclasses import dataclass, replace
from typing import Self

ALL_CONTROLLERS = frozenset(
    {
        "clonesets",
        "daemonsets",
        "deployments",
        "disruptions",
        "endpointslices",
        "garbage",
        "jobs",
        "namespaces",
        "nodelifecycle",
        "replicasets",
        "serviceaccounts",
        "statefulsets",
    }
)
"""The controllers of kube-controller-manager and of OpenKruise's manager that can be simulated. CloneSets are simulated
while their CRD exists."""


@dataclass(frozen=True, slots=True)
class SimulationSettings:
    """All times are in seconds. The defaults are short, so that tests do not wait."""

    controllers: frozenset[str] = ALL_CONTROLLERS
    """A subset of `ALL_CONTROLLERS`; empty if a real kube-controller-manager runs. Nodes, scheduler and kubelets are
    always simulated."""

    one_user: bool = False
    """Whether all controllers of kube-controller-manager are one user, as without its flag
    `--use-service-account-credentials`. Else each has a ServiceAccount of its own, as with kubeadm."""

    define_clone_sets: bool = False
    """Create the CloneSet CRD at the start. CloneSets are then simulated even if real controllers run."""

    nodes: int = 3
    node_cpu: str = "64"
    node_memory: str = "256Gi"
    node_pods: int = 5000
    node_heartbeat: float = 10.0
    """The interval at which a node renews its Lease. A real node controller taints a node after 40 s without
    renewal."""

    node_grace: float = 0.1
    """From the failure of a kubelet to the node condition Unknown. A real node controller waits 50 s."""
    eviction: float = 300.0
    """The maximum time that pods stay on a node that is not ready. Their tolerations may set a shorter one."""
    pod_gc: float = 40.0
    """From the deletion of a node to the deletion of its pods."""

    scheduling: float = 0.01
    """From the creation of a pod to its binding."""
    image_pull: float = 0.02
    """The duration of the first pull of an image on a node."""
    container_start: float = 0.02
    slow_start: float = 2.0
    """`container_start` of images with `slow` in their name."""
    ready: float = 0.02
    """From running to ready, for containers with a readiness probe; a longer `initialDelaySeconds` takes precedence.
    Without a probe, a running container is ready."""
    termination: float = 0.02
    """From the deletion of a pod to its removal; at most its grace period."""
    resize: float = 0.02
    """From the start of a resize of a running pod to its end."""
    crash: float = 0.0
    """From start to exit of images with `crash` in their name. At 0, their status is never Running."""
    crash_back_off: float = 0.5
    """The delay before the second restart; it doubles with each restart. A real kubelet starts with 10 s."""
    crash_back_off_max: float = 300.0
    job_back_off: float = 0.5
    """The delay before a Job replaces its first failed pod; it doubles. A real Job controller starts with 10 s."""
    pull_back_off: float = 0.5
    """The delay between attempts to pull a missing image; it doubles as well."""
    pull_back_off_max: float = 300.0

    def only_nodes(self) -> Self:
        """The same settings, for a cluster with a real kube-controller-manager."""
        return replace(self, controllers=frozenset({"clonesets"} if self.define_clone_sets else ()))
