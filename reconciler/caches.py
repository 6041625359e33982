"""The informers, and the questions that controllers ask of them.

Watches are filtered by label, so only what AlterShield stamped is kept. Objects hang together by owner uid, never
by name alone: a namesake that was deleted and made anew is another object.
"""

import asyncio
import math
from typing import Any, TypeVar

from altershield.api import labels, names
from altershield.api.kinds import ChangePod, ChangeWorkload, OpsConfigInfo
from altershield.api.meta import ObjectMeta, OwnerReference, unix
from altershield.api.ops_config import BLOCKING, Settings, effective
from altershield.api.resources import (
    CHANGE_PODS,
    CHANGE_WORKLOADS,
    DEPLOYMENTS,
    NAMESPACES,
    OPS_CONFIG_INFOS,
    PODS,
    REPLICA_SETS,
)
from altershield.api.views import Deployment, Namespace, Pod, ReplicaSet
from altershield.kube.client import Client
from altershield.kube.informer import Informer

Key = tuple[str, str]
"""Namespace and name."""

Owner = TypeVar("Owner", Deployment, ReplicaSet)

_KUBE_SYSTEM = "kube-system"

_OWNER = "owner"
_ORPHANED = "orphaned"
_NAMESPACE = "namespace"
_SERIES = "series"


class Caches:
    """One informer per resource."""

    def __init__(self, client: Client, system_namespace: str) -> None:
        self.system_namespace = system_namespace
        governed, stamped = f"{labels.GOVERNED}={labels.GOVERNED_VALUE}", labels.VERSION
        self.namespaces = Informer(client, NAMESPACES, Namespace, label_selector=governed)
        self.deployments = Informer(client, DEPLOYMENTS, Deployment, label_selector=stamped)
        self.replica_sets = Informer(client, REPLICA_SETS, ReplicaSet, label_selector=stamped)
        self.unversioned = Informer(
            client,
            REPLICA_SETS,
            ReplicaSet,
            label_selector=f"!{stamped}",
            metadata_only=True,
            keep=self._may_have_slipped,
            name=f"{REPLICA_SETS.plural}-unversioned",
        )
        """ReplicaSets that may have slipped past the gate, followed once it is known what is governed since when."""
        self.pods = Informer(client, PODS, Pod, label_selector=stamped)
        self.change_workloads = Informer(client, CHANGE_WORKLOADS, ChangeWorkload)
        self.change_pods = Informer(client, CHANGE_PODS, ChangePod)
        self.settings = Informer(client, OPS_CONFIG_INFOS, OpsConfigInfo)
        self.informers: tuple[Informer[Any], ...] = (
            self.namespaces,
            self.deployments,
            self.replica_sets,
            self.unversioned,
            self.pods,
            self.change_workloads,
            self.change_pods,
            self.settings,
        )
        self.deployments.add_index(_NAMESPACE, lambda obj: (obj.metadata.namespace,))
        self.replica_sets.add_index(_OWNER, lambda obj: _owner_uid(obj.metadata))
        self.unversioned.add_index(_OWNER, lambda obj: _owner_uid(obj.metadata))
        self.pods.add_index(_OWNER, lambda obj: _owner_uid(obj.metadata))
        self.change_workloads.add_index(_OWNER, lambda obj: _owner_uid(obj.metadata))
        self.change_workloads.add_index(
            _ORPHANED,
            lambda obj: () if obj.metadata.controller else (f"{obj.metadata.namespace}/{obj.spec.service_name}",),
        )
        # by name, so that the numbers of a deleted namesake's ChangePods are not given twice
        self.change_pods.add_index(
            _SERIES, lambda obj: (_series(obj.metadata.namespace, names.change_workload_of(obj.metadata.name)),)
        )
        self._in_effect: Settings | None = None
        self.settings.add_handler(lambda old, new: self._forget_settings())

    async def run(self) -> None:
        """Follow the cluster until cancelled."""
        async with asyncio.TaskGroup() as group:
            for informer in self.informers:
                if informer is not self.unversioned:
                    group.create_task(informer.run())
            await self.namespaces.wait_synced()
            await self.settings.wait_synced()
            group.create_task(self.unversioned.run())

    def governed(self, namespace: str) -> bool:
        """Whether there is anything to do in the namespace: the gate passes over our own and `kube-system`, and one
        that is being deleted is left alone."""
        found = self.namespaces.get("", namespace)
        return (
            found is not None
            and found.governed
            and found.metadata.deletion_timestamp is None
            and namespace not in (_KUBE_SYSTEM, self.system_namespace)
        )

    def gated_since(self, namespace: str) -> float:
        """The Unix second after which what is released in the namespace passes the gate: the namespace is governed,
        and AlterShield is there, as the setting that it makes when it first runs. Infinite where nobody knows."""
        found = self.namespaces.get("", namespace)
        governed_at = found.metadata.governed_at if found is not None and self.governed(namespace) else None
        installed = self.settings.get(self.system_namespace, BLOCKING)
        if governed_at is None or installed is None:
            return math.inf
        return max(governed_at, unix(installed.metadata.creation_timestamp))

    def _may_have_slipped(self, replica_set: ReplicaSet) -> bool:
        metadata = replica_set.metadata
        return deployment_owner(metadata) is not None and unix(metadata.creation_timestamp) > self.gated_since(
            metadata.namespace
        )

    def in_effect(self) -> Settings:
        """The settings in effect."""
        if self._in_effect is None:
            self._in_effect = effective(self.settings.all(), self.system_namespace)
        return self._in_effect

    def _forget_settings(self) -> None:
        self._in_effect = None

    def deployments_in(self, namespace: str) -> list[Deployment]:
        return self.deployments.by_index(_NAMESPACE, namespace)

    def deployment_of(self, owned: ChangeWorkload | ReplicaSet) -> Deployment | None:
        """The Deployment that owns the object, if it exists and carries any version."""
        return _owner_in(self.deployments, owned.metadata)

    def replica_sets_of(self, deployment: Deployment) -> list[ReplicaSet]:
        return self.replica_sets.by_index(_OWNER, deployment.metadata.uid)

    def all_replica_sets_of(self, deployment: Deployment) -> list[ReplicaSet]:
        """Those that may have slipped past the gate as well."""
        uid = deployment.metadata.uid
        found = {replica_set.metadata.uid: replica_set for replica_set in self.unversioned.by_index(_OWNER, uid)}
        # one that was labelled a moment ago may still be in both
        found |= {replica_set.metadata.uid: replica_set for replica_set in self.replica_sets.by_index(_OWNER, uid)}
        return list(found.values())

    def replica_set_of(self, pod: Pod) -> ReplicaSet | None:
        return _owner_in(self.replica_sets, pod.metadata)

    def pods_of(self, deployment: Deployment, version: str) -> list[Pod]:
        """The Deployment's pods of one version."""
        return [
            pod
            for replica_set in self.replica_sets_of(deployment)
            if replica_set.version == version
            for pod in self.pods.by_index(_OWNER, replica_set.metadata.uid)
            if pod.version == version
        ]

    def change_workloads_of(self, deployment: Deployment) -> list[ChangeWorkload]:
        """Its records, and those of a namesake that was deleted with `--cascade=orphan`, whose ReplicaSets it has
        taken over as well."""
        orphans = f"{deployment.metadata.namespace}/{deployment.metadata.name}"
        return [
            *self.change_workloads.by_index(_OWNER, deployment.metadata.uid),
            *self.change_workloads.by_index(_ORPHANED, orphans),
        ]

    def change_pods_of(self, change_workload: ChangeWorkload) -> tuple[list[ChangePod], int]:
        """The ChangePods of a record, and the highest number that is taken."""
        metadata = change_workload.metadata
        series = self.change_pods.by_index(_SERIES, _series(metadata.namespace, metadata.name))
        highest = max((names.change_pod_number(record.metadata.name) for record in series), default=0)
        return [record for record in series if metadata.uid in _owner_uid(record.metadata)], highest


