"""The kinds of workloads in the end-to-end tests, and their manifests."""

from typing import Any, NamedTuple

from tests.support import workloads
from tests.support.kubectl import Json


class Kind(NamedTuple):
    id: str
    kind: str
    spec: Json
    """The fields of the spec that make it the variant `id`."""
    api_version: str = "apps/v1"

    @property
    def resource(self) -> str:
        """The name of the kind in kubectl and in denials."""
        return self.kind.lower()

    def change_workload_name(self, workload: str, version: str) -> str:
        """The name of the ChangeWorkload of a version."""
        prefix = "" if self.kind == "Deployment" else f"{self.resource}."
        return f"{prefix}{workload}--x--{version}"

    def manifest(
        self, name: str, image: str, *, namespace: str = "", replicas: int = 3, pod: Json | None = None, **spec: Any
    ) -> Json:
        """A workload. The fields of `pod` are added to the spec of its pods."""
        spec = {"template": workloads.template(name, image, **(pod or {})), **self.spec, **spec}
        metadata = {"namespace": namespace} if namespace else {}
        return workloads.manifest(self.kind, name, image, replicas=replicas, metadata=metadata, **spec)


def container(image: str, **fields: Any) -> Json:
    return {"name": "main", "image": image, **fields}


DEPLOYMENT = Kind("deployment", "Deployment", {})
ORDERED = Kind("statefulset", "StatefulSet", {"serviceName": "app"})
PARALLEL = Kind("statefulset-parallel", "StatefulSet", {"serviceName": "app", "podManagementPolicy": "Parallel"})
DAEMON_SET = Kind("daemonset", "DaemonSet", {})
CLONE_SET = Kind("cloneset", "CloneSet", {}, "apps.kruise.io/v1alpha1")
CLONE_SET_IN_PLACE = Kind(
    "cloneset-in-place", "CloneSet", {"updateStrategy": {"type": "InPlaceIfPossible"}}, "apps.kruise.io/v1alpha1"
)

KINDS = (DEPLOYMENT, ORDERED, PARALLEL, DAEMON_SET, CLONE_SET, CLONE_SET_IN_PLACE)
