"""Validation of containers (k8s.io/kubernetes, pkg/apis/core/validation)."""

import posixpath
from collections.abc import Collection, Sequence
from typing import Any

from kube_sandbox import quantities
from kube_sandbox.apiserver.attributes import Object
from kube_sandbox.apiserver.validation import causes, texts
from kube_sandbox.apiserver.validation.causes import Causes
from kube_sandbox.apiserver.validation.env import variable, variable_sources
from kube_sandbox.apiserver.validation.probe import hooks_and_probes

_PROTOCOLS = ("SCTP", "TCP", "UDP")
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_RESTARTS = ("Always", "Never", "OnFailure")
_RESIZABLE = ("cpu", "memory")
_RESIZE_POLICIES = ("NotRequired", "RestartContainer")
_SECCOMP = ("Localhost", "RuntimeDefault", "Unconfined")
_MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")
_RESOURCES = ("cpu", "memory", "ephemeral-storage")
_STANDARD_RESOURCES = (*_RESOURCES, "storage", "pods", "services", "secrets", "configmaps")
_SIDECARS_ONLY = "may not be set for init containers without restartPolicy=Always"
MODE = "must be a number between 0 and 0777 (octal), both inclusive"


def containers(found: Sequence[Object], volumes: Collection[str], grace: int | None, path: str) -> Causes:
    """Validate the containers of a pod. `volumes` are the names of its valid volumes, and `grace` is its
    terminationGracePeriodSeconds."""
    if not found:
        yield causes.required(path)
        return
    names: set[str] = set()
    for index, container in enumerate(found):
        where = f"{path}[{index}]"
        yield from _common(container, volumes, where)
        if container["name"] in names:
            yield causes.duplicate(f"{where}.name", container["name"])
        names.add(container["name"])
        yield from hooks_and_probes(container, grace, where)
        if (policy := container.get("restartPolicy")) not in (None, *_RESTARTS):
            yield causes.unsupported(f"{where}.restartPolicy", policy, _RESTARTS)
    yield from _host_ports(found, path)


def init_containers(
    found: Sequence[Object], names: Collection[str], volumes: Collection[str], grace: int | None, path: str
) -> Causes:
    taken = set(names)
    for index, container in enumerate(found):
        where = f"{path}[{index}]"
        yield from _common(container, volumes, where)
        if container["name"] in taken:
            yield causes.duplicate(f"{where}.name", container["name"])
        elif container["name"]:
            taken.add(container["name"])
        if (policy := container.get("restartPolicy")) not in (None, *_RESTARTS):
            yield causes.unsupported(f"{where}.restartPolicy", policy, _RESTARTS)
        if policy == "Always":
            yield from hooks_and_probes(container, grace, where)
        else:
            for field in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe"):
                if field in container:
                    yield causes.forbidden(f"{where}.{field}", _SIDECARS_ONLY)


def _common(container: Object, volumes: Collection[str], path: str) -> Causes:
    yield from causes.mandatory(f"{path}.name", container["name"], texts.label_1123)
    yield from causes.non_empty(f"{path}.image", container.get("image"))
    yield from causes.one_of(
        f"{path}.terminationMessagePolicy", container.get("terminationMessagePolicy"), _MESSAGE_POLICIES
    )
    yield from _ports(container.get("ports") or (), f"{path}.ports")
    for index, found in enumerate(container.get("env") or ()):
        yield from variable(found, f"{path}.env[{index}]")
    yield from variable_sources(container.get("envFrom") or (), f"{path}.envFrom")
    yield from _mounts(container, volumes, path)
    yield from causes.one_of(f"{path}.imagePullPolicy", container.get("imagePullPolicy"), _PULL_POLICIES)
    yield from resources(container["resources"], f"{path}.resources")
    yield from security(container.get("securityContext") or {}, f"{path}.securityContext")


def _ports(ports: Sequence[Object], path: str) -> Causes:
    names: set[str] = set()
    for index, port in enumerate(ports):
        where = f"{path}[{index}]"
        if name := port.get("name"):
            wrong = texts.port_name(name)
            yield from causes.invalid_each(f"{where}.name", name, wrong)
            if not wrong and name in names:
                yield causes.duplicate(f"{where}.name", name)
            names.add(name)
        yield from causes.mandatory(f"{where}.containerPort", port["containerPort"], texts.port_number)
        yield from causes.optional(f"{where}.hostPort", port.get("hostPort"), texts.port_number)
        yield from causes.one_of(f"{where}.protocol", port.get("protocol"), _PROTOCOLS)


def _host_ports(found: Sequence[Object], path: str) -> Causes:
    taken: set[str] = set()
    for index, container in enumerate(found):
        for position, port in enumerate(container.get("ports") or ()):
            if number := port.get("hostPort"):
                key = f"{port.get('protocol')}/{port.get('hostIP', '')}/{number}"
                if key in taken:
                    yield causes.duplicate(f"{path}[{index}].ports[{position}].hostPort", key)
                taken.add(key)


