"""What of AlterShield is in a cluster, whoever put it there: Helm, a GitOps tool, `altershield dev`, or itself.

Ours is what carries both labels of `SELECTOR`, and what has a name that only we give: the Lease, the
CustomResourceDefinitions, the history of a Helm release. KeySet that anybody may use prove nothing.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from altershield.api.meta import ObjectMeta
from altershield.api.names import LEASE
from altershield.api.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CONFIG_MAPS,
    CRDS,
    DEPLOYMENTS,
    LEASES,
    MUTATING_WEBHOOKS,
    NAMESPACES,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
    VALIDATING_WEBHOOKS,
    Resource,
)
from altershield.install import helm
from altershield.install.crds import crds
from altershield.kube.backoff import retry_while_unavailable
from altershield.kube.client import Client
from altershield.kube.errors import ApiError, NotFoundError

SELECTOR = "app.kubernetes.io/part-of=altershield,app.kubernetes.io/component in (gate,check,dashboard)"
_OF_A_CHECK = "app.kubernetes.io/part-of=altershield,app.kubernetes.io/component=check"

_ORDER = (
    # First what could stand in the way of anything,
    VALIDATING_WEBHOOKS,
    MUTATING_WEBHOOKS,
    # then what works, and the permissions with which pods that still end could make things anew,
    DEPLOYMENTS,
    CLUSTER_ROLE_BINDINGS,
    ROLE_BINDINGS,
    # then what they worked with; certificates before Secrets, which cert-manager would issue again.
    CLUSTER_ROLES,
    ROLES,
    SERVICE_ACCOUNTS,
    Resource("", "v1", "services", "Service"),
    Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget"),
    Resource("", "v1", "resourcequotas", "ResourceQuota"),
    Resource("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy"),
    CONFIG_MAPS,
    Resource("monitoring.coreos.com", "v1", "servicemonitors", "ServiceMonitor"),
    Resource("monitoring.coreos.com", "v1", "prometheusrules", "PrometheusRule"),
    Resource("cert-manager.io", "v1", "certificates", "Certificate"),
    Resource("cert-manager.io", "v1", "issuers", "Issuer"),
    SECRETS,
)


class _Object(msgspec.Struct):
    metadata: ObjectMeta


class Item(msgspec.Struct, frozen=True):
    """One object of ours."""

    resource: Resource
    metadata: ObjectMeta

    def __str__(self) -> str:
        """As `Deployment namespace/name`."""
        return f"{self.resource.kind} " + "/".join(filter(None, (self.metadata.namespace, self.metadata.name)))


@dataclass
class Inventory:
    """What was found, and what could not be looked for."""

    items: list[Item] = field(default_factory=list)
    """What ends with AlterShield, in the order in which it may be deleted."""
    history: list[Item] = field(default_factory=list)
    """What Helm remembers of it: to be deleted when all of these are."""
    crds: list[Item] = field(default_factory=list)
    """They hold the records of all releases and the settings."""
    shared: list[helm.Release] = field(default_factory=list)
    """Helm releases that we are only a part of, or whose history cannot be read."""
    problems: list[str] = field(default_factory=list)


async def find(client: Client) -> Inventory:
    """Everything of AlterShield in the cluster. What the API server refuses to show becomes a problem; no answer at
    all is an UnreachableError."""
    found = Inventory()
    lists = await asyncio.gather(
        *(_list(client, resource, found, labels=SELECTOR) for resource in _ORDER),
        _list(client, LEASES, found, fields=f"metadata.name={LEASE}"),
        # a `helm test` that was cut off
        _list(client, PODS, found, labels=_OF_A_CHECK),
        _list(client, NAMESPACES, found, labels=_OF_A_CHECK),
    )
    found.items += [item for items in lists for item in items]
    for crd in crds():
        found.crds += await _list(client, CRDS, found, fields=f"metadata.name={crd['metadata']['name']}")
    for release in helm.releases(item.metadata for item in (*found.items, *found.crds)):
        await _add_history(client, release, found)
    return found


async def _list(
    client: Client, resource: Resource, found: Inventory, *, labels: str = "", fields: str = ""
) -> list[Item]:
    try:
        listed = await retry_while_unavailable(
            lambda: client.list(resource, as_=_Object, label_selector=labels, field_selector=fields)
        )
    except NotFoundError:
        return []  # the cluster has no such kind
    except ApiError as error:
        found.problems.append(f"cannot look for {resource.plural}: {error}")
        return []
    return [Item(resource, each.metadata) for each in listed.items]


async def _add_history(client: Client, release: helm.Release, found: Inventory) -> None:
    try:
        listed = await retry_while_unavailable(
            lambda: client.list(SECRETS, release.namespace, as_=helm.Record, label_selector=release.selector)
        )
    except ApiError as error:
        found.problems.append(f"cannot look for the history of the Helm release {release}: {error}")
        return
    records: Sequence[helm.Record] = [record for record in listed.items if record.type == helm.TYPE]
    if helm.is_of_chart(records):
        found.history += [Item(SECRETS, record.metadata) for record in records]
    else:
        found.shared.append(release)
