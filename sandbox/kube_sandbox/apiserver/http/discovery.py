"""Discovery of the served groups, versions and resources, in the plain and the aggregated form."""

import base64
import hashlib
from collections.abc import Iterator
from typing import Any

from kube_sandbox.apiserver.attributes import Object
from kube_sandbox.apiserver.errors import not_served
from kube_sandbox.apiserver.http.codec import kind_of
from kube_sandbox.apiserver.http.responses import accepted
from kube_sandbox.apiserver.storage.registry import Registry, ResourceType, Subresource

AGGREGATED = "apidiscovery.k8s.io"

VERSION = {
    "major": "1",
    "minor": "36",
    "emulationMajor": "1",
    "emulationMinor": "36",
    "minCompatibilityMajor": "1",
    "minCompatibilityMinor": "35",
    "gitVersion": "v1.36.2",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "2026-06-09T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "linux/amd64",
}


def document(registry: Registry, path: list[str], address: str) -> Object | None:
    """The plain document at a path, or None if the response is a page. Raises StatusError if it is a Status. `address`:
    the host and port of this server."""
    match path:
        case ["api"]:
            return _api_versions(address)
        case ["apis"]:
            return _group_list(registry)
        case ["apis", group]:
            return _single_group(registry, group)
        case ["api", version]:
            return _resource_list(registry, "", version)
        case ["apis", group, version]:
            return _resource_list(registry, group, version)
    return None


def wants_aggregated(accept: str) -> str:
    """The version of aggregated discovery that a client prefers: v2 or v2beta1, or empty for plain discovery."""
    for media_type, parameters in accepted(accept):
        if media_type != "application/json":
            continue
        if parameters.get("g") == AGGREGATED and parameters.get("as") == "APIGroupDiscoveryList":
            return parameters.get("v", "") if parameters.get("v") in ("v2", "v2beta1") else ""
        return ""
    return ""


def aggregated(registry: Registry, version: str, *, core: bool) -> Object:
    """Groups with their resources in one document: the core group (`/api`) or all other groups (`/apis`)."""
    items = []
    for group, versions in registry.group_versions().items():
        if (group == "") is not core:
            continue
        items.append(
            {
                "metadata": {"name": group} if group else {},
                "versions": [
                    {
                        "version": name,
                        "resources": [_aggregated_resource(resource) for resource in _resources(registry, group, name)],
                        "freshness": "Current",
                    }
                    for name in versions
                ],
            }
        )
    return {"kind": "APIGroupDiscoveryList", "apiVersion": f"{AGGREGATED}/{version}", "metadata": {}, "items": items}


def _resources(registry: Registry, group: str, version: str) -> Iterator[ResourceType]:
    found = [resource for resource in registry if (resource.group, resource.version) == (group, version)]
    return iter(sorted(found, key=lambda resource: resource.plural))


def _gvk(group: str, version: str, kind: str) -> dict[str, str]:
    return {"group": group, "version": version, "kind": kind}


def _aggregated_resource(resource: ResourceType) -> Object:
    found: Object = {
        "resource": resource.plural,
        "responseKind": _gvk(resource.group, resource.version, resource.kind),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        found["shortNames"] = list(resource.short_names)
    if resource.categories:
        found["categories"] = list(resource.categories)
    if resource.subresources:
        found["subresources"] = [
            {
                "subresource": subresource.name,
                "responseKind": _gvk(*kind_of(resource, subresource)),
                "verbs": list(subresource.verbs),
            }
            for subresource in resource.subresources
        ]
    return found


def _api_versions(address: str) -> Object:
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    }


def _group(name: str, versions: list[str]) -> Object:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def _group_list(registry: Registry) -> Object:
    found = [_group(name, versions) for name, versions in registry.group_versions().items() if name]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": found}


def _single_group(registry: Registry, name: str) -> Object | None:
    versions = registry.group_versions().get(name)
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, versions)} if versions and name else None


def _resource_list(registry: Registry, group: str, version: str) -> Object | None:
    listed: list[Any] = []
    for resource in _resources(registry, group, version):
        entry: Object = {
            "name": resource.plural,
            "singularName": resource.singular,
            "namespaced": resource.namespaced,
            "kind": resource.kind,
            "verbs": list(resource.verbs),
        }
        if resource.short_names:
            entry["shortNames"] = list(resource.short_names)
        if resource.categories:
            entry["categories"] = list(resource.categories)
        if "list" in resource.verbs:
            entry["storageVersionHash"] = _storage_hash(resource)
        listed.append(entry)
        listed += [_plain_subresource(resource, subresource) for subresource in resource.subresources]
    if not listed:
        if registry.is_built_in(group):
            raise not_served()
        return None
    group_version = f"{group}/{version}" if group else version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": listed}


def _plain_subresource(resource: ResourceType, subresource: Subresource) -> Object:
    group, version, kind = kind_of(resource, subresource)
    entry: Object = {
        "name": f"{resource.plural}/{subresource.name}",
        "singularName": "",
        "namespaced": resource.namespaced,
    }
    if (group, version) != (resource.group, resource.version):
        entry |= {"group": group, "version": version}
    return entry | {"kind": kind, "verbs": list(subresource.verbs)}


def _storage_hash(resource: ResourceType) -> str:
    text = f"{resource.group}/{resource.version}/{resource.kind}"
    return base64.b64encode(hashlib.sha256(text.encode()).digest()[:8]).decode()
