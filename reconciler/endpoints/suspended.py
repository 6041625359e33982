"""The suspended workloads of a kind, from the caches."""

import msgspec

from altershield.workloads import Adapter
from reconciler.cluster.caches import Caches
from reconciler.endpoints.endpoint_errors import EndpointError

_MAX_UNIX_DIGITS = 11


class Suspended(msgspec.Struct, frozen=True):
    """A suspended workload. All of it is in the labels of the workload, which its readers may read anyway."""

    namespace: str
    name: str
    since: int | None
    """Unix seconds; None if a person wrote something else into the label `suspend`."""
    version: str
    """The version label; empty if there is none."""


def suspended(caches: Caches, adapter: Adapter, namespace: str) -> list[Suspended]:
    """The suspended workloads of one namespace, or of all if `namespace` is empty, by namespace and name. Those of
    namespaces that AlterShield does not govern are not in the caches."""
    if not filled(caches, adapter):
        raise EndpointError("the reconciler does not know all workloads yet; send the request again", 503)
    found = [
        Suspended(each.metadata.namespace, each.metadata.name, _seconds(each.suspended), each.version)
        for each in caches.workloads[adapter.resource.group_kind].all()
        if each.suspended and namespace in ("", each.metadata.namespace)
    ]
    return sorted(found, key=lambda each: (each.namespace, each.name))


def filled(caches: Caches, adapter: Adapter) -> bool:
    """Whether the caches have all workloads of the kind, and all ChangeWorkloads."""
    if not all(informer.synced for informer in caches.required):
        return False
    kind = adapter.resource.group_kind
    return not caches.defined(kind) or caches.workloads[kind].synced


def _seconds(label: str) -> int | None:
    digits = label.isascii() and label.isdigit() and len(label) <= _MAX_UNIX_DIGITS
    return int(label) if digits else None
