"""The columns that `kubectl get` shows for built-in kinds, and the functions that compute their cells.

Names, order, priorities and texts are those of kube-apiserver's `pkg/printers/internalversion`.
"""

from collections.abc import Callable
from typing import Any

from kube_sandbox.apiserver.attributes import Object
from kube_sandbox.apiserver.printers import network_cells, pod_cells, workload_cells
from kube_sandbox.apiserver.printers.cells import (
    age_of,
    containers_of,
    map_text,
    name_of,
    selector_text,
    spec_of,
    status_of,
)
from kube_sandbox.apiserver.printers.humans import age
from kube_sandbox.apiserver.storage.registry import ResourceType

Cells = Callable[[Object], list[Any]]
"""Returns the cells of an object after the name."""

Column = tuple[str, str, int]
"""Name, type and priority. kubectl shows columns with priority 1 only with `-o wide`."""


def columns_of(resource: ResourceType) -> list[Column]:
    return _KINDS.get(resource.kind, _OTHER)[0]


def cells(resource: ResourceType, obj: Object) -> tuple[list[Any], list[Object]]:
    """The cells of an object's row, and the row's conditions."""
    if resource.kind == "Pod":
        return pod_cells.cells(obj), pod_cells.conditions(obj)
    if resource.kind == "Event":
        return _event(obj), []
    return [name_of(obj), *_KINDS.get(resource.kind, _OTHER)[1](obj)], []


def _columns(text: str) -> list[Column]:
    """Parse columns such as `Name, Desired:integer, +Node`. A plus marks columns that only `-o wide` shows."""
    columns = []
    for part in text.split(","):
        name, _, type_ = part.strip().partition(":")
        columns.append((name.removeprefix("+"), type_ or "string", int(name.startswith("+"))))
    return columns


def _event(obj: Object) -> list[Any]:
    about, source, series = obj.get("involvedObject") or {}, obj.get("source") or {}, obj.get("series")
    first = age(obj.get("firstTimestamp") or obj.get("eventTime"))
    last = age(obj["lastTimestamp"]) if obj.get("lastTimestamp") else first
    count = obj.get("count") or 1
    if series:
        last, count = age(series.get("lastObservedTime")), series.get("count", 0)
    target = "/".join(part for part in (about.get("kind", "").lower(), about.get("name")) if part)
    component = source.get("component") or obj.get("reportingComponent") or ""
    instance = source.get("host") or obj.get("reportingInstance") or ""
    return [
        last,
        obj.get("type", ""),
        obj.get("reason", ""),
        target,
        about.get("fieldPath", ""),
        f"{component}, {instance}" if instance else component,
        (obj.get("message") or "").strip(),
        first,
        count,
        obj["metadata"].get("name", ""),
    ]


def _node(obj: Object) -> list[Any]:
    spec, status, metadata = spec_of(obj), status_of(obj), obj["metadata"]
    ready = next((c["status"] for c in status.get("conditions") or () if c["type"] == "Ready"), None)
    words = ["Unknown" if ready is None else "Ready" if ready == "True" else "NotReady"]
    if spec.get("unschedulable"):
        words.append("SchedulingDisabled")
    prefix = "node-role.kubernetes.io/"
    roles = {key.removeprefix(prefix) for key in metadata.get("labels") or {} if key.startswith(prefix)}
    addresses = {a["type"]: a["address"] for a in reversed(status.get("addresses") or ())}
    info = status.get("nodeInfo") or {}
    kernel = info.get("kernelVersion") or "<unknown>"
    if info.get("architecture"):
        kernel += f" ({info['architecture']})"
    return [
        ",".join(words),
        ",".join(sorted(role for role in roles if role)) or "<none>",
        age_of(obj),
        info.get("kubeletVersion", ""),
        addresses.get("InternalIP", "<none>"),
        addresses.get("ExternalIP", "<none>"),
        info.get("osImage") or "<unknown>",
        kernel,
        info.get("containerRuntimeVersion") or "<unknown>",
    ]


def _binding(obj: Object) -> list[Any]:
    reference, subjects = obj.get("roleRef") or {}, obj.get("subjects") or []
    accounts = [f"{s.get('namespace', '')}/{s['name']}" for s in subjects if s["kind"] == "ServiceAccount"]
    return [
        f"{reference.get('kind')}/{reference.get('name')}",
        age_of(obj),
        ", ".join(s["name"] for s in subjects if s["kind"] == "User"),
        ", ".join(s["name"] for s in subjects if s["kind"] == "Group"),
        ", ".join(accounts),
    ]


