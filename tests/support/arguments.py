"""The requests that kubectl sends for arguments. Each function returns None for arguments that it does not know."""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlencode

import yaml

from altershield.api.resources import (
    CHANGE_PODS,
    CHANGE_WORKLOADS,
    DEFENSE_POLICIES,
    OPS_CONFIG_INFOS,
    POD_DELETION_FLOW_CONTROLS,
    POD_UNAVAILABLE_BUDGETS,
)
from altershield.releases import history
from altershield.workloads import ADAPTERS
from kube_base import resources
from kube_base.resources import Resource

Json = dict[str, Any]

_KNOWN = (
    *(adapter.resource for adapter in ADAPTERS),
    CHANGE_PODS,
    CHANGE_WORKLOADS,
    resources.CONFIG_MAPS,
    resources.CRDS,
    history.RESOURCE,
    DEFENSE_POLICIES,
    resources.DISRUPTION_BUDGETS,
    resources.EVENTS,
    resources.JOBS,
    resources.MUTATING_WEBHOOKS,
    resources.NAMESPACES,
    resources.NODES,
    OPS_CONFIG_INFOS,
    POD_DELETION_FLOW_CONTROLS,
    POD_UNAVAILABLE_BUDGETS,
    resources.PODS,
    resources.REPLICA_SETS,
    resources.SECRETS,
    resources.SERVICE_ACCOUNTS,
    resources.VALIDATING_WEBHOOKS,
)
_SHORT_NAMES = {"pub": POD_UNAVAILABLE_BUDGETS, "crd": resources.CRDS}
RESOURCES = _SHORT_NAMES | {
    name: each
    for each in _KNOWN
    for name in (each.kind.lower(), each.plural, *([f"{each.plural}.{each.group}"] if each.group else []))
}
_OVERWRITE = "--overwrite"
"""Without it, kubectl refuses to change a value."""
_SELECTORS = {"-l": "labelSelector", "--field-selector": "fieldSelector"}
_IMPERSONATION = {"--as": "Impersonate-User", "--as-group": "Impersonate-Group"}
_PATCHES = {"strategic": "strategic-merge-patch+json", "merge": "merge-patch+json", "json": "json-patch+json"}


class Write(NamedTuple):
    method: str
    path: str
    query: str
    body: Json | list[Json]
    type: str = "json"
    """The media type, without `application/`."""
    waits: bool = False
    """Whether kubectl waits until the object is gone."""


class Condition(NamedTuple):
    value: Callable[[Json], object]
    wanted: str


def impersonation(options: Sequence[str]) -> dict[str, str]:
    """The headers for the options `--as=USER` and `--as-group=GROUP`."""
    parts = (option.partition("=") for option in options)
    headers = {_IMPERSONATION[name]: value for name, _, value in parts}
    assert len(headers) == len(options), "each of them once"
    return headers


def read(namespace: str, arguments: Sequence[str]) -> str | None:
    """The URL path and query of `kubectl get ARGUMENTS`."""
    first, *rest = arguments
    resource: Resource | None = RESOURCES.get(first.partition("/")[0])
    if resource is None:
        return None
    name, query = first.partition("/")[2], {}
    while rest:
        word = rest.pop(0)
        if word in _SELECTORS and rest:
            query[_SELECTORS[word]] = rest.pop(0)
        elif word == "--all-namespaces":
            namespace = ""
        elif name or word.startswith("-"):
            return None
        else:
            name = word
    if name and (query or (resource.namespaced and not namespace)):
        return None
    return resource.path(namespace, name) + (f"?{urlencode(query)}" if query else "")


def loaded(manifest: str) -> Json:
    """The object in YAML or JSON. YAML takes a hundred times as long, and most manifests of the tests are JSON."""
    obj: Json = json.loads(manifest) if manifest.startswith("{") else yaml.safe_load(manifest)
    return obj


def write(namespace: str, arguments: Sequence[str], stdin: str | None) -> Write | None:
    """The request of `kubectl ARGUMENTS` for one object."""
    match arguments:
        case ("create", "-f", "-") if stdin is not None:
            return _create(namespace, loaded(stdin))
        case ("create", "namespace", name):
            made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            return _create(namespace, made)
        case (("patch" | "label" | "annotate" | "scale" | "delete") as verb, *rest):
            return _VERBS[verb](namespace, rest)
        case _:
            return None


