"""The columns that `kubectl get` shows for built-in kinds, and the functions that compute their cells.

Names, order, priorities and texts are those of kube-apiserver's `pkg/printers/internalversion`.
"""

from collections.abc import Callable, Iterable
from typing import Any

from kube_sandbox.apiserver.attributes import Object
from kube_sandbox.apiserver.printers import pod_cells
from kube_sandbox.apiserver.printers.humans import age, duration
from kube_sandbox.apiserver.storage.registry import ResourceType
from kube_sandbox.times import unix

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
    return [_name(obj), *_KINDS.get(resource.kind, _OTHER)[1](obj)], []


def _name(obj: Object) -> str:
    name: str = obj["metadata"].get("name", "")
    annotations = obj["metadata"].get("annotations") or {}
    default = f"{obj.get('kind', '').lower()}.kubernetes.io/is-default-class"
    return f"{name} (default)" if annotations.get(default) == "true" else name


def _columns(text: str) -> list[Column]:
    """Parse columns such as `Name, Desired:integer, +Node`. A plus marks columns that only `-o wide` shows."""
    columns = []
    for part in text.split(","):
        name, _, type_ = part.strip().partition(":")
        columns.append((name.removeprefix("+"), type_ or "string", int(name.startswith("+"))))
    return columns


def _spec(obj: Object) -> Object:
    return obj.get("spec") or {}


def _status(obj: Object) -> Object:
    return obj.get("status") or {}


def _age(obj: Object) -> str:
    return age(obj["metadata"].get("creationTimestamp"))


def _containers(template: Object) -> list[str]:
    """The cells with the names and the images of the containers in a pod template."""
    containers = _spec(template).get("containers") or []
    return [",".join(c.get("name", "") for c in containers), ",".join(c.get("image", "") for c in containers)]


def _map_text(labels: Object | None) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items())) or "<none>"


def selector_text(selector: Object | None, empty: str = "<none>") -> str:
    """A LabelSelector as text: `a=b,c in (d,e)`."""
    if not selector:
        return empty
    terms = [(key, f"{key}={value}") for key, value in (selector.get("matchLabels") or {}).items()]
    for expression in selector.get("matchExpressions") or ():
        key, values = expression["key"], ",".join(sorted(expression.get("values") or ()))
        words = {
            "In": f"{key} in ({values})",
            "NotIn": f"{key} notin ({values})",
            "Exists": key,
            "DoesNotExist": f"!{key}",
        }
        terms.append((key, words[expression["operator"]]))
    return ",".join(text for _, text in sorted(terms)) or empty


def _first(texts: Iterable[str], most: int, separator: str = ",") -> str:
    """The first `most` texts, and the number of the others."""
    listed = list(texts)
    shown = separator.join(listed[:most])
    return f"{shown} + {len(listed) - most} more..." if len(listed) > most else shown


def _deployment(obj: Object) -> list[Any]:
    spec, status = _spec(obj), _status(obj)
    return [
        f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}",
        status.get("updatedReplicas", 0),
        status.get("availableReplicas", 0),
        _age(obj),
        *_containers(spec.get("template") or {}),
        selector_text(spec.get("selector"), empty=""),
    ]


def _replica_set(obj: Object) -> list[Any]:
    spec, status = _spec(obj), _status(obj)
    selector = spec.get("selector")
    text = _map_text(selector) if obj.get("kind") == "ReplicationController" else selector_text(selector)
    counts = [spec.get("replicas", 0), status.get("replicas", 0), status.get("readyReplicas", 0)]
    return [*counts, _age(obj), *_containers(spec.get("template") or {}), text]


def _stateful_set(obj: Object) -> list[Any]:
    spec = _spec(obj)
    ready = f"{_status(obj).get('readyReplicas', 0)}/{spec.get('replicas', 0)}"
    return [ready, _age(obj), *_containers(spec.get("template") or {})]