def _volume(obj: Object) -> list[Any]:
    spec, status = spec_of(obj), status_of(obj)
    claim = spec.get("claimRef")
    return [
        (spec.get("capacity") or {}).get("storage", "0"),
        _modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy", ""),
        "Terminating" if obj["metadata"].get("deletionTimestamp") else status.get("phase", ""),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        spec.get("storageClassName", ""),
        spec.get("volumeAttributesClassName") or "<unset>",
        status.get("reason", ""),
        age_of(obj),
        spec.get("volumeMode") or "<unset>",
    ]


def _claim(obj: Object) -> list[Any]:
    spec, status = spec_of(obj), status_of(obj)
    bound = spec.get("volumeName", "")
    return [
        "Terminating" if obj["metadata"].get("deletionTimestamp") else status.get("phase", ""),
        bound,
        (status.get("capacity") or {}).get("storage", "0") if bound else "",
        _modes(status.get("accessModes")) if bound else "",
        spec.get("storageClassName", ""),
        spec.get("volumeAttributesClassName") or "<unset>",
        age_of(obj),
        spec.get("volumeMode") or "<unset>",
    ]


def _modes(modes: list[str] | None) -> str:
    short = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}
    return ",".join(short[mode] for mode in short if mode in (modes or ()))


def _quota(obj: Object) -> list[Any]:
    status = status_of(obj)
    used = status.get("used") or {}
    texts = {name: f"{name}: {used.get(name, '0')}/{hard}" for name, hard in sorted((status.get("hard") or {}).items())}
    limits = [text for name, text in texts.items() if name.startswith("limits.")]
    return [", ".join(text for text in texts.values() if text not in limits), ", ".join(limits), age_of(obj)]


def _flow_schema(obj: Object) -> list[Any]:
    spec = obj["spec"]
    dangling: Object = next(
        (each for each in status_of(obj).get("conditions") or () if each.get("type") == "Dangling"), {}
    )
    return [
        spec["priorityLevelConfiguration"]["name"],
        spec["matchingPrecedence"],
        (spec.get("distinguisherMethod") or {}).get("type", "<none>"),
        age_of(obj),
        dangling.get("status", "?"),
    ]


def _priority_level(obj: Object) -> list[Any]:
    limited = obj["spec"].get("limited") or {}
    queuing = (limited.get("limitResponse") or {}).get("queuing") or {}
    return [
        obj["spec"]["type"],
        limited.get("nominalConcurrencyShares", "<none>"),
        *(queuing.get(name, "<none>") for name in ("queues", "handSize", "queueLengthLimit")),
        age_of(obj),
    ]


def _storage_class(obj: Object) -> list[Any]:
    texts = [obj.get("provisioner", ""), obj.get("reclaimPolicy", "Delete"), obj.get("volumeBindingMode", "Immediate")]
    return [*texts, bool(obj.get("allowVolumeExpansion")), age_of(obj)]


_WORKLOAD = "+Containers, +Images"
_BINDING = "Name, Role, Age, +Users, +Groups, +ServiceAccounts"

_OTHER: tuple[list[Column], Cells] = (
    _columns("Name, Created At:date"),
    lambda obj: [obj["metadata"].get("creationTimestamp")],
)

