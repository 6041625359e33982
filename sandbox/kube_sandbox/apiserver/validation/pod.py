"""Validation of pods and pod templates (k8s.io/kubernetes, pkg/apis/core/validation)."""

import difflib
import ipaddress
import json
from collections.abc import Sequence
from typing import Any

from kube_sandbox.apiserver.attributes import Object, copied
from kube_sandbox.apiserver.validation import causes, texts
from kube_sandbox.apiserver.validation.causes import Causes
from kube_sandbox.apiserver.validation.container import containers, init_containers, resize_policy, security
from kube_sandbox.apiserver.validation.meta import annotations, label_key, label_selector, labels
from kube_sandbox.apiserver.validation.volume import valid_volumes

_RESTARTS = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_CHANGEABLE = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def template(found: Object, path: str) -> Causes:
    """Validate a pod template."""
    metadata = found["metadata"]
    yield from labels(metadata.get("labels"), f"{path}.labels")
    yield from annotations(metadata.get("annotations"), f"{path}.annotations")
    yield from pod_spec(found["spec"], f"{path}.spec")
    if found["spec"].get("ephemeralContainers"):
        yield causes.forbidden(f"{path}.spec.ephemeralContainers", "ephemeral containers not allowed in pod template")


def pod(obj: Object, old: Object | None) -> Causes:
    """Validate a pod, except its metadata."""
    spec = obj["spec"]
    yield from pod_spec(spec, "spec")
    for field in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(field) or ()):
            image = container.get("image", "")
            if image.strip() != image:
                why = "must not have leading or trailing whitespace"
                yield causes.invalid(f"spec.{field}[{index}].image", image, why)
    if old is not None:
        yield from _changes(spec, old["spec"])
        return
    if spec.get("ephemeralContainers"):
        yield causes.forbidden("spec.ephemeralContainers", "cannot be set on create")
    if spec.get("nodeName") and spec.get("schedulingGates"):
        yield causes.forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared")


def pod_spec(spec: Object, path: str) -> Causes:
    grace = spec.get("terminationGracePeriodSeconds")
    volumes, wrong_volumes = valid_volumes(spec.get("volumes") or (), f"{path}.volumes")
    yield from wrong_volumes
    found = spec.get("containers") or ()
    yield from containers(found, volumes, grace, f"{path}.containers")
    names = {container["name"] for container in found}
    initial = spec.get("initContainers") or ()
    yield from init_containers(initial, names, volumes, grace, f"{path}.initContainers")
    for field, listed in (("containers", found), ("initContainers", initial)):
        for index, container in enumerate(listed):
            yield from resize_policy(container, f"{path}.{field}[{index}].resizePolicy", spec["restartPolicy"])
    yield from _host_network(spec, path)
    yield from causes.one_of(f"{path}.restartPolicy", spec["restartPolicy"], _RESTARTS)
    yield from causes.one_of(f"{path}.dnsPolicy", spec["dnsPolicy"], _DNS_POLICIES)
    yield from labels(spec.get("nodeSelector"), f"{path}.nodeSelector")
    yield from security(spec["securityContext"], f"{path}.securityContext")
    yield from _affinity(spec.get("affinity") or {}, f"{path}.affinity")
    yield from _dns(spec, f"{path}.dnsConfig")
    for index, gate in enumerate(spec.get("readinessGates") or ()):
        yield from label_key(gate["conditionType"], f"{path}.readinessGates[{index}].conditionType")
    yield from _scheduling_gates(spec.get("schedulingGates") or (), f"{path}.schedulingGates")
    yield from _spread(spec.get("topologySpreadConstraints") or (), f"{path}.topologySpreadConstraints")
    for field in ("serviceAccountName", "nodeName"):
        yield from causes.optional(f"{path}.{field}", spec.get(field), texts.subdomain)
    seconds = spec.get("activeDeadlineSeconds")
    if seconds is not None and not 1 <= seconds <= 2**31 - 1:
        yield causes.invalid(f"{path}.activeDeadlineSeconds", seconds, "must be between 1 and 2147483647, inclusive")
    for field in ("hostname", "subdomain"):
        yield from causes.optional(f"{path}.{field}", spec.get(field), texts.label_1123)
    for index, toleration in enumerate(spec.get("tolerations") or ()):
        yield from _toleration(toleration, f"{path}.tolerations[{index}]")
    for index, alias in enumerate(spec.get("hostAliases") or ()):
        yield from ip_address(alias["ip"], f"{path}.hostAliases[{index}].ip")
        for position, name in enumerate(alias.get("hostnames") or ()):
            where = f"{path}.hostAliases[{index}].hostnames[{position}]"
            yield from causes.invalid_each(where, name, texts.subdomain(name))
    for field in ("priorityClassName", "runtimeClassName"):
        yield from causes.optional(f"{path}.{field}", spec.get(field), texts.subdomain)
    yield from causes.one_of(
        f"{path}.preemptionPolicy", spec.get("preemptionPolicy", "Never"), ("PreemptLowerPriority", "Never")
    )