def _daemon_set(obj: Object) -> list[Any]:
    spec, status = _spec(obj), _status(obj)
    names = (
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
    )
    template = spec.get("template") or {}
    return [
        *(status.get(name, 0) for name in names),
        _map_text(_spec(template).get("nodeSelector")),
        _age(obj),
        *_containers(template),
        selector_text(spec.get("selector")),
    ]


def _job(obj: Object) -> list[Any]:
    spec, status = _spec(obj), _status(obj)
    succeeded, wanted, parallel = status.get("succeeded", 0), spec.get("completions"), spec.get("parallelism") or 0
    if wanted is not None:
        completions = f"{succeeded}/{wanted}"
    else:
        completions = f"{succeeded}/1 of {parallel}" if parallel > 1 else f"{succeeded}/1"
    template = spec.get("template") or {}
    return [
        _job_status(obj),
        completions,
        _job_duration(status),
        _age(obj),
        *_containers(template),
        selector_text(spec.get("selector")),
    ]


def _job_status(obj: Object) -> str:
    true = {c["type"] for c in _status(obj).get("conditions") or () if c.get("status") == "True"}
    for type_, word in (("Complete", "Complete"), ("Failed", "Failed")):
        if type_ in true:
            return word
    if obj["metadata"].get("deletionTimestamp"):
        return "Terminating"
    for type_ in ("Suspended", "FailureTarget", "SuccessCriteriaMet"):
        if type_ in true:
            return type_
    return "Running"


def _job_duration(status: Object) -> str:
    start, end = status.get("startTime"), status.get("completionTime")
    if not start:
        return ""
    return duration(unix(end) - unix(start)) if end else age(start)


def _cron_job(obj: Object) -> list[Any]:
    spec, status = _spec(obj), _status(obj)
    job = _spec(spec.get("jobTemplate") or {})
    last = status.get("lastScheduleTime")
    return [
        spec.get("schedule", ""),
        spec.get("timeZone") or "<none>",
        _boolean(spec.get("suspend")),
        len(status.get("active") or ()),
        age(last) if last else "<none>",
        _age(obj),
        *_containers(job.get("template") or {}),
        selector_text(job.get("selector")),
    ]


def _boolean(value: Any) -> str:
    return "<unset>" if value is None else "True" if value else "False"


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
    spec, status, metadata = _spec(obj), _status(obj), obj["metadata"]
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
        _age(obj),
        info.get("kubeletVersion", ""),
        addresses.get("InternalIP", "<none>"),
        addresses.get("ExternalIP", "<none>"),
        info.get("osImage") or "<unknown>",
        kernel,
        info.get("containerRuntimeVersion") or "<unknown>",
    ]


def _service(obj: Object) -> list[Any]:
    spec = _spec(obj)
    ports = []
    for port in spec.get("ports") or ():
        node_port = f":{port['nodePort']}" if port.get("nodePort") else ""
        ports.append(f"{port['port']}{node_port}/{port.get('protocol', 'TCP')}")
    internal = next(iter(spec.get("clusterIPs") or ()), "<none>")
    type_ = spec.get("type", "ClusterIP")
    return [
        type_,
        internal,
        _external(obj, type_),
        ",".join(ports) or "<none>",
        _age(obj),
        _map_text(spec.get("selector")),
    ]


def _external(obj: Object, type_: str) -> str:
    spec = _spec(obj)
    external: list[str] = spec.get("externalIPs") or []
    if type_ == "ExternalName":
        return str(spec.get("externalName", ""))
    if type_ == "LoadBalancer":
        return ",".join([*_addresses(obj), *external]) or "<pending>"
    return ",".join(external) or "<none>"


def _addresses(obj: Object) -> list[str]:
    ingress = (_status(obj).get("loadBalancer") or {}).get("ingress") or ()
    return sorted({found.get("ip") or found.get("hostname") or "" for found in ingress})


