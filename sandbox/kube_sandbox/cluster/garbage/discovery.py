"""Discovery: the resources that an API server serves, custom resources included."""

import logging

import msgspec

from kube_sandbox.client.client import Client
from kube_sandbox.client.errors import KubernetesError
from kube_sandbox.client.resources import Resource

logger = logging.getLogger(__name__)


class _Served(msgspec.Struct):
    name: str
    kind: str
    namespaced: bool
    verbs: tuple[str, ...] = ()


class _ServedList(msgspec.Struct):
    resources: tuple[_Served, ...] = ()


class _GroupVersion(msgspec.Struct):
    version: str


class _Group(msgspec.Struct, rename="camel"):
    name: str
    versions: tuple[_GroupVersion, ...]
    preferred_version: _GroupVersion


class _Groups(msgspec.Struct):
    groups: tuple[_Group, ...] = ()


Verbs = dict[Resource, frozenset[str]]


async def discover(client: Client) -> Verbs:
    """All resources in their preferred versions, with their verbs; no subresources. Groups that cannot be read are left
    out."""
    listed = msgspec.json.decode(await client.request("GET", "/apis"), type=_Groups)
    versions = [("", "v1")]
    for group in listed.groups:
        ordered = sorted(group.versions, key=lambda version: version != group.preferred_version)
        versions += [(group.name, version.version) for version in ordered]
    found: dict[tuple[str, str], tuple[Resource, frozenset[str]]] = {}
    for group_name, version_name in versions:
        path = f"/apis/{group_name}/{version_name}" if group_name else f"/api/{version_name}"
        try:
            served = msgspec.json.decode(await client.request("GET", path), type=_ServedList)
        except (KubernetesError, msgspec.DecodeError) as error:
            logger.warning("cannot discover a part of the API", extra={"path": path, "error": str(error)})
            continue
        for one in served.resources:
            if "/" not in one.name:
                resource = Resource(group_name, version_name, one.name, one.kind, one.namespaced)
                found.setdefault((group_name, one.name), (resource, frozenset(one.verbs)))
    return dict(found.values())
