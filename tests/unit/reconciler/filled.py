"""Caches without an API server, and the objects that tests put into them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from altershield.api import labels, names
from altershield.api.namespace import Namespace
from altershield.api.ops_config import BLOCKING
from altershield.api.ops_config_info import OpsConfigInfo
from altershield.api.policy import DefensePolicy
from altershield.api.resources import CHANGE_WORKLOADS
from altershield.workloads import sets
from altershield.workloads.nodes import Node
from altershield.workloads.pods import Pod
from altershield.workloads.sets import Set
from altershield.workloads.workload import Workload
from kube_base.access.client import Client
from kube_base.access.configuration import Configuration
from kube_base.access.informer import Informer
from reconciler.cluster import batch, writer
from reconciler.cluster import release as projection
from reconciler.cluster.batch import Batch
from reconciler.cluster.caches import Caches
from reconciler.cluster.release import Release
from reconciler.manager import SUBJECTS
from tests.unit.altershield.releases import builders
from tests.unit.altershield.releases.builders import V1
from tests.unit.altershield.workloads import objects

Object = dict[str, Any]
GOVERNED = {labels.GOVERNED: labels.GOVERNED_VALUE}


@asynccontextmanager
async def empty_caches() -> AsyncIterator[Caches]:
    async with Client(Configuration(host="http://127.0.0.1")) as client:
        yield Caches(client, names.SYSTEM_NAMESPACE, watches=[each for subject in SUBJECTS for each in subject.watches])


def namespace(name: str = "default", version: int = 1, *, governed: bool = True, **metadata: Any) -> Namespace:
    own = {"name": name, "resourceVersion": str(version), "labels": GOVERNED if governed else {}, **metadata}
    return msgspec.convert({"metadata": own}, Namespace)


def setting(version: int = 1, *, name: str = BLOCKING, status: Object | None = None, **spec: Any) -> OpsConfigInfo:
    metadata = {"name": name, "namespace": names.SYSTEM_NAMESPACE, "resourceVersion": str(version)}
    metadata |= {"creationTimestamp": "2026-08-21T07:29:49Z"}
    spec = {"type": "isBlockingUp", "enable": True, **spec}
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": status or {}}, OpsConfigInfo)


def replica_set(
    version: int = 1,
    *,
    name: str = "sleep-1",
    workload: str = "sleep",
    uid: str = "",
    namespace: str = "default",
    owner: Object | None = None,
) -> Set:
    """A ReplicaSet of the Deployment `workload`, whose uid is its name. `owner` changes the owner reference."""
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "name": workload, "uid": workload, "controller": True}
    metadata = {"name": name, "namespace": namespace, "uid": uid or name, "resourceVersion": str(version)}
    body = {"metadata": {**metadata, "ownerReferences": [deployment | (owner or {})]}}
    return sets.read(msgspec.json.encode(body))


def pod(version: int = 1, *, name: str = "sleep-1-a", namespace: str = "default", owner: Object | None = None) -> Pod:
    """A pod of the ReplicaSet sleep-1. `owner` changes the owner reference."""
    parent = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "sleep-1", "uid": "sleep-1", "controller": True}
    metadata = {"name": name, "namespace": namespace, "uid": f"{name}-uid", "resourceVersion": str(version)}
    return objects.pod(**metadata, ownerReferences=[parent | (owner or {})])


def newer(obj: Any, at: int = 2, **changes: Any) -> Any:
    """The object with these fields, at this resourceVersion."""
    if isinstance(obj, Set):
        return msgspec.structs.replace(obj, identity=sets.identity(obj.uid, str(at), obj.version), **changes)
    packed = "packed_version" in obj.metadata.__struct_fields__
    version: Object = {"packed_version": at} if packed else {"resource_version": str(at)}
    if obj.metadata is obj:  # a Batch is its own metadata
        return msgspec.structs.replace(obj, **version, **changes)
    return msgspec.structs.replace(obj, metadata=msgspec.structs.replace(obj.metadata, **version), **changes)


def release(version: str = V1, *, name: str = "sleep", **more: Any) -> Release:
    return projection.read(msgspec.json.encode(builders.release(version, name=name, **more)))


def change_pod(number: int = 1) -> Batch:
    """A batch of the Deployment `sleep` at V1."""
    made, own = builders.change_pod(number, "sleep-1-a"), release()
    owner = writer.owner(CHANGE_WORKLOADS, own.metadata)
    metadata = msgspec.structs.replace(made.metadata, resource_version="1", owner_references=(owner,))
    return batch.read(msgspec.json.encode(msgspec.structs.replace(made, metadata=metadata)))


def put(caches: Caches, *objs: Any) -> None:
    """Put these objects into their caches."""
    for obj in objs:
        informer_of(caches, obj).observe(obj)


def remove(caches: Caches, obj: Any, version: int = 99) -> None:
    """Delete the object from its cache, as a watch event does."""
    cache = informer_of(caches, obj)._cache
    cache.drop((obj.metadata.namespace, obj.metadata.name), version)


def informer_of(caches: Caches, obj: Any) -> Informer[Any]:
    match obj:
        case Namespace():
            return caches.namespaces
        case OpsConfigInfo():
            return caches.settings
        case Workload():
            return caches.workloads[obj.group_kind]
        case Set():
            return caches.informer_of(obj)
        case Pod():
            return caches.pods
        case Node():
            return caches.nodes
        case Release():
            return caches.releases
        case Batch():
            return caches.batches
        case DefensePolicy():
            return caches.policies
    raise TypeError(f"no informer for {obj!r}")
