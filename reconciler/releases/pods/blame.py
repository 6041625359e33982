"""Decides whether the cluster refuses pods because of what a release changed. Pure functions.

The cluster is not asked whether it would accept the template of the version before: that would need the permission to
create pods. Instead, the parts of the two templates are compared on which the cluster's answer depends.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from altershield.workloads.adapter import Object
from altershield.workloads.pods import Fault


class Part(StrEnum):
    """A part of a pod template."""

    NODE = "nodeName"
    PLACEMENT = "placement"
    RESOURCES = "resources"
    VOLUMES = "volumes"
    PRIORITY = "priorityClassName"
    RUNTIME = "runtimeClassName"
    ACCOUNT = "serviceAccountName"
    SECURITY = "security"
    SPEC = "spec"
    """Everything but metadata."""


Parts = frozenset[Part]


@dataclass(slots=True)
class Cause:
    """What is known about the cause for which the cluster refuses pods of a release. Times are Unix seconds."""

    changed: Parts | None = None
    """The parts of the template that the release changed against the version to go back to; None until they are
    known."""
    changed_until: float = math.inf
    """When `changed` is to be found out again."""
    refusal: str = ""
    """Why pods cannot be created, from the Events of a workload whose status does not say so."""
    refusal_until: float = 0.0
    """When these Events are to be read again."""


_PLACEMENT = (
    "nodeSelector",
    "affinity",
    "tolerations",
    "topologySpreadConstraints",
    "schedulerName",
    "schedulingGates",
    "resourceClaims",
    "hostNetwork",
)
_SECURITY = ("securityContext", "hostNetwork", "hostPID", "hostIPC", "hostUsers")
_LOCAL = ("configMap", "secret", "downwardAPI", "projected", "emptyDir", "hostPath", "image", "gitRepo")
"""Types of volumes that need nothing of the cluster but the node. The kubelet's words about them blame the release."""

_BY_FAULT = {
    Fault.UNSCHEDULABLE: (
        *(Part.NODE, Part.PLACEMENT, Part.RESOURCES, Part.VOLUMES),
        *(Part.PRIORITY, Part.RUNTIME),
    ),
    Fault.NODE_NOT_READY: (Part.NODE,),
    Fault.VOLUME: (Part.NODE, Part.PLACEMENT, Part.VOLUMES),
    Fault.SANDBOX: (Part.NODE, Part.PLACEMENT, Part.RUNTIME, Part.SECURITY),
}

_BY_REFUSAL: tuple[tuple[str, tuple[Part, ...]], ...] = (
    ("failed calling webhook", ()),
    ("violates PodSecurity", (Part.SECURITY, Part.VOLUMES)),
    ("security context constraint", (Part.SECURITY, Part.VOLUMES, Part.ACCOUNT)),
    ("service account", (Part.ACCOUNT,)),
    ("PriorityClass", (Part.PRIORITY,)),
    ("RuntimeClass", (Part.RUNTIME,)),
    ("exceeded quota", (Part.RESOURCES, Part.VOLUMES)),
    ("failed quota", (Part.RESOURCES,)),
    (" usage per ", (Part.RESOURCES,)),
    ("limit to request ratio per ", (Part.RESOURCES,)),
    ("label selector conflicts", (Part.PLACEMENT,)),
    ("tolerations", (Part.PLACEMENT,)),
    ("denied the request", (Part.SPEC,)),
    ("denied request", (Part.SPEC,)),
    (" is invalid: ", (Part.SPEC,)),
)
"""Words in the API server's refusals of a pod, and the parts of its template that they are about. The first words that
are found count. Any other refusal, for example an internal error, is not the release's fault."""

_EXCEEDED = re.compile(r"requested: (.*?), used:")
_NUMBER_OF_PODS = ("pods", "count/pods")


def changed_parts(before: Object, after: Object) -> Parts:
    """The parts that differ between two pod templates, as the API server has them."""
    old, new = _spec(before), _spec(after)
    return frozenset(part for part in Part if _READ[part](old) != _READ[part](new))


def faults_of(changed: Parts) -> frozenset[Fault]:
    """The faults of the cluster that a release causes if it changes these parts."""
    return frozenset(fault for fault, parts in _BY_FAULT.items() if changed.intersection(parts))


def causes(changed: Parts, refusal: str) -> bool:
    """Whether a release that changed these parts is the cause of the API server's refusal to create its pods."""
    exceeded = _EXCEEDED.search(refusal)
    if exceeded is not None:
        names = {each.partition("=")[0].strip() for each in exceeded[1].split(",")}
        if names.issubset(_NUMBER_OF_PODS):
            return False  # the quota has no room for another pod of any version
    found = next((parts for words, parts in _BY_REFUSAL if words in refusal), ())
    return bool(changed.intersection(found))


def _spec(template: Object) -> Object:
    found = template.get("spec")
    return found if isinstance(found, dict) else {}


def _fields(spec: Object, names: Iterable[str]) -> Object:
    """The fields that are set: an empty field is like a missing one."""
    return {name: spec[name] for name in names if spec.get(name)}


def _containers(spec: Object) -> list[Object]:
    return [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]


def _host_ports(spec: Object) -> list[Any]:
    ports = [port for each in _containers(spec) for port in each.get("ports") or ()]
    return sorted(
        (str(port.get("hostIP") or ""), str(port.get("protocol") or "TCP"), int(port["hostPort"]))
        for port in ports
        if port.get("hostPort")
    )


def _placement(spec: Object) -> Any:
    return _fields(spec, _PLACEMENT), _host_ports(spec)


def _resources(spec: Object) -> Any:
    """Requests and limits, without the names of containers. A request that is not set is the limit."""
    found = []
    for each in (*_containers(spec), spec):
        own = each.get("resources") or {}
        limits = own.get("limits") or {}
        requests = {**limits, **(own.get("requests") or {})}
        if requests or own.get("claims"):
            found.append((requests, limits, own.get("claims") or []))
    return found, spec.get("overhead") or {}


def _volumes(spec: Object) -> Any:
    return [each for each in spec.get("volumes") or () if not any(type_ in each for type_ in _LOCAL)]


def _security(spec: Object) -> Any:
    own = [each.get("securityContext") or {} for each in _containers(spec)]  # a new one without it may be refused
    on_host = [each["hostPath"] for each in spec.get("volumes") or () if "hostPath" in each]
    return _fields(spec, _SECURITY), own, _host_ports(spec), on_host


def _field(name: str) -> Callable[[Object], Any]:
    return lambda spec: spec.get(name) or ""


_READ: Mapping[Part, Callable[[Object], Any]] = {
    Part.NODE: _field("nodeName"),
    Part.PLACEMENT: _placement,
    Part.RESOURCES: _resources,
    Part.VOLUMES: _volumes,
    Part.PRIORITY: _field("priorityClassName"),
    Part.RUNTIME: _field("runtimeClassName"),
    Part.ACCOUNT: _field("serviceAccountName"),
    Part.SECURITY: _security,
    Part.SPEC: lambda spec: spec,
}
