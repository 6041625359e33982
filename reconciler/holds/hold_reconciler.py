"""Controller: gives workloads that are held in steps their own fields back, if AlterShield does not hold them any more.

These are the workloads in namespaces that are not governed any more, and all workloads while the setting `rollout` is
off. No gatekeeper may be called for these writes, so they carry the user's own values themselves.
"""

import logging

import msgspec

from altershield.api.annotations import ROLLOUT
from altershield.api.json_patch import Operation, at_version
from altershield.workloads import BY_KIND, held, held_managers
from altershield.workloads.adapter import Adapter, Object
from kube_base.access.bodies import decode
from kube_base.access.client import Client
from kube_base.access.errors import NotFoundError
from kube_base.access.queue import WorkQueue
from kube_base.access.time_slices import time_slices
from kube_base.meta import ObjectMeta
from reconciler.cluster.caches import Caches
from reconciler.cluster.ownership import WorkloadKey
from reconciler.cluster.writer import Writer

logger = logging.getLogger(__name__)


class HoldReconciler:
    """Its keys are those of workloads. A key without a name stands for all workloads of its kind."""

    def __init__(self, client: Client, caches: Caches, writer: Writer, queue: WorkQueue[WorkloadKey]) -> None:
        self._client = client
        self._caches = caches
        self._writer = writer
        self._queue = queue

    def lets_go(self, namespace: str) -> bool:
        """Whether no workload of this namespace is held in steps."""
        return not self._caches.governed(namespace) or not self._caches.in_effect().rollout

    async def reconcile(self, key: WorkloadKey) -> float | None:
        """End the hold of the workload, and remove AlterShield's entries about its fields. ConflictError: it has
        changed meanwhile."""
        if not key.name:
            await self._find(key)
            return None
        if not self.lets_go(key.namespace):
            return None
        adapter = BY_KIND[key.kind]
        raw = await self._read(adapter, key)
        if raw is not None and (operations := held.restoration(adapter, raw)):
            raw = await self._write(adapter, raw, operations)
            why = (
                "the setting rollout is off"
                if self._caches.governed(key.namespace)
                else "its namespace is not governed"
            )
            where = f"{adapter.resource.kind} {key.namespace}/{key.name}"
            logger.info("ended the hold of a workload", extra={"object": where, "cause": why})
        if raw is not None and (entries := held_managers.left(raw, adapter.held_fields)) is not None:
            await self._write(adapter, raw, [{"op": "replace", "path": "/metadata/managedFields", "value": entries}])
        return None

    async def _find(self, key: WorkloadKey) -> None:
        """Queue the workloads of the kind that an earlier leader has not let go of. The caches do not have those of
        other namespaces."""
        adapter, slices = BY_KIND[key.kind], time_slices()
        try:
            async for page in self._client.pages(adapter.resource, metadata_only=True):
                for item in page.items:
                    raw = msgspec.json.decode(item)
                    metadata = raw["metadata"]
                    is_held = ROLLOUT in (metadata.get("annotations") or {})
                    is_left = is_held or held_managers.left(raw, adapter.held_fields) is not None
                    if is_left and self.lets_go(metadata["namespace"]):
                        self._queue.add(key._replace(namespace=metadata["namespace"], name=metadata["name"]))
                    await slices.yield_if_over()
        except NotFoundError:
            return  # the cluster does not have this kind

    async def _read(self, adapter: Adapter, key: WorkloadKey) -> Object | None:
        try:
            return await self._client.get(adapter.resource, key.name, key.namespace)
        except NotFoundError:
            return None

    async def _write(self, adapter: Adapter, raw: Object, operations: list[Operation]) -> Object:
        metadata = msgspec.convert(raw["metadata"], ObjectMeta)
        guarded = [at_version(metadata.resource_version), *operations]
        return decode(await self._writer.patch_uncached(adapter.resource, metadata, guarded), Object)
