"""Finds the objects of AlterShield in a cluster: from Helm, a GitOps tool, `altershield dev` or AlterShield itself.

An object belongs to AlterShield if it has both labels of `SELECTOR`, or a name or label that only AlterShield uses: the
Lease, the CustomResourceDefinitions, the history of workloads and the history of a Helm release. Anybody may use other
names, so they prove nothing.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from altershield.api import labels
from altershield.api.names import LEASE
from altershield.releases import history
from command.install import helm
from command.install.crds import crds
from kube_base.access.backoff import retry_while_unavailable
from kube_base.access.client import Client
from kube_base.access.errors import ApiError, NotFoundError
from kube_base.meta import ObjectMeta
from kube_base.resources import (
    ADMISSION_POLICIES,
    ADMISSION_POLICY_BINDINGS,
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

SELECTOR = "app.kubernetes.io/part-of=altershield,app.kubernetes.io/component in (gate,reconciler,check,dashboard)"
_CHECK_SELECTOR = "app.kubernetes.io/part-of=altershield,app.kubernetes.io/component=check"

_ORDER = (
    # 1. The webhooks and admission policies, because they could block other requests.
    VALIDATING_WEBHOOKS,
    MUTATING_WEBHOOKS,
    ADMISSION_POLICY_BINDINGS,
    ADMISSION_POLICIES,
    # 2. The Deployments, and the permissions with which terminating pods could create objects again.
    DEPLOYMENTS,
    CLUSTER_ROLE_BINDINGS,
    ROLE_BINDINGS,
    # 3. The objects that the pods use. Certificates before Secrets, because cert-manager would issue the Secrets again.
    CLUSTER_ROLES,
    ROLES,
    SERVICE_ACCOUNTS,
    Resource("", "v1", "services", "Service"),
    Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget"),
    Resource("flowcontrol.apiserver.k8s.io", "v1", "flowschemas", "FlowSchema"),
    Resource("flowcontrol.apiserver.k8s.io", "v1", "prioritylevelconfigurations", "PriorityLevelConfiguration"),
    Resource("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler"),
    Resource("", "v1", "resourcequotas", "ResourceQuota"),
    Resource("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy"),
    CONFIG_MAPS,
    Resource("monitoring.coreos.com", "v1", "servicemonitors", "ServiceMonitor"),
    Resource("monitoring.coreos.com", "v1", "podmonitors", "PodMonitor"),
    Resource("monitoring.coreos.com", "v1", "prometheusrules", "PrometheusRule"),
    Resource("grafana.integreatly.org", "v1beta1", "grafanadashboards", "GrafanaDashboard"),
    Resource("cert-manager.io", "v1", "certificates", "Certificate"),
    Resource("cert-manager.io", "v1", "issuers", "Issuer"),
    SECRETS,
)


class _Object(msgspec.Struct):
    metadata: ObjectMeta


class Item(msgspec.Struct, frozen=True):
    """One object of AlterShield."""

    resource: Resource
    metadata: ObjectMeta

    def __str__(self) -> str:
        """`Deployment namespace/name`."""
        return f"{self.resource.kind} " + "/".join(filter(None, (self.metadata.namespace, self.metadata.name)))


@dataclass
class Inventory:
    """The objects that were found, and the lists that failed."""

    items: list[Item] = field(default_factory=list)
    """The objects to delete, in a safe order."""
    history: list[Item] = field(default_factory=list)
    """The Secrets of Helm. They may be deleted when all `items` are deleted."""
    crds: list[Item] = field(default_factory=list)
    """The CustomResourceDefinitions. All objects of our kinds are deleted together with them."""
    entries: list[Item] = field(default_factory=list)
    """The ControllerRevisions with the history of workloads, if they were asked for."""
    shared: list[helm.Release] = field(default_factory=list)
    """Helm releases that contain other charts too, or whose history cannot be read."""
    problems: list[str] = field(default_factory=list)


async def find(client: Client, *, entries: bool = False) -> Inventory:
    """All objects of AlterShield in the cluster. With `entries`, they include the history of workloads. A list that the
    API server refuses becomes a problem. UnreachableError: the API server does not answer."""
    found = Inventory()
    lists = await asyncio.gather(
        *(_list(client, resource, found, labels=SELECTOR) for resource in _ORDER),
        _list(client, LEASES, found, fields=f"metadata.name={LEASE}"),
        # left by a `helm test` that was interrupted
        _list(client, PODS, found, labels=_CHECK_SELECTOR),
        _list(client, NAMESPACES, found, labels=_CHECK_SELECTOR),
    )
    found.items += [item for items in lists for item in items]
    for crd in crds():
        found.crds += await _list(client, CRDS, found, fields=f"metadata.name={crd['metadata']['name']}")
    if entries:
        found.entries = await _entries(client, found)
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
        return []  # the cluster does not have this kind
    except ApiError as error:
        found.problems.append(f"cannot list {resource.plural}: {error}")
        return []
    return [Item(resource, each.metadata) for each in listed.items]


async def _entries(client: Client, found: Inventory) -> list[Item]:
    """The history of workloads, without its content: there may be many entries."""

    async def read() -> list[Item]:
        return [
            Item(history.RESOURCE, ObjectMeta(entry.metadata.name, entry.metadata.namespace, entry.metadata.uid))
            async for page in client.pages(history.RESOURCE, label_selector=labels.HISTORY, metadata_only=True)
            for entry in (msgspec.json.decode(raw, type=_Object) for raw in page.items)
            if history.ANNOTATION in entry.metadata.annotations
        ]

    try:
        return await retry_while_unavailable(read)
    except ApiError as error:
        found.problems.append(f"cannot list {history.RESOURCE.plural}: {error}")
        return []


async def _add_history(client: Client, release: helm.Release, found: Inventory) -> None:
    try:
        listed = await retry_while_unavailable(
            lambda: client.list(SECRETS, release.namespace, as_=helm.RevisionSecret, label_selector=release.selector)
        )
    except ApiError as error:
        found.problems.append(f"cannot list the Secrets with the history of the Helm release {release}: {error}")
        return
    secrets: Sequence[helm.RevisionSecret] = [each for each in listed.items if each.type == helm.TYPE]
    if helm.is_of_chart(secrets):
        found.history += [Item(SECRETS, each.metadata) for each in secrets]
    else:
        found.shared.append(release)
