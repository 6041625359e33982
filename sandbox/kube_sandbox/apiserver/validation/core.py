"""Validation of the core group's smaller kinds, Leases and Events (k8s.io/kubernetes, pkg/apis/*/validation)."""

import base64
from collections.abc import Mapping, Sequence

from kube_sandbox.apiserver.attributes import Object
from kube_sandbox.apiserver.validation import causes, texts
from kube_sandbox.apiserver.validation.causes import Causes
from kube_sandbox.apiserver.validation.meta import label_key, labels
from kube_sandbox.apiserver.validation.pod import ip_address
from kube_sandbox.apiserver.validation.probe import port

_MAX_DATA = 1024 * 1024
_IMMUTABLE = "field is immutable when `immutable` is set"
_SERVICE_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_FAMILY_POLICIES = ("PreferDualStack", "RequireDualStack", "SingleStack")
_TRAFFIC = ("Cluster", "Local")
_MAX_AFFINITY_SECONDS = 86400
_REQUIRED_KEYS = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}
_ACCOUNT_NAME = "kubernetes.io/service-account.name"


def config_map(obj: Object, old: Object | None) -> Causes:
    yield from _immutable_data(obj, old, ("data", "binaryData"))
    data, binary = obj.get("data") or {}, obj.get("binaryData") or {}
    for key in sorted(data):
        yield from causes.invalid_each(f"data[{key}]", key, texts.config_key(key))
        if key in binary:
            yield causes.invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
    for key in sorted(binary):
        yield from causes.invalid_each(f"binaryData[{key}]", key, texts.config_key(key))
    if sum(len(value.encode()) for value in data.values()) + _decoded_size(binary) > _MAX_DATA:
        yield causes.too_long("", _MAX_DATA)


def secret(obj: Object, old: Object | None) -> Causes:
    if old is not None:
        yield from causes.immutable("type", obj["type"], old["type"])
    yield from _immutable_data(obj, old, ("data",))
    data = obj.get("data") or {}
    for key in sorted(data):
        yield from causes.invalid_each(f"data[{key}]", key, texts.config_key(key))
    if _decoded_size(data) > _MAX_DATA:
        yield causes.too_long("data", _MAX_DATA)
    if obj["type"] == "kubernetes.io/service-account-token":
        if not (obj["metadata"].get("annotations") or {}).get(_ACCOUNT_NAME):
            yield causes.required(f"metadata.annotations[{_ACCOUNT_NAME}]")
    elif obj["type"] == "kubernetes.io/basic-auth" and not {"username", "password"} & set(data):
        yield causes.required("data[username]")
        yield causes.required("data[password]")
    for key in _REQUIRED_KEYS.get(obj["type"], ()):
        if key not in data or (key == "ssh-privatekey" and not data[key]):
            yield causes.required(f"data[{key}]")


def _decoded_size(data: Mapping[str, str]) -> int:
    return sum(len(base64.b64decode(value)) for value in data.values())


def _immutable_data(obj: Object, old: Object | None, fields: Sequence[str]) -> Causes:
    if old is None or not old.get("immutable"):
        return
    if not obj.get("immutable"):
        yield causes.forbidden("immutable", _IMMUTABLE)
    for field in fields:
        if obj.get(field) != old.get(field):
            yield causes.forbidden(field, _IMMUTABLE)


def namespace(obj: Object, old: Object | None) -> Causes:
    for name in (obj["spec"].get("finalizers") or ()) if old is None else ():
        yield from causes.invalid_each("spec.finalizers", name, texts.qualified_name(name))
        if "/" not in name and name != "kubernetes":
            yield causes.invalid(
                "spec.finalizers", name, "name is neither a standard finalizer name nor is it fully qualified"
            )


def service(obj: Object, old: Object | None) -> Causes:
    spec = obj["spec"]
    if old is not None:
        yield from _address_changes(spec, old["spec"])
    headless, kind = spec.get("clusterIP") == "None", spec["type"]
    ports = spec.get("ports") or ()
    if not ports and not headless and kind != "ExternalName":
        yield causes.required("spec.ports")
    if headless and kind in ("LoadBalancer", "NodePort"):
        yield causes.invalid("spec.clusterIPs[0]", "None", f"may not be set to 'None' for {kind} services")
    if kind == "ExternalName":
        yield from _external_name(spec)
    names: set[str] = set()
    for index, found in enumerate(ports):
        yield from _service_port(found, names, f"spec.ports[{index}]", named=len(ports) > 1)
    yield from labels(spec.get("selector"), "spec.selector")
    yield from _session_affinity(spec)
    if kind != "ExternalName":
        yield from _addresses(spec)
    for index, address in enumerate(spec.get("externalIPs") or ()):
        yield from ip_address(address, f"spec.externalIPs[{index}]")
    yield from causes.one_of("spec.type", kind, _SERVICE_TYPES)
    yield from _port_conflicts(ports, kind)
    for field in ("externalTrafficPolicy", "internalTrafficPolicy"):
        yield from causes.one_of(f"spec.{field}", spec.get(field, "Cluster"), _TRAFFIC)
    if "allocateLoadBalancerNodePorts" in spec and kind != "LoadBalancer":
        why = "may only be used when `type` is 'LoadBalancer'"
        yield causes.forbidden("spec.allocateLoadBalancerNodePorts", why)


