"""Discovery: the resources that an API server serves, custom resources included."""

import logging

import msgspec

from kube_base.access.client import Client
from kube_base.resources import Resource

logger = logging.getLogger(__name__)


class _Served(msgspec.Struct, rename="camel"):
    resource: str
    scope: str
    response_kind: "_Kind | None" = None
    verbs: tuple[str, ...] = ()


class _Kind(msgspec.Struct):
    kind: str


class _Version(msgspec.Struct):
    version: str
    resources: tuple[_Served, ...] = ()
    freshness: str = "Current"


class _Metadata(msgspec.Struct):
    name: str = ""


class _Group(msgspec.Struct):
    metadata: _Metadata
    versions: tuple[_Version, ...] = ()


class _Groups(msgspec.Struct):
    items: tuple[_Group, ...] = ()


_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

Verbs = dict[Resource, frozenset[str]]


async def discover(client: Client) -> Verbs:
    """All resources in their preferred versions, with their verbs, without subresources. Groups that cannot be read are
    omitted.

    It needs an API server with aggregated discovery (Kubernetes 1.30 or later): two requests, instead of one for each
    version of each group.
    """
    found: dict[tuple[str, str], tuple[Resource, frozenset[str]]] = {}
    for path in ("/api", "/apis"):
        groups = msgspec.json.decode(await client.request("GET", path, accept=_AGGREGATED), type=_Groups)
        for group in groups.items:
            for version in group.versions:  # the preferred one is the first
                if version.freshness != "Current":
                    logger.warning(
                        "cannot discover a part of the API",
                        extra={"group": group.metadata.name, "error": "it is stale"},
                    )
                    continue
                for one in version.resources:
                    if one.response_kind is None:
                        continue  # it has only subresources
                    resource = Resource(
                        group.metadata.name,
                        version.version,
                        one.resource,
                        one.response_kind.kind,
                        one.scope == "Namespaced",
                    )
                    found.setdefault((resource.group, resource.plural), (resource, frozenset(one.verbs)))
    return dict(found.values())