_TABLE: dict[str, tuple[str, Cells]] = {
    "ClusterRoleBinding": (_BINDING, _binding),
    "ConfigMap": ("Name, Data, Age", lambda o: [len(o.get("data") or ()) + len(o.get("binaryData") or ()), age_of(o)]),
    "ControllerRevision": ("Name, Controller, Revision, Age", workload_cells.revision),
    "CronJob": (
        f"Name, Schedule, Timezone, Suspend:boolean, Active:integer, Last Schedule, Age, {_WORKLOAD}, +Selector",
        workload_cells.cron_job,
    ),
    "DaemonSet": (
        "Name, Desired:integer, Current:integer, Ready:integer, Up-to-date:integer, Available:integer, Node Selector,"
        f" Age, {_WORKLOAD}, +Selector",
        workload_cells.daemon_set,
    ),
    "Deployment": (f"Name, Ready, Up-to-date, Available, Age, {_WORKLOAD}, +Selector", workload_cells.deployment),
    "Endpoints": ("Name, Endpoints, Age", network_cells.endpoints),
    "EndpointSlice": ("Name, AddressType, Ports, Endpoints, Age", network_cells.endpoint_slice),
    "Event": (
        "Last Seen, Type, Reason, Object, +Subobject, +Source, Message, +First Seen, +Count, +Name",
        lambda obj: [],
    ),
    "FlowSchema": ("Name, PriorityLevel, MatchingPrecedence, DistinguisherMethod, Age, MissingPL", _flow_schema),
    "HorizontalPodAutoscaler": ("Name, Reference, Targets, MinPods, MaxPods, Replicas, Age", workload_cells.autoscaler),
    "Ingress": ("Name, Class, Hosts, Address, Ports, Age", network_cells.ingress),
    "IngressClass": ("Name, Controller, Parameters, Age", network_cells.ingress_class),
    "Job": (f"Name, Status, Completions, Duration, Age, {_WORKLOAD}, +Selector", workload_cells.job),
    "Lease": ("Name, Holder, Age", lambda obj: [spec_of(obj).get("holderIdentity", ""), age_of(obj)]),
    "MutatingWebhookConfiguration": (
        "Name, Webhooks:integer, Age",
        lambda o: [len(o.get("webhooks") or ()), age_of(o)],
    ),
    "Namespace": ("Name, Status, Age", lambda obj: [status_of(obj).get("phase", ""), age_of(obj)]),
    "NetworkPolicy": (
        "Name, Pod-Selector, Age",
        lambda obj: [selector_text(spec_of(obj).get("podSelector")), age_of(obj)],
    ),
    "Node": (
        "Name, Status, Roles, Age, Version, +Internal-IP, +External-IP, +OS-Image, +Kernel-Version, +Container-Runtime",
        _node,
    ),
    "PersistentVolume": (
        "Name, Capacity, Access Modes, Reclaim Policy, Status, Claim, StorageClass, VolumeAttributesClass, Reason, Age,"
        " +VolumeMode",
        _volume,
    ),
    "PersistentVolumeClaim": (
        "Name, Status, Volume, Capacity, Access Modes, StorageClass, VolumeAttributesClass, Age, +VolumeMode",
        _claim,
    ),
    "Pod": ("Name, Ready, Status, Restarts, Age, +IP, +Node, +Nominated Node, +Readiness Gates", lambda obj: []),
    "PodDisruptionBudget": (
        "Name, Min Available, Max Unavailable, Allowed Disruptions:integer, Age",
        workload_cells.budget,
    ),
    "PodTemplate": (
        "Name, Containers, Images, Pod Labels",
        lambda obj: [
            *containers_of(obj.get("template") or {}),
            map_text((obj.get("template") or {}).get("metadata", {}).get("labels")),
        ],
    ),
    "PriorityClass": (
        "Name, Value:integer, Global-Default:boolean, Age, PreemptionPolicy",
        lambda o: [o.get("value", 0), o.get("globalDefault", False), age_of(o), o.get("preemptionPolicy", "")],
    ),
    "PriorityLevelConfiguration": (
        "Name, Type, NominalConcurrencyShares, Queues, HandSize, QueueLengthLimit, Age",
        _priority_level,
    ),
    "ReplicaSet": (
        f"Name, Desired:integer, Current:integer, Ready:integer, Age, {_WORKLOAD}, +Selector",
        workload_cells.replica_set,
    ),
    "ReplicationController": (
        f"Name, Desired:integer, Current:integer, Ready:integer, Age, {_WORKLOAD}, +Selector",
        workload_cells.replica_set,
    ),
    "ResourceQuota": ("Name, Request, Limit, Age", _quota),
    "RoleBinding": (_BINDING, _binding),
    "RuntimeClass": ("Name, Handler, Age", lambda obj: [obj.get("handler", ""), age_of(obj)]),
    "Secret": ("Name, Type, Data, Age", lambda obj: [obj.get("type", ""), len(obj.get("data") or ()), age_of(obj)]),
    "Service": ("Name, Type, Cluster-IP, External-IP, Port(s), Age, +Selector", network_cells.service),
    "ServiceAccount": ("Name, Age", lambda obj: [age_of(obj)]),
    "StatefulSet": (f"Name, Ready, Age, {_WORKLOAD}", workload_cells.stateful_set),
    "StorageClass": (
        "Name, Provisioner, ReclaimPolicy, VolumeBindingMode, AllowVolumeExpansion, Age",
        _storage_class,
    ),
    "ValidatingAdmissionPolicy": (
        "Name, Validations:integer, ParamKind, Age",
        lambda obj: [len(obj["spec"].get("validations") or ()), "<unset>", age_of(obj)],
    ),
    "ValidatingAdmissionPolicyBinding": (
        "Name, PolicyName, ParamRef, Age",
        lambda obj: [obj["spec"].get("policyName", ""), "<unset>", age_of(obj)],
    ),
    "ValidatingWebhookConfiguration": (
        "Name, Webhooks:integer, Age",
        lambda obj: [len(obj.get("webhooks") or ()), age_of(obj)],
    ),
}

_KINDS: dict[str, tuple[list[Column], Cells]] = {kind: (_columns(text), fill) for kind, (text, fill) in _TABLE.items()}
