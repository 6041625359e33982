"""Projections of Pods and Deployments, for tests of the code that reads and caches any kind."""

import msgspec

from altershield.api import labels
from kube_base.meta import ObjectMeta


class _Object(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    metadata: ObjectMeta

    @property
    def version(self) -> str:
        """The version label; empty if there is none."""
        return self.metadata.labels.get(labels.VERSION, "")


class _PodStatus(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    phase: str = "Pending"
    pod_ip: str = msgspec.field(default="", name="podIP")


class Pod(_Object, frozen=True):
    status: _PodStatus = _PodStatus()


class _DeploymentSpec(msgspec.Struct, frozen=True, omit_defaults=True):
    replicas: int = 1


class Deployment(_Object, frozen=True):
    spec: _DeploymentSpec = _DeploymentSpec()
