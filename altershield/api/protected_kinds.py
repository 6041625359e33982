"""The kinds whose objects can be protected from deletion: the levels of each kind, and the content that `Cascading`
protects.

The ValidatingAdmissionPolicies (`command/install/deletion_policies.py`), the commands `altershield protect`,
`unprotect` and `protected`, and the table of docs/protect.md are made from this table.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from altershield.api.deletion_protection import Level
from kube_base.resources import CRDS, DEPLOYMENTS, JOBS, NAMESPACES, REPLICA_SETS, Resource


@dataclass(frozen=True, slots=True)
class Content:
    """The objects that are deleted together with an object. `Cascading` refuses the deletion while there are any."""

    noun: str
    """The plural noun for these objects in a refusal, for example `replicas`."""
    empty: str
    """The instruction to the user that makes the deletion possible, for example `scale it to 0`."""
    field: tuple[str, ...] = ()
    """The path of their number in the object. Empty: the gatekeeper reads other objects."""
    default: tuple[str, ...] = ()
    """The path of their number if `field` is not set. Without both, the number is 0."""
    described: str = ""
    """The condition under which `Cascading` refuses, for the page; empty: `field` is above 0."""

    def count(self, obj: Mapping[str, Any]) -> int:
        """The number in an object."""
        for path in filter(None, (self.field, self.default)):
            found: Any = obj
            for name in path:
                found = found.get(name) if isinstance(found, Mapping) else None
            if isinstance(found, int):
                return found
        return 0

    def __str__(self) -> str:
        return self.described or f"`{'.'.join(self.field)}` > 0"


@dataclass(frozen=True, slots=True)
class ProtectedKind:
    """A kind whose objects can be protected. Each can have the level `Always`."""

    resource: Resource
    short_names: tuple[str, ...]
    """The short names in kubectl."""
    content: Content | None = None
    """None: nothing is deleted together with the object, so `Cascading` protects nothing."""

    @property
    def plural(self) -> str:
        """The full name of the resource, as kubectl understands it: `deployments.apps`."""
        return self.resource.full_name

    @property
    def levels(self) -> tuple[Level, ...]:
        """The levels that protect an object of this kind."""
        return (Level.ALWAYS,) if self.content is None else (Level.ALWAYS, Level.CASCADING)


KRUISE = "apps.kruise.io"
"""The API group of OpenKruise's workloads. A cluster may lack these kinds, and they have several versions."""

_REPLICAS = Content("replicas", "scale it to 0", ("spec", "replicas"))
# without spec.replicas, a UnitedDeployment has as many replicas as its subsets
_KRUISE_REPLICAS = Content("replicas", "scale it to 0", ("spec", "replicas"), default=("status", "replicas"))
_SCHEDULED = Content("replicas", "let it select no node", ("status", "desiredNumberScheduled"))
_ACTIVE = Content("active pods", "suspend it", ("status", "active"))
_MATCHED = Content("active pods", "let it select no pod", ("status", "matchedPods"))

NAMESPACE_PODS = Content(
    "active pods",
    "delete its pods and claims",
    described="any active pod; else any Bound PersistentVolumeClaim that is not terminating",
)
CUSTOM_RESOURCES = Content(
    "active CRs",
    "delete its objects",
    described="any custom resource without `deletionTimestamp`, in any namespace",
)

PROTECTED_KINDS = (
    ProtectedKind(DEPLOYMENTS, ("deploy",), _REPLICAS),
    ProtectedKind(REPLICA_SETS, ("rs",), _REPLICAS),
    ProtectedKind(Resource("apps", "v1", "statefulsets", "StatefulSet"), ("sts",), _REPLICAS),
    ProtectedKind(Resource(KRUISE, "v1alpha1", "clonesets", "CloneSet"), ("clone",), _KRUISE_REPLICAS),
    ProtectedKind(Resource(KRUISE, "v1beta1", "statefulsets", "StatefulSet"), ("asts",), _KRUISE_REPLICAS),
    ProtectedKind(Resource(KRUISE, "v1alpha1", "uniteddeployments", "UnitedDeployment"), ("ud",), _KRUISE_REPLICAS),
    ProtectedKind(Resource("apps", "v1", "daemonsets", "DaemonSet"), ("ds",), _SCHEDULED),
    ProtectedKind(Resource(KRUISE, "v1alpha1", "daemonsets", "DaemonSet"), ("ads",), _SCHEDULED),
    ProtectedKind(JOBS, (), _ACTIVE),
    ProtectedKind(Resource(KRUISE, "v1alpha1", "sidecarsets", "SidecarSet", namespaced=False), (), _MATCHED),
    ProtectedKind(NAMESPACES, ("ns",), NAMESPACE_PODS),
    ProtectedKind(CRDS, ("crd", "crds"), CUSTOM_RESOURCES),
    ProtectedKind(Resource("", "v1", "services", "Service"), ("svc",)),
    ProtectedKind(Resource("networking.k8s.io", "v1", "ingresses", "Ingress"), ("ing",)),
    ProtectedKind(Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim"), ("pvc",)),
)


def way_out(content: Content | None, unprotect: str) -> str:
    """The end of a refusal: how the user can delete the object. `unprotect`: the command that removes the label.
    `content`: None for the level `Always`."""
    return f"{f'{content.empty} first, or ' if content else ''}take the label off: {unprotect}"
