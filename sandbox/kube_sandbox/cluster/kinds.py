"""The fields of built-in kinds that the simulation reads. Templates and container statuses stay plain dicts, because
the simulation copies them unchanged."""

from typing import Any

import msgspec

from kube_base.meta import ObjectMeta

Object = dict[str, Any]

NO_LIMIT = 2**31 - 1
"""The greatest number of a field with 32 bits. As a deadline or a history limit, it means that there is no limit."""


class Meta(ObjectMeta, frozen=True, omit_defaults=True, rename="camel"):
    finalizers: tuple[str, ...] = ()
    deletion_grace_period_seconds: int | None = None


class Bare(msgspec.Struct, frozen=True, omit_defaults=True):
    """The metadata of an object of any kind."""

    metadata: Meta


class Requirement(msgspec.Struct, frozen=True, omit_defaults=True):
    key: str
    operator: str
    values: tuple[str, ...] = ()


class LabelSelector(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    match_labels: dict[str, str] = {}
    match_expressions: tuple[Requirement, ...] = ()


class Condition(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A condition of apps/v1 or core/v1. Unlike metav1.Condition, it may have `lastUpdateTime` and may lack a
    reason."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_update_time: str | None = None
    last_transition_time: str | None = None


class RollingUpdate(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    max_surge: int | str = "25%"
    max_unavailable: int | str = "25%"


class Strategy(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    type: str = "RollingUpdate"
    rolling_update: RollingUpdate | None = None


class DeploymentSpec(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    selector: LabelSelector
    template: Object
    replicas: int = 1
    strategy: Strategy = Strategy()
    min_ready_seconds: int = 0
    paused: bool = False
    revision_history_limit: int | None = None
    progress_deadline_seconds: int | None = None


class DeploymentStatus(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    observed_generation: int = 0
    replicas: int = 0
    updated_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    unavailable_replicas: int = 0
    terminating_replicas: int | None = None
    collision_count: int | None = None
    conditions: tuple[Condition, ...] = ()


class Deployment(msgspec.Struct, frozen=True, omit_defaults=True):
    metadata: Meta
    spec: DeploymentSpec
    status: DeploymentStatus = DeploymentStatus()


class ReplicaSetSpec(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    selector: LabelSelector
    template: Object = {}
    replicas: int = 1
    min_ready_seconds: int = 0


class ReplicaSetStatus(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    observed_generation: int = 0
    replicas: int = 0
    fully_labeled_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    terminating_replicas: int | None = None
    conditions: tuple[Condition, ...] = ()


class ReplicaSet(msgspec.Struct, frozen=True, omit_defaults=True):
    metadata: Meta
    spec: ReplicaSetSpec
    status: ReplicaSetStatus = ReplicaSetStatus()


class Probe(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    initial_delay_seconds: int = 0
    period_seconds: int = 10
    failure_threshold: int = 3


class ContainerPort(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    container_port: int
    name: str = ""


class Resources(msgspec.Struct, frozen=True, omit_defaults=True):
    requests: dict[str, str | int | float] = {}
    limits: dict[str, str | int | float] = {}


class ResizePolicy(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    resource_name: str
    restart_policy: str = "NotRequired"


class Container(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    name: str
    image: str = ""
    image_pull_policy: str = "IfNotPresent"
    termination_message_policy: str = "File"
    readiness_probe: Probe | None = None
    startup_probe: Probe | None = None
    resources: Resources = Resources()
    resize_policy: tuple[ResizePolicy, ...] = ()
    ports: tuple[ContainerPort, ...] = ()


class Toleration(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class ReadinessGate(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    condition_type: str


class SchedulingGate(msgspec.Struct, frozen=True, omit_defaults=True):
    name: str


class NodeSelectorTerm(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    match_expressions: tuple[Requirement, ...] = ()
    match_fields: tuple[Requirement, ...] = ()


class NodeSelector(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class NodeAffinity(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    required: NodeSelector | None = msgspec.field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")


class Affinity(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    node_affinity: NodeAffinity | None = None


class PodSpec(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    node_name: str = ""
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    restart_policy: str = "Always"
    scheduler_name: str = "default-scheduler"
    tolerations: tuple[Toleration, ...] = ()
    readiness_gates: tuple[ReadinessGate, ...] = ()
    scheduling_gates: tuple[SchedulingGate, ...] = ()
    volumes: tuple[Object, ...] = ()


class PodStatus(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    phase: str = "Pending"
    start_time: str | None = None
    pod_ip: str = msgspec.field(default="", name="podIP")
    conditions: tuple[Condition, ...] = ()
    container_statuses: tuple[Object, ...] = ()
    init_container_statuses: tuple[Object, ...] = ()


class Pod(msgspec.Struct, frozen=True, omit_defaults=True):
    metadata: Meta
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def ended(self) -> bool:
        return self.status.phase in ("Succeeded", "Failed")

    @property
    def active(self) -> bool:
        """Whether the pod counts as a replica: it neither ended nor is terminating."""
        return not self.ended and self.metadata.deletion_timestamp is None

    @property
    def ready_since(self) -> str | None:
        """When the pod became ready (RFC 3339); None if it is not ready."""
        ready = find(self.status.conditions, "Ready")
        return ready.last_transition_time or "" if ready and ready.status == "True" else None


class Taint(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    key: str
    effect: str
    value: str = ""
    time_added: str | None = None


class NodeSpec(msgspec.Struct, frozen=True, omit_defaults=True):
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class NodeStatus(msgspec.Struct, frozen=True, omit_defaults=True):
    allocatable: dict[str, str | int] = {}
    conditions: tuple[Condition, ...] = ()


class Node(msgspec.Struct, frozen=True, omit_defaults=True):
    metadata: Meta
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


def find(conditions: tuple[Condition, ...], type_: str) -> Condition | None:
    return next((condition for condition in conditions if condition.type == type_), None)


def without(conditions: tuple[Condition, ...], type_: str) -> tuple[Condition, ...]:
    return tuple(condition for condition in conditions if condition.type != type_)