def _ingress(obj: Object) -> list[Any]:
    spec = _spec(obj)
    hosts = [rule["host"] for rule in spec.get("rules") or () if rule.get("host")]
    return [
        spec.get("ingressClassName") or "<none>",
        _first(hosts, 3) or "*",
        ",".join(_addresses(obj)),
        "80, 443" if spec.get("tls") else "80",
        _age(obj),
    ]


def _endpoints(obj: Object) -> list[Any]:
    listed: list[str] = []
    for subset in obj.get("subsets") or ():
        ips = [address["ip"] for address in subset.get("addresses") or ()]
        ports = [port["port"] for port in subset.get("ports") or ()]
        listed += [f"{ip}:{port}" for port in ports for ip in ips] if ports else ips
    return [_first(listed, 3) or "<none>", _age(obj)]


def _endpoint_slice(obj: Object) -> list[Any]:
    ports = [str(port.get("port") or port.get("name") or "*") for port in obj.get("ports") or ()]
    addresses = [address for endpoint in obj.get("endpoints") or () for address in endpoint.get("addresses") or ()]
    return [obj.get("addressType", ""), _first(ports, 3) or "<unset>", _first(addresses, 3) or "<unset>", _age(obj)]


def _binding(obj: Object) -> list[Any]:
    reference, subjects = obj.get("roleRef") or {}, obj.get("subjects") or []
    accounts = [f"{s.get('namespace', '')}/{s['name']}" for s in subjects if s["kind"] == "ServiceAccount"]
    return [
        f"{reference.get('kind')}/{reference.get('name')}",
        _age(obj),
        ", ".join(s["name"] for s in subjects if s["kind"] == "User"),
        ", ".join(s["name"] for s in subjects if s["kind"] == "Group"),
        ", ".join(accounts),
    ]


def _budget(obj: Object) -> list[Any]:
    spec = _spec(obj)
    bounds = [str(spec.get(name, "N/A")) for name in ("minAvailable", "maxUnavailable")]
    return [*bounds, _status(obj).get("disruptionsAllowed", 0), _age(obj)]


def _autoscaler(obj: Object) -> list[Any]:
    spec, status = _spec(obj), _status(obj)
    target = spec.get("scaleTargetRef") or {}
    minimum = spec.get("minReplicas")
    metrics = _first([_metric(metric) for metric in spec.get("metrics") or ()], 2, ", ") or "<none>"
    return [
        f"{target.get('kind')}/{target.get('name')}",
        metrics,
        "<unset>" if minimum is None else str(minimum),
        spec.get("maxReplicas", 0),
        status.get("currentReplicas", 0),
        _age(obj),
    ]


def _metric(metric: Object) -> str:
    source = next((value for value in metric.values() if isinstance(value, dict)), {})
    target = source.get("target") or {}
    wanted = (
        f"{target['averageUtilization']}%"
        if "averageUtilization" in target
        else target.get("averageValue") or target.get("value")
    )
    name = f"{source['name']}: " if "name" in source else ""
    return f"{name}<unknown>/{wanted}"


def _volume(obj: Object) -> list[Any]:
    spec, status = _spec(obj), _status(obj)
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
        _age(obj),
        spec.get("volumeMode") or "<unset>",
    ]


def _claim(obj: Object) -> list[Any]:
    spec, status = _spec(obj), _status(obj)
    bound = spec.get("volumeName", "")
    return [
        "Terminating" if obj["metadata"].get("deletionTimestamp") else status.get("phase", ""),
        bound,
        (status.get("capacity") or {}).get("storage", "0") if bound else "",
        _modes(status.get("accessModes")) if bound else "",
        spec.get("storageClassName", ""),
        spec.get("volumeAttributesClassName") or "<unset>",
        _age(obj),
        spec.get("volumeMode") or "<unset>",
    ]


def _modes(modes: list[str] | None) -> str:
    short = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}
    return ",".join(short[mode] for mode in short if mode in (modes or ()))