def ip_address(text: str, path: str) -> Causes:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        yield causes.invalid(path, text, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")


def _host_network(spec: Object, path: str) -> Causes:
    if not spec.get("hostNetwork"):
        return
    for index, container in enumerate(spec.get("containers") or ()):
        for position, port in enumerate(container.get("ports") or ()):
            number = port.get("hostPort", 0)
            if number and number != port["containerPort"]:
                where = f"{path}.containers[{index}].ports[{position}].hostPort"
                yield causes.invalid(where, number, "must match `containerPort` when `hostNetwork` is true")


def _dns(spec: Object, path: str) -> Causes:
    config = spec.get("dnsConfig")
    if spec["dnsPolicy"] == "None":
        if config is None:
            yield causes.required(path, "must provide `dnsConfig` when `dnsPolicy` is None")
            return
        if not config.get("nameservers"):
            why = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            yield causes.required(f"{path}.nameservers", why)
            return
    servers = (config or {}).get("nameservers") or []
    if len(servers) > 3:
        yield causes.invalid(f"{path}.nameservers", servers, "must not have more than 3 nameservers")
    for index, server in enumerate(servers):
        yield from ip_address(server, f"{path}.nameservers[{index}]")
    for index, option in enumerate((config or {}).get("options") or ()):
        if not option.get("name"):
            yield causes.required(f"{path}.options[{index}]", "must not be empty")


def _scheduling_gates(gates: Sequence[Object], path: str) -> Causes:
    taken: set[str] = set()
    for index, gate in enumerate(gates):
        yield from label_key(gate["name"], f"{path}[{index}]")
        if gate["name"] in taken:
            yield causes.duplicate(f"{path}[{index}]", gate["name"])
        taken.add(gate["name"])


def _spread(constraints: Sequence[Object], path: str) -> Causes:
    for index, constraint in enumerate(constraints):
        where = f"{path}[{index}]"
        if constraint["maxSkew"] <= 0:
            yield causes.invalid(f"{where}.maxSkew", constraint["maxSkew"], "must be greater than zero")
        if not constraint["topologyKey"]:
            yield causes.required(f"{where}.topologyKey", "can not be empty")
        action = constraint["whenUnsatisfiable"]
        yield from causes.one_of(f"{where}.whenUnsatisfiable", action, ("DoNotSchedule", "ScheduleAnyway"))
        key = (constraint["topologyKey"], action)
        if any((other["topologyKey"], other["whenUnsatisfiable"]) == key for other in constraints[index + 1 :]):
            yield causes.duplicate(f"{where}.{{topologyKey, whenUnsatisfiable}}", f"{{{key[0]}, {action}}}")
        yield from label_selector(constraint.get("labelSelector"), f"{where}.labelSelector")


def _affinity(found: Object, path: str) -> Causes:
    required, preferred = (
        "requiredDuringSchedulingIgnoredDuringExecution",
        "preferredDuringSchedulingIgnoredDuringExecution",
    )
    nodes = found.get("nodeAffinity") or {}
    if (selector := nodes.get(required)) is not None and not selector.get("nodeSelectorTerms"):
        where = f"{path}.nodeAffinity.{required}.nodeSelectorTerms"
        yield causes.required(where, "must have at least one node selector term")
    for index, term in enumerate(nodes.get(preferred) or ()):
        yield from _weight(term["weight"], f"{path}.nodeAffinity.{preferred}[{index}].weight")
    for kind in ("podAffinity", "podAntiAffinity"):
        pods = found.get(kind) or {}
        for index, term in enumerate(pods.get(required) or ()):
            yield from _affinity_term(term, f"{path}.{kind}.{required}[{index}]")
        for index, weighted in enumerate(pods.get(preferred) or ()):
            where = f"{path}.{kind}.{preferred}[{index}]"
            yield from _weight(weighted["weight"], f"{where}.weight")
            yield from _affinity_term(weighted["podAffinityTerm"], f"{where}.podAffinityTerm")


def _weight(weight: int, path: str) -> Causes:
    if not 1 <= weight <= 100:
        yield causes.invalid(path, weight, "must be in the range 1-100")


def _affinity_term(term: Object, path: str) -> Causes:
    yield from label_selector(term.get("labelSelector"), f"{path}.labelSelector")
    yield from label_selector(term.get("namespaceSelector"), f"{path}.namespaceSelector")
    for name in term.get("namespaces") or ():
        yield from causes.invalid_each(f"{path}.namespace", name, texts.label_1123(name))
    if not term["topologyKey"]:
        yield causes.required(f"{path}.topologyKey", "can not be empty")
    yield from label_key(term["topologyKey"], f"{path}.topologyKey")


def _toleration(toleration: Object, path: str) -> Causes:
    key, operator = toleration.get("key", ""), toleration.get("operator", "")
    value, effect = toleration.get("value", ""), toleration.get("effect", "")
    if key:
        yield from label_key(key, f"{path}.key")
    elif operator != "Exists":
        why = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield causes.invalid(f"{path}.operator", operator, why)
    if "tolerationSeconds" in toleration and effect != "NoExecute":
        yield causes.invalid(f"{path}.effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
    if operator in ("Equal", ""):
        if wrong := texts.label_value(value):
            yield causes.invalid(f"{path}.operator", value, ";".join(wrong))
    elif operator == "Exists":
        if value:
            yield causes.invalid(f"{path}.operator", value, "value must be empty when `operator` is 'Exists'")
    else:
        yield causes.unsupported(f"{path}.operator", operator, ("Equal", "Exists"))
    if effect and effect not in _EFFECTS:
        yield causes.unsupported(f"{path}.effect", effect, _EFFECTS)


def _changes(spec: Object, old: Object) -> Causes:
    """Validate the update of a pod. It may change images, shorten the deadline, add tolerations and remove scheduling
    gates."""
    for field in ("containers", "initContainers"):
        if len(spec.get(field) or ()) != len(old.get(field) or ()):
            yield causes.forbidden(f"spec.{field}", "pod updates may not add or remove containers")
            return
        for index, container in enumerate(spec.get(field) or ()):
            yield from causes.non_empty(f"spec.{field}[{index}].image", container.get("image"))
    seconds, before = spec.get("activeDeadlineSeconds"), old.get("activeDeadlineSeconds")
    if seconds is None and before is not None:
        why = "must not update from a positive integer to nil value"
        yield causes.invalid("spec.activeDeadlineSeconds", None, why)
    elif seconds is not None and before is not None and before < seconds:
        yield causes.invalid("spec.activeDeadlineSeconds", seconds, "must be less than or equal to previous value")
        return
    kept = [_without_seconds(toleration) for toleration in spec.get("tolerations") or ()]
    if any(_without_seconds(toleration) not in kept for toleration in old.get("tolerations") or ()):
        why = "existing toleration can not be modified except its tolerationSeconds"
        yield causes.forbidden("spec.tolerations", why)
    gates = {gate["name"] for gate in old.get("schedulingGates") or ()}
    if added := sorted({gate["name"] for gate in spec.get("schedulingGates") or ()} - gates):
        why = f"only deletion is allowed, but found new scheduling gates '{','.join(added)}'"
        yield causes.forbidden("spec.schedulingGates", why)
    allowed = _with_allowed_changes(old, spec)
    if allowed != spec:
        yield causes.forbidden(
            "spec", f"pod updates may not change fields other than {_CHANGEABLE}\n{_difference(allowed, spec)}"
        )


def _without_seconds(toleration: Object) -> Object:
    return {name: value for name, value in toleration.items() if name != "tolerationSeconds"}


def _with_allowed_changes(old: Object, spec: Object) -> Object:
    """The old spec with the permitted changes of the new one."""
    result = copied(old)
    for field in ("containers", "initContainers"):
        for container, new in zip(result.get(field) or (), spec.get(field) or (), strict=True):
            container.pop("image", None)
            container |= {"image": new["image"]} if "image" in new else {}
    for field in ("activeDeadlineSeconds", "tolerations", "schedulingGates"):
        result.pop(field, None)
        if field in spec:
            result[field] = spec[field]
    if old.get("schedulingGates"):
        result |= {field: spec[field] for field in ("nodeSelector", "affinity") if field in spec}
    if (old.get("terminationGracePeriodSeconds") or 0) < 0 and spec.get("terminationGracePeriodSeconds") == 1:
        result["terminationGracePeriodSeconds"] = 1
    return result


def _difference(old: Any, new: Any) -> str:
    before, after = (json.dumps(side, indent=1, sort_keys=True).splitlines(keepends=True) for side in (old, new))
    return "".join(list(difflib.unified_diff(before, after))[2:])
