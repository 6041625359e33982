"""The replicas of the workloads that own the pods of a PodDisruptionBudget."""

from collections.abc import Iterable

import msgspec

from kube_base.access.errors import NotFoundError
from kube_base.meta import OwnerReference
from kube_base.resources import Resource
from kube_sandbox.cluster.caches import Caches
from kube_sandbox.cluster.garbage.discovery import discover
from kube_sandbox.cluster.kinds import Object, Pod


class ScaleUnknownError(Exception):
    """The replicas of a pod's workload cannot be found."""


class Scales:
    """Deployments, ReplicaSets and StatefulSets are read from the caches, other kinds by their subresource `scale`."""

    def __init__(self, caches: Caches) -> None:
        self._client = caches.client
        self._deployments = caches.deployments
        self._replica_sets = caches.replica_sets
        self._stateful_sets = caches.stateful_sets
        self._kinds: dict[tuple[str, str], Resource] = {}

    async def sum(self, pods: Iterable[Pod]) -> int:
        """The replicas of all controllers of the pods. Pods without a controller are not counted. Raises
        ScaleUnknownError if the controller of a pod does not exist or has no replicas."""
        found: dict[str, int] = {}
        for pod in pods:
            owner = pod.metadata.controller
            if owner is None or owner.uid in found:
                continue
            scale = self._cached(owner, pod.metadata.namespace) or await self._read(owner, pod.metadata.namespace)
            if scale is None:
                raise ScaleUnknownError(f'found no controllers for pod "{pod.metadata.name}"')
            found[scale[0]] = scale[1]
        return sum(found.values())

    def _cached(self, owner: OwnerReference, namespace: str) -> tuple[str, int] | None:
        """The uid and the replicas of the owner; for a ReplicaSet of a Deployment, those of the Deployment."""
        if owner.kind == "StatefulSet" and _group(owner) == "apps":
            stateful_set = self._stateful_sets.get(namespace, owner.name)
            if stateful_set is not None and stateful_set.metadata.uid == owner.uid:
                return owner.uid, stateful_set.spec.replicas
        if owner.kind != "ReplicaSet" or _group(owner) != "apps":
            return None
        replica_set = self._replica_sets.get(namespace, owner.name)
        if replica_set is None or replica_set.metadata.uid != owner.uid:
            return None
        above = replica_set.metadata.controller
        if above is None or above.kind != "Deployment":
            return owner.uid, replica_set.spec.replicas
        deployment = self._deployments.get(namespace, above.name)
        if deployment is None or deployment.metadata.uid != above.uid:
            return None
        return above.uid, deployment.spec.replicas

    async def _read(self, owner: OwnerReference, namespace: str) -> tuple[str, int] | None:
        resource = await self._resource(owner)
        path = resource.path(namespace, owner.name, "scale")
        try:
            scale: Object = msgspec.json.decode(await self._client.request("GET", path))
        except NotFoundError:
            try:
                await self._client.get(resource, owner.name, namespace)
            except NotFoundError:
                return None
            name = f"{resource.plural}.{resource.group}" if resource.group else resource.plural
            raise ScaleUnknownError(f"{name} does not implement the scale subresource") from None
        if scale["metadata"]["uid"] != owner.uid:
            return None
        return owner.uid, (scale.get("spec") or {}).get("replicas", 0)

    async def _resource(self, owner: OwnerReference) -> Resource:
        key = (_group(owner), owner.kind)
        if key not in self._kinds:
            self._kinds = {(one.group, one.kind): one for one in await discover(self._client)}
        if key not in self._kinds:
            version = owner.api_version.rpartition("/")[2]
            raise ScaleUnknownError(f'no matches for kind "{owner.kind}" in version "{key[0]}/{version}"')
        return self._kinds[key]


def _group(owner: OwnerReference) -> str:
    return owner.api_version.rpartition("/")[0]