def _quota(obj: Object) -> list[Any]:
    status = _status(obj)
    used = status.get("used") or {}
    texts = {name: f"{name}: {used.get(name, '0')}/{hard}" for name, hard in sorted((status.get("hard") or {}).items())}
    limits = [text for name, text in texts.items() if name.startswith("limits.")]
    return [", ".join(text for text in texts.values() if text not in limits), ", ".join(limits), _age(obj)]


def _revision(obj: Object) -> list[Any]:
    owner = next((o for o in obj["metadata"].get("ownerReferences") or () if o.get("controller")), None)
    controller = "<none>"
    if owner:
        group = owner["apiVersion"].rpartition("/")[0]
        controller = f"{owner['kind'].lower()}{'.' if group else ''}{group}/{owner['name']}"
    return [controller, obj.get("revision", 0), _age(obj)]


def _flow_schema(obj: Object) -> list[Any]:
    spec = obj["spec"]
    dangling: Object = next(
        (each for each in _status(obj).get("conditions") or () if each.get("type") == "Dangling"), {}
    )
    return [
        spec["priorityLevelConfiguration"]["name"],
        spec["matchingPrecedence"],
        (spec.get("distinguisherMethod") or {}).get("type", "<none>"),
        _age(obj),
        dangling.get("status", "?"),
    ]


def _priority_level(obj: Object) -> list[Any]:
    limited = obj["spec"].get("limited") or {}
    queuing = (limited.get("limitResponse") or {}).get("queuing") or {}
    return [
        obj["spec"]["type"],
        limited.get("nominalConcurrencyShares", "<none>"),
        *(queuing.get(name, "<none>") for name in ("queues", "handSize", "queueLengthLimit")),
        _age(obj),
    ]


def _storage_class(obj: Object) -> list[Any]:
    texts = [obj.get("provisioner", ""), obj.get("reclaimPolicy", "Delete"), obj.get("volumeBindingMode", "Immediate")]
    return [*texts, bool(obj.get("allowVolumeExpansion")), _age(obj)]


def _ingress_class(obj: Object) -> list[Any]:
    spec = _spec(obj)
    parameters = spec.get("parameters")
    text = "<none>"
    if parameters:
        group = parameters.get("apiGroup")
        text = f"{parameters['kind']}{f'.{group}' if group else ''}/{parameters['name']}"
    return [spec.get("controller", ""), text, _age(obj)]


_WORKLOAD = "+Containers, +Images"
_BINDING = "Name, Role, Age, +Users, +Groups, +ServiceAccounts"

_OTHER: tuple[list[Column], Cells] = (
    _columns("Name, Created At:date"),
    lambda obj: [obj["metadata"].get("creationTimestamp")],
)

