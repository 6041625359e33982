"""The namespace controller: deletes the content of terminating namespaces, then removes their finalizer."""

from kube_sandbox.client.errors import ConflictError, NotFoundError
from kube_sandbox.client.queue import WorkQueue
from kube_sandbox.client.resources import NAMESPACES, Resource
from kube_sandbox.cluster.caches import Caches
from kube_sandbox.cluster.garbage.discovery import discover
from kube_sandbox.cluster.kinds import Bare, Object
from kube_sandbox.cluster.work import NotYet, work

_FINALIZER = "kubernetes"
_HEAD_START = 0.5
"""Seconds before the content is deleted. Until then, clients inside the namespace can still use their service accounts
to react to its deletion. Kubernetes waits 5 seconds."""


class Namespaces:
    def __init__(self, caches: Caches) -> None:
        self._client = caches.client
        self._namespaces = caches.namespaces
        self._queue: WorkQueue[str] = WorkQueue()
        caches.namespaces.add_handler(self._changed)

    async def run(self) -> None:
        await work(self._queue, self._empty, workers=4)

    def _changed(self, old: Bare | None, new: Bare | None) -> None:
        if new is not None and new.metadata.deletion_timestamp is not None:
            self._queue.add_after(new.metadata.name, _HEAD_START)

    async def _empty(self, name: str) -> None:
        if self._namespaces.get("", name) is None:
            return
        left = 0
        for resource, verbs in (await discover(self._client)).items():
            if resource.namespaced and {"list", "delete"} <= verbs:
                left += await self._delete_all(resource, name, at_once="deletecollection" in verbs)
        if left:
            raise NotYet(f"the namespace {name} still has {left} objects")
        namespace: Object = await self._client.get(NAMESPACES, name)
        kept = [one for one in namespace["spec"].get("finalizers", ()) if one != _FINALIZER]
        namespace["spec"]["finalizers"] = kept
        await self._client.replace(NAMESPACES, namespace, name, subresource="finalize")

    async def _delete_all(self, resource: Resource, namespace: str, *, at_once: bool) -> int:
        """Delete all objects of the resource; returns how many existed before."""
        found = (await self._client.list(resource, namespace, as_=Bare)).items
        alive = [obj.metadata for obj in found if obj.metadata.deletion_timestamp is None]
        if alive and at_once:
            await self._client.request("DELETE", resource.path(namespace))
        else:
            for metadata in alive:
                try:
                    await self._client.delete(resource, metadata.name, namespace, uid=metadata.uid)
                except (NotFoundError, ConflictError):
                    continue
        return len(found)
