"""What is read of Kubernetes' own kinds. Decoding into these drops everything else, so caches stay small."""

import msgspec

from altershield.api import labels
from altershield.api.meta import ObjectMeta


class _View(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    metadata: ObjectMeta

    @property
    def version(self) -> str:
        """The version label; empty where there is none."""
        return self.metadata.labels.get(labels.VERSION, "")


class Namespace(_View, frozen=True):
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


class _Template(msgspec.Struct, frozen=True, omit_defaults=True):
    metadata: ObjectMeta = ObjectMeta()


class _DeploymentSpec(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    replicas: int = 1
    paused: bool = False
    strategy: _Strategy = _Strategy()
    template: _Template = _Template()


class Deployment(_View, frozen=True, rename="camel"):
    spec: _DeploymentSpec = _DeploymentSpec()


class _ReplicaSetSpec(msgspec.Struct, frozen=True, omit_defaults=True):
    replicas: int = 1


class _ReplicaSetStatus(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    ready_replicas: int = 0
    observed_generation: int = 0


class ReplicaSet(_View, frozen=True, rename="camel"):
    spec: _ReplicaSetSpec = _ReplicaSetSpec()
    status: _ReplicaSetStatus = _ReplicaSetStatus()


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
