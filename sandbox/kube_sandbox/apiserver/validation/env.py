"""Validation of containers' environment variables and their sources (k8s.io/kubernetes, pkg/apis/core/validation)."""

from collections.abc import Sequence

from kube_sandbox.apiserver.attributes import Object
from kube_sandbox.apiserver.validation import causes, texts
from kube_sandbox.apiserver.validation.causes import Causes

_RESOURCES = ("cpu", "ephemeral-storage", "memory")
_FIELDS = (
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.hostname", "spec.nodeName", "spec.serviceAccountName",
    "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
)  # fmt: skip
_OLD_FIELDS = {"spec.host": "spec.nodeName"}


def variable(found: Object, path: str) -> Causes:
    yield from causes.mandatory(f"{path}.name", found["name"], texts.variable_name)
    source = found.get("valueFrom")
    if source is None:
        return
    path = f"{path}.valueFrom"
    if (field := source.get("fieldRef")) is not None:
        yield from field_selector(field, _FIELDS, f"{path}.fieldRef")
    if (resource := source.get("resourceFieldRef")) is not None:
        yield from resource_selector(resource, f"{path}.resourceFieldRef", in_volume=False)
    for name in ("configMapKeyRef", "secretKeyRef"):
        if (key := source.get(name)) is not None:
            yield from _key_selector(key, f"{path}.{name}")
    if not source:
        yield causes.invalid(
            path,
            "",
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
        )
    elif found.get("value"):
        yield causes.invalid(path, "", "may not be specified when `value` is not empty")
    elif len(source) > 1:
        yield causes.invalid(path, "", "may not have more than one field specified at a time")


def variable_sources(sources: Sequence[Object], path: str) -> Causes:
    for index, source in enumerate(sources):
        where = f"{path}[{index}]"
        yield from causes.optional(f"{where}.prefix", source.get("prefix"), texts.variable_name)
        names = [name for name in ("configMapRef", "secretRef") if name in source]
        for name in names:
            yield from causes.mandatory(f"{where}.{name}.name", source[name].get("name"), texts.subdomain)
        if not names:
            yield causes.invalid(path, "", "must specify one of: `configMapRef` or `secretRef`")
        elif len(names) > 1:
            yield causes.invalid(path, "", "may not have more than one field specified at a time")


def field_selector(selector: Object, allowed: Sequence[str], path: str) -> Causes:
    """Validate a fieldRef: a reference to a field of the pod."""
    if not selector.get("apiVersion"):
        yield causes.required(f"{path}.apiVersion")
        return
    field = selector["fieldPath"]
    if not field:
        yield causes.required(f"{path}.fieldPath")
        return
    name, bracket, subscript = field.removesuffix("']").partition("['")
    known = (*_FIELDS, "metadata.annotations", "metadata.labels", "status.phase", "spec.restartPolicy", *_OLD_FIELDS)
    if selector["apiVersion"] != "v1":
        why = f"error converting fieldPath: unsupported pod version: {selector['apiVersion']}"
        yield causes.invalid(f"{path}.fieldPath", field, why)
    elif bracket and field.endswith("']") and name in ("metadata.annotations", "metadata.labels"):
        key = subscript.lower() if name == "metadata.annotations" else subscript
        yield from causes.invalid_each(path, key, texts.qualified_name(key))
    elif bracket and field.endswith("']") and name in known:
        yield causes.invalid(path, name, "does not support subscript")
    elif field not in known:
        why = f"error converting fieldPath: field label not supported: {field}"
        yield causes.invalid(f"{path}.fieldPath", field, why)
    elif _OLD_FIELDS.get(field, field) not in allowed:
        yield causes.unsupported(f"{path}.fieldPath", field, allowed)


def resource_selector(selector: Object, path: str, *, in_volume: bool) -> Causes:
    """Validate a resourceFieldRef: a reference to a limit or request of a container."""
    resource = selector["resource"]
    known = [f"{kind}.{name}" for kind in ("limits", "requests") for name in _RESOURCES]
    if in_volume and not selector.get("containerName"):
        yield causes.required(f"{path}.containerName")
    elif not resource:
        yield causes.required(f"{path}.resource")
    elif resource not in known and not resource.startswith(("limits.hugepages-", "requests.hugepages-")):
        yield causes.unsupported(f"{path}.resource", resource, known)


def _key_selector(selector: Object, path: str) -> Causes:
    name, key = selector.get("name", ""), selector["key"]
    yield from causes.invalid_each(f"{path}.name", name, texts.subdomain(name))
    yield from causes.mandatory(f"{path}.key", key, texts.config_key)