def condition(text: str) -> Condition | None:
    """The condition of `kubectl wait --for=TEXT`."""
    if found := re.fullmatch(r"jsonpath=\{\.([\w.]+)\}=(.+)", text):
        keys = found[1].split(".")
        return Condition(lambda obj: _field(obj, keys), found[2])
    if found := re.fullmatch(r"condition=(\w+)(?:=(\w+))?", text):
        type_ = found[1]
        return Condition(lambda obj: _condition_status(obj, type_), found[2] or "True")
    return None


def _field(obj: Json, keys: list[str]) -> object:
    value: Any = obj
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _condition_status(obj: Json, type_: str) -> object:
    """The status of this condition; None where it is about an older generation."""
    status = obj.get("status") or {}
    for each in status.get("conditions") or ():
        if each["type"] == type_:
            generation = obj["metadata"].get("generation", 0)
            seen = each.get("observedGeneration", status.get("observedGeneration", generation))
            return each["status"] if seen >= generation else None
    return None


def _create(namespace: str, obj: Json) -> Write | None:
    resource = RESOURCES.get(obj["kind"].lower())
    if resource is None:
        return None
    return Write("POST", resource.path(obj["metadata"].get("namespace", namespace)), "fieldManager=kubectl-create", obj)


def _target(
    arguments: Sequence[str], options: dict[str, str], flags: Iterable[str] = ()
) -> tuple[Resource, str, list[str]] | None:
    """The resource, the name of the object, and the words after it. Sets the values of the options."""
    words: list[str] = []
    rest = iter(arguments)
    for word in rest:
        option, _, value = word.partition("=")
        if option in options:
            options[option] = value or next(rest)
        elif word.startswith("-") and word not in flags:
            return None
        elif not word.startswith("-"):
            words.append(word)
    if not words:
        return None
    first, *more = words
    name = first.partition("/")[2] or (more.pop(0) if more else "")
    resource = RESOURCES.get(first.partition("/")[0])
    return (resource, name, more) if resource and name else None


def _patch(namespace: str, arguments: Sequence[str]) -> Write | None:
    options = {"--type": "strategic", "--subresource": "", "-p": ""}
    match _target(arguments, options):
        case (resource, name, []):
            path = resource.path(namespace, name, options["--subresource"])
            patch = json.loads(options["-p"])
            return Write("PATCH", path, "fieldManager=kubectl-patch", patch, _PATCHES[options["--type"]])
        case _:
            return None


def _label(namespace: str, arguments: Sequence[str], key: str = "labels") -> Write | None:
    match _target(arguments, {}, [_OVERWRITE]):
        case (resource, name, changes) if all(
            _OVERWRITE in arguments if "=" in each else each.endswith("-") for each in changes
        ):
            pairs = (each.partition("=") for each in changes)
            values = {
                word if equals else word.removesuffix("-"): value if equals else None for word, equals, value in pairs
            }
            patch = {"metadata": {key: values}}
            manager = f"fieldManager=kubectl-{'label' if key == 'labels' else 'annotate'}"
            return Write("PATCH", resource.path(namespace, name), manager, patch, _PATCHES["merge"])
        case _:
            return None


def _annotate(namespace: str, arguments: Sequence[str]) -> Write | None:
    return _label(namespace, arguments, "annotations")


def _scale(namespace: str, arguments: Sequence[str]) -> Write | None:
    options = {"--replicas": ""}
    match _target(arguments, options):
        case (resource, name, []):
            patch = {"spec": {"replicas": int(options["--replicas"])}}
            return Write(
                "PATCH", resource.path(namespace, name, "scale"), "fieldManager=kubectl", patch, _PATCHES["merge"]
            )
        case _:
            return None


def _delete(namespace: str, arguments: Sequence[str]) -> Write | None:
    options = {"--wait": "true"}
    match _target(arguments, options):
        case (resource, name, []):
            body = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
            waits = options["--wait"] == "true"
            return Write("DELETE", resource.path(namespace, name), "", body, waits=waits)
        case _:
            return None


_VERBS: dict[str, Callable[[str, Sequence[str]], Write | None]] = {
    "patch": _patch,
    "label": _label,
    "annotate": _annotate,
    "scale": _scale,
    "delete": _delete,
}