_TABLE: dict[str, tuple[str, Cells]] = {
    "ClusterRoleBinding": (_BINDING, _binding),
    "ConfigMap": ("Name, Data, Age", lambda o: [len(o.get("data") or ()) + len(o.get("binaryData") or ()), _age(o)]),
    "ControllerRevision": ("Name, Controller, Revision, Age", _revision),
    "CronJob": (
        f"Name, Schedule, Timezone, Suspend:boolean, Active:integer, Last Schedule, Age, {_WORKLOAD}, +Selector",
        _cron_job,
    ),
    "DaemonSet": (
        "Name, Desired:integer, Current:integer, Ready:integer, Up-to-date:integer, Available:integer, Node Selector,"
        f" Age, {_WORKLOAD}, +Selector",
        _daemon_set,
    ),
    "Deployment": (f"Name, Ready, Up-to-date, Available, Age, {_WORKLOAD}, +Selector", _deployment),
    "Endpoints": ("Name, Endpoints, Age", _endpoints),
    "EndpointSlice": ("Name, AddressType, Ports, Endpoints, Age", _endpoint_slice),
    "Event": (
        "Last Seen, Type, Reason, Object, +Subobject, +Source, Message, +First Seen, +Count, +Name",
        lambda obj: [],
    ),
    "FlowSchema": ("Name, PriorityLevel, MatchingPrecedence, DistinguisherMethod, Age, MissingPL", _flow_schema),
    "HorizontalPodAutoscaler": ("Name, Reference, Targets, MinPods, MaxPods, Replicas, Age", _autoscaler),
    "Ingress": ("Name, Class, Hosts, Address, Ports, Age", _ingress),
    "IngressClass": ("Name, Controller, Parameters, Age", _ingress_class),
    "Job": (f"Name, Status, Completions, Duration, Age, {_WORKLOAD}, +Selector", _job),
    "Lease": ("Name, Holder, Age", lambda obj: [_spec(obj).get("holderIdentity", ""), _age(obj)]),
    "MutatingWebhookConfiguration": ("Name, Webhooks:integer, Age", lambda o: [len(o.get("webhooks") or ()), _age(o)]),
    "Namespace": ("Name, Status, Age", lambda obj: [_status(obj).get("phase", ""), _age(obj)]),
    "NetworkPolicy": (
        "Name, Pod-Selector, Age",
        lambda obj: [selector_text(_spec(obj).get("podSelector")), _age(obj)],
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
    "PodDisruptionBudget": ("Name, Min Available, Max Unavailable, Allowed Disruptions:integer, Age", _budget),
    "PodTemplate": (
        "Name, Containers, Images, Pod Labels",
        lambda obj: [
            *_containers(obj.get("template") or {}),
            _map_text((obj.get("template") or {}).get("metadata", {}).get("labels")),
        ],
    ),
    "PriorityClass": (
        "Name, Value:integer, Global-Default:boolean, Age, PreemptionPolicy",
        lambda o: [o.get("value", 0), o.get("globalDefault", False), _age(o), o.get("preemptionPolicy", "")],
    ),
    "PriorityLevelConfiguration": (
        "Name, Type, NominalConcurrencyShares, Queues, HandSize, QueueLengthLimit, Age",
        _priority_level,
    ),
    "ReplicaSet": (
        f"Name, Desired:integer, Current:integer, Ready:integer, Age, {_WORKLOAD}, +Selector",
        _replica_set,
    ),
    "ReplicationController": (
        f"Name, Desired:integer, Current:integer, Ready:integer, Age, {_WORKLOAD}, +Selector",
        _replica_set,
    ),
    "ResourceQuota": ("Name, Request, Limit, Age", _quota),
    "RoleBinding": (_BINDING, _binding),
    "RuntimeClass": ("Name, Handler, Age", lambda obj: [obj.get("handler", ""), _age(obj)]),
    "Secret": ("Name, Type, Data, Age", lambda obj: [obj.get("type", ""), len(obj.get("data") or ()), _age(obj)]),
    "Service": ("Name, Type, Cluster-IP, External-IP, Port(s), Age, +Selector", _service),
    "ServiceAccount": ("Name, Age", lambda obj: [_age(obj)]),
    "StatefulSet": (f"Name, Ready, Age, {_WORKLOAD}", _stateful_set),
    "StorageClass": (
        "Name, Provisioner, ReclaimPolicy, VolumeBindingMode, AllowVolumeExpansion, Age",
        _storage_class,
    ),
    "ValidatingAdmissionPolicy": (
        "Name, Validations:integer, ParamKind, Age",
        lambda obj: [len(obj["spec"].get("validations") or ()), "<unset>", _age(obj)],
    ),
    "ValidatingAdmissionPolicyBinding": (
        "Name, PolicyName, ParamRef, Age",
        lambda obj: [obj["spec"].get("policyName", ""), "<unset>", _age(obj)],
    ),
    "ValidatingWebhookConfiguration": (
        "Name, Webhooks:integer, Age",
        lambda obj: [len(obj.get("webhooks") or ()), _age(obj)],
    ),
}

_KINDS: dict[str, tuple[list[Column], Cells]] = {kind: (_columns(text), fill) for kind, (text, fill) in _TABLE.items()}