def current(change_workload: ChangeWorkload, deployment: Deployment | None) -> bool:
    """Whether the record is of the version that its Deployment says is released, and reset for this release.

    Records of other versions are history: they no longer change.
    """
    return (
        deployment is not None
        and deployment.metadata.deletion_timestamp is None
        and change_workload.metadata.deletion_timestamp is None
        and deployment.version == names.version_of(change_workload.metadata.name)
        and deployment.metadata.labels.get(labels.DEFENSE_STATUS) == labels.PROCESSED
    )


def deployment_owner(metadata: ObjectMeta) -> OwnerReference | None:
    """The Deployment that manages the object; None where something else does, or nothing."""
    owner = metadata.controller
    ours = owner is not None and (owner.api_version, owner.kind) == (DEPLOYMENTS.api_version, DEPLOYMENTS.kind)
    return owner if ours else None


def _owner_in(informer: Informer[Owner], owned: ObjectMeta) -> Owner | None:
    """The cached object that is the controller of the owned one."""
    reference = owned.controller
    if reference is None:
        return None
    found = informer.get(owned.namespace, reference.name)
    return found if found is not None and found.metadata.uid == reference.uid else None


def _owner_uid(metadata: ObjectMeta) -> tuple[str, ...]:
    owner = metadata.controller
    return () if owner is None else (owner.uid,)


def _series(namespace: str, change_workload: str) -> str:
    return f"{namespace}/{change_workload}"
