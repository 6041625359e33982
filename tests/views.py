"""Views of Kubernetes' own kinds for tests of what reads and caches any kind."""

import msgspec

from altershield.api import labels
from altershield.api.managed_fields import ManagedMeta
from altershield.api.meta import ObjectMeta

_REVISION = "deployment.kubernetes.io/revision"  # written by the deployment controller


class _View(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    metadata: ObjectMeta

    @property
    def version(self) -> str:
        """The version label; empty where there is none."""
        return self.metadata.labels.get(labels.VERSION, "")


class _Revised(_View, frozen=True):
    @property
    def revision(self) -> int:
        """Of a ReplicaSet: of which release of its Deployment it was last the new one, counted from 1; of a
        Deployment: that of its new ReplicaSet. 0 where the deployment controller has yet to write it."""
        value = self.metadata.annotations.get(_REVISION, "")
        return int(value) if value.isascii() and value.isdigit() and len(value) <= 18 else 0


class Namespace(_View, frozen=True):
    metadata: ManagedMeta

    @property
    def governed(self) -> bool:
        return self.metadata.labels.get(labels.GOVERNED) == labels.GOVERNED_VALUE


class _Condition(msgspec.Struct, frozen=True, omit_defaults=True):
    type: str
    status: str
    reason: str = ""
    message: str = ""


class _Strategy(msgspec.Struct, frozen=True, omit_defaults=True):
    type: str = "RollingUpdate"


class _Expression(msgspec.Struct, frozen=True, omit_defaults=True):
    key: str


class _TemplateMetadata(msgspec.Struct, frozen=True, omit_defaults=True):
    labels: dict[str, str] = {}


class _Template(msgspec.Struct, frozen=True, omit_defaults=True):
    metadata: _TemplateMetadata = _TemplateMetadata()

    @property
    def version(self) -> str:
        """The version label of its pods; empty where there is none."""
        return self.metadata.labels.get(labels.VERSION, "")


class _Selector(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    match_labels: dict[str, str] = {}
    match_expressions: tuple[_Expression, ...] = ()

    @property
    def keys(self) -> set[str]:
        """Of the labels that it looks at."""
        return {*self.match_labels, *(expression.key for expression in self.match_expressions)}


class _DeploymentSpec(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    replicas: int = 1
    paused: bool = False
    strategy: _Strategy = _Strategy()
    selector: _Selector = _Selector()
    template: _Template = _Template()


class _DeploymentStatus(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    observed_generation: int = 0


class Deployment(_Revised, frozen=True, rename="camel"):
    spec: _DeploymentSpec = _DeploymentSpec()
    status: _DeploymentStatus = _DeploymentStatus()


class ManagedDeployment(Deployment, frozen=True, rename="camel"):
    """With what is known of who wrote it when."""

    metadata: ManagedMeta


class _ReplicaSetSpec(msgspec.Struct, frozen=True, omit_defaults=True):
    replicas: int = 1
    template: _Template = _Template()


class _ReplicaSetCondition(_Condition, frozen=True, omit_defaults=True, rename="camel"):
    last_transition_time: str | None = None


class _ReplicaSetStatus(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    replicas: int = 0
    ready_replicas: int = 0
    observed_generation: int = 0
    conditions: tuple[_ReplicaSetCondition, ...] = ()


class ReplicaSet(_Revised, frozen=True, rename="camel"):
    spec: _ReplicaSetSpec = _ReplicaSetSpec()
    status: _ReplicaSetStatus = _ReplicaSetStatus()

    @property
    def barren(self) -> _ReplicaSetCondition | None:
        """The condition that says since when and why its pods cannot be created (a quota, a policy, a missing
        service account); None where one could. A full quota that lets pods in one after the other is no failure."""
        if self.status.replicas:
            return None
        for condition in self.status.conditions:
            known = (condition.type, condition.status, condition.reason) == ("ReplicaFailure", "True", "FailedCreate")
            if known and condition.last_transition_time:
                return condition
        return None


class _Waiting(msgspec.Struct, frozen=True, omit_defaults=True):
    reason: str = ""
    message: str = ""


class _ContainerState(msgspec.Struct, frozen=True, omit_defaults=True):
    waiting: _Waiting | None = None


class _ContainerStatus(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    name: str
    state: _ContainerState = _ContainerState()


class _PodStatus(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    phase: str = "Pending"
    pod_ip: str = msgspec.field(default="", name="podIP")
    conditions: tuple[_Condition, ...] = ()
    container_statuses: tuple[_ContainerStatus, ...] = ()
    init_container_statuses: tuple[_ContainerStatus, ...] = ()


class Pod(_View, frozen=True, rename="camel"):
    status: _PodStatus = _PodStatus()