def _mounts(container: Object, volumes: Collection[str], path: str) -> Causes:
    devices = container.get("volumeDevices") or ()
    device_names = {device["name"] for device in devices}
    device_paths = {device["devicePath"] for device in devices}
    taken: set[str] = set()
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        where = f"{path}.volumeMounts[{index}]"
        name, target = mount["name"], mount["mountPath"]
        yield from causes.non_empty(f"{where}.name", name)
        if name not in volumes:
            yield causes.not_found(f"{where}.name", name)
        yield from causes.non_empty(f"{where}.mountPath", target)
        if target in taken:
            yield causes.invalid(f"{where}.mountPath", target, "must be unique")
        taken.add(target)
        if name in device_names:
            yield causes.invalid(f"{where}.name", name, "must not already exist in volumeDevices")
        if target in device_paths:
            yield causes.invalid(f"{where}.mountPath", target, "must not already exist as a path in volumeDevices")
        for field in ("subPath", "subPathExpr"):
            if below := mount.get(field):
                if field == "subPathExpr" and mount.get("subPath"):
                    why = "subPathExpr and subPath are mutually exclusive"
                    yield causes.invalid(f"{where}.subPathExpr", below, why)
                yield from relative_path(below, f"{path}.volumeMounts.{field}")


def relative_path(target: str, path: str) -> Causes:
    """Validate that a path is relative and does not contain `..`."""
    if posixpath.isabs(target):
        yield causes.invalid(path, target, "must be a relative path")
    if ".." in target.split("/"):
        yield causes.invalid(path, target, "must not contain '..'")


def resources(found: Object, path: str) -> Causes:
    limits, requests = found.get("limits") or {}, found.get("requests") or {}
    for name, quantity in sorted(limits.items()):
        yield from _resource(name, quantity, f"{path}.limits[{name}]")
    for name, quantity in sorted(requests.items()):
        yield from _resource(name, quantity, f"{path}.requests[{name}]")
        extended = "/" in name and not name.startswith("kubernetes.io/")
        if name in limits:
            requested, limit = quantities.parse(quantity), quantities.parse(limits[name])
            if extended and requested != limit:
                yield causes.invalid(f"{path}.requests", quantity, f"must be equal to {name} limit of {limits[name]}")
            elif requested > limit:
                why = f"must be less than or equal to {name} limit of {limits[name]}"
                yield causes.invalid(f"{path}.requests", quantity, why)
        elif extended:
            yield causes.required(f"{path}.limits", "Limit must be set for non overcommitable resources")


def _resource(name: str, quantity: str, path: str) -> Causes:
    wrong = texts.qualified_name(name)
    yield from causes.invalid_each(path, name, wrong)
    if not wrong and "/" not in name:
        if name not in _STANDARD_RESOURCES and not name.startswith("hugepages-"):
            yield causes.invalid(path, name, "must be a standard resource type or fully qualified")
        if name not in _RESOURCES and not name.startswith("hugepages-"):
            yield causes.invalid(path, name, "must be a standard resource for containers")
    value = quantities.parse(quantity)
    if value < 0:
        yield causes.invalid(path, quantity, "must be greater than or equal to 0")
    if "/" in name and value.denominator != 1:
        yield causes.invalid(path, quantity, "must be an integer")


def security(context: Object, path: str) -> Causes:
    for field in ("runAsUser", "runAsGroup", "fsGroup"):
        yield from _identity(context.get(field), f"{path}.{field}")
    for index, group in enumerate(context.get("supplementalGroups") or ()):
        yield from _identity(group, f"{path}.supplementalGroups[{index}]")
    if (profile := context.get("seccompProfile")) is not None:
        where = f"{path}.seccompProfile.type"
        if not profile["type"]:
            yield causes.required(where, "type is required when seccompProfile is set")
        elif profile["type"] not in _SECCOMP:
            yield causes.unsupported(where, profile["type"], _SECCOMP)
    if context.get("allowPrivilegeEscalation") is False:
        if context.get("privileged"):
            why = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
            yield causes.invalid(path, _internal_context(context), why)
        if "CAP_SYS_ADMIN" in ((context.get("capabilities") or {}).get("add") or ()):
            why = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
            yield causes.invalid(path, _internal_context(context), why)


def _internal_context(context: Object) -> dict[str, Any]:
    """A security context as the server prints its internal type: with all members, in Go's spelling."""
    fields = (
        "capabilities", "privileged", "seLinuxOptions", "windowsOptions", "runAsUser", "runAsGroup", "runAsNonRoot",
        "readOnlyRootFilesystem", "allowPrivilegeEscalation", "procMount", "seccompProfile", "appArmorProfile",
    )  # fmt: skip
    names = {"seLinuxOptions": "SELinuxOptions"}
    shown = {names.get(field, field[:1].upper() + field[1:]): context.get(field) for field in fields}
    if capabilities := context.get("capabilities"):
        shown["Capabilities"] = {"Add": capabilities.get("add"), "Drop": capabilities.get("drop")}
    return shown


def _identity(number: int | None, path: str) -> Causes:
    if number is not None and not 0 <= number <= 2**31 - 1:
        yield causes.invalid(path, number, "must be between 0 and 2147483647, inclusive")


def resize_policy(container: Object, path: str, restart_policy: str) -> Causes:
    """Validate the resizePolicy of a container. `restart_policy` is that of the pod."""
    seen = set()
    for index, policy in enumerate(container.get("resizePolicy") or ()):
        resource, restart = policy["resourceName"], policy["restartPolicy"]
        if resource in seen:
            yield causes.duplicate(f"{path}[{index}]", resource)
        seen.add(resource)
        if resource not in _RESIZABLE:
            yield causes.unsupported(path, resource, _RESIZABLE) if resource else causes.required(path, "")
        if restart not in _RESIZE_POLICIES:
            yield causes.unsupported(path, restart, _RESIZE_POLICIES) if restart else causes.required(path, "")
        if restart_policy == "Never" and restart != "NotRequired":
            yield causes.invalid(path, restart, "must be 'NotRequired' when pod `restartPolicy` is 'Never'")