def _session_affinity(spec: Object) -> Causes:
    yield from causes.one_of("spec.sessionAffinity", spec["sessionAffinity"], ("ClientIP", "None"))
    if spec["sessionAffinity"] == "ClientIP":
        seconds = spec["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"]
        if not 0 < seconds <= _MAX_AFFINITY_SECONDS:
            where = "spec.sessionAffinityConfig.clientIP.timeoutSeconds"
            yield causes.invalid(where, seconds, f"must be greater than 0 and less than {_MAX_AFFINITY_SECONDS}")


def _address_changes(spec: Object, old: Object) -> Causes:
    """Validate that an update does not change the assigned address."""
    if "ExternalName" in (spec["type"], old["type"]) or not old.get("clusterIP"):
        return
    if spec.get("clusterIP") != old["clusterIP"]:
        new = spec.get("clusterIPs") or []
        yield causes.invalid("spec.clusterIPs[0]", new, "may not change once set")


def _addresses(spec: Object) -> Causes:
    found = spec.get("clusterIPs") or []
    if found and found[0] != spec.get("clusterIP"):
        yield causes.invalid("spec.clusterIPs", found, "first value must match `clusterIP`")
    for index, family in enumerate(spec.get("ipFamilies") or ()):
        yield from causes.one_of(f"spec.ipFamilies[{index}]", family, ("IPv4", "IPv6"))
    yield from causes.one_of("spec.ipFamilyPolicy", spec.get("ipFamilyPolicy", "SingleStack"), _FAMILY_POLICIES)
    for index, address in enumerate(found):
        if address != "None":
            yield from ip_address(address, f"spec.clusterIPs[{index}]")


def _external_name(spec: Object) -> Causes:
    for field in ("clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        if spec.get(field):
            yield causes.forbidden(f"spec.{field}", "may not be set for ExternalName services")
    yield from causes.mandatory("spec.externalName", spec.get("externalName", "").removesuffix("."), texts.subdomain)


def _service_port(found: Object, names: set[str], path: str, *, named: bool) -> Causes:
    if name := found.get("name"):
        yield from causes.invalid_each(f"{path}.name", name, texts.label_1123(name))
        if name in names:
            yield causes.duplicate(f"{path}.name", name)
        names.add(name)
    elif named:
        yield causes.required(f"{path}.name")
    yield from causes.invalid_each(f"{path}.port", found["port"], texts.port_number(found["port"]))
    yield from causes.one_of(f"{path}.protocol", found["protocol"], _PROTOCOLS)
    yield from port(found["targetPort"], f"{path}.targetPort")
    if protocol := found.get("appProtocol"):
        yield from label_key(protocol, f"{path}.appProtocol")


def _port_conflicts(ports: Sequence[Object], kind: str) -> Causes:
    for index, found in enumerate(ports):
        if kind == "ClusterIP" and found.get("nodePort"):
            why = "may not be used when `type` is 'ClusterIP'"
            yield causes.forbidden(f"spec.ports[{index}].nodePort", why)
    taken: set[tuple[str, str, int]] = set()
    for field in ("nodePort", "port"):
        for index, found in enumerate(ports):
            key = (field, found["protocol"], found.get(field, 0))
            if key[2] and key in taken:
                path = f"spec.ports[{index}]"
                if field == "nodePort":
                    yield causes.duplicate(f"{path}.nodePort", key[2])
                else:
                    shown = {"Name": "", "Protocol": key[1], "AppProtocol": None, "Port": key[2]}
                    shown |= {"TargetPort": 0, "NodePort": 0}
                    yield causes.duplicate(path, shown)
            taken.add(key)


def lease(obj: Object, _: Object | None) -> Causes:
    spec = obj["spec"]
    duration = spec.get("leaseDurationSeconds")
    if duration is not None and duration <= 0:
        yield causes.invalid("spec.leaseDurationSeconds", duration, "must be greater than 0")
    yield from causes.non_negative("spec.leaseTransitions", spec.get("leaseTransitions"))
    if spec.get("preferredHolder") and not spec.get("strategy"):
        yield causes.forbidden("spec.preferredHolder", "may only be specified if `strategy` is defined")


def event(obj: Object, _: Object | None) -> Causes:
    """Validate an Event. Events of events.k8s.io are validated in the form of the core group, in which they are
    stored."""
    about, here = obj["involvedObject"].get("namespace", ""), obj["metadata"].get("namespace", "")
    mismatch = causes.invalid("involvedObject.namespace", about, "does not match event.namespace")
    if obj["eventTime"] is None:
        if here != about and not (not about and here == "default"):
            yield mismatch
    else:
        if not about and here not in ("default", "kube-system"):
            yield mismatch
        component = obj["reportingComponent"]
        yield from causes.non_empty("reportingComponent", component)
        yield from label_key(component, "reportingComponent")
        for field, limit in (("reportingInstance", 128), ("action", 128), ("reason", 128), ("message", 1024)):
            text = obj.get(field) or ""
            if not text and field != "message":
                yield causes.required(field)
            if len(text) > limit:
                yield causes.invalid(field, "", f"can have at most {limit} characters")
