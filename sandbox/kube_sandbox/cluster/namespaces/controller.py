"""The namespace controller: deletes the content of terminating namespaces, then removes their finalizer.

As in `pkg/controller/namespace/deletion`, it deletes the pods first. Then it waits until they are gone, unless their
deletion was refused, and deletes all other objects. Each resource is deleted as a collection. A refused deletion is
reported in the conditions of the namespace and repeated.
"""

import contextlib

from kube_base.access.errors import ConflictError, KubernetesError, NotFoundError
from kube_base.access.queue import WorkQueue
from kube_base.resources import NAMESPACES, PODS, Resource
from kube_base.times import rfc3339
from kube_sandbox.cluster.caches import Caches
from kube_sandbox.cluster.garbage.discovery import discover
from kube_sandbox.cluster.kinds import Bare, Object
from kube_sandbox.cluster.namespaces import conditions
from kube_sandbox.cluster.namespaces.conditions import Outcome
from kube_sandbox.cluster.work import work

_FINALIZER = "kubernetes"
_HEAD_START = 0.5
"""Seconds before the content is deleted. Until then, clients inside the namespace can still use their service accounts
to react to its deletion. Kubernetes waits 5 seconds."""
_FIRST_DELAY, _LAST_DELAY = 0.02, 4.0
"""Seconds between attempts, while content remains; the delay doubles. In Kubernetes, it is 8 s for content with
finalizers."""
_BACKGROUND = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}


class Namespaces:
    def __init__(self, caches: Caches) -> None:
        self._client = caches.client
        self._clock = caches.clock
        self._namespaces = caches.namespaces
        self._queue: WorkQueue[str] = WorkQueue()
        self._delays: dict[str, float] = {}
        caches.namespaces.add_handler(self._changed)

    async def run(self) -> None:
        await work(self._queue, self._empty, workers=4)

    def _changed(self, old: Bare | None, new: Bare | None) -> None:
        if new is None:
            self._delays.pop(old.metadata.name if old else "", None)
        elif new.metadata.deletion_timestamp and (old is None or not old.metadata.deletion_timestamp):
            self._queue.add_after(new.metadata.name, _HEAD_START)

    async def _empty(self, name: str) -> None:
        with contextlib.suppress(NotFoundError):
            namespace: Object = await self._client.get(NAMESPACES, name)
            if not namespace["metadata"].get("deletionTimestamp") or not namespace["spec"].get("finalizers"):
                return
            outcome = Outcome()
            await self._delete_all(PODS, name, outcome, collection=True)
            only_pods = bool(outcome.remaining)
            if not only_pods:
                for resource, verbs in (await discover(self._client)).items():
                    if resource.namespaced and resource != PODS and {"list", "delete"} <= verbs:
                        await self._delete_all(resource, name, outcome, collection="deletecollection" in verbs)
            if outcome.remaining or outcome.errors:
                await self._report(namespace, outcome, only_pods=only_pods)
                delay = self._delays.get(name, _FIRST_DELAY)
                self._delays[name] = min(2 * delay, _LAST_DELAY)
                self._queue.add_after(name, delay)
                return
            namespace["spec"]["finalizers"] = [one for one in namespace["spec"]["finalizers"] if one != _FINALIZER]
            await self._client.replace(NAMESPACES, namespace, name, subresource="finalize")

    async def _delete_all(self, resource: Resource, namespace: str, outcome: Outcome, *, collection: bool) -> None:
        """Delete all objects of the resource. Adds the remaining objects or the error to `outcome`. As in
        Kubernetes, objects whose deletion was refused do not count as remaining. So refused pods do not delay the
        deletion of the other content."""
        found = (await self._client.list(resource, namespace, as_=Bare)).items
        if not found:
            return
        try:
            if collection:
                await self._client.request("DELETE", resource.path(namespace), body=_BACKGROUND)
            else:
                for obj in found:
                    with contextlib.suppress(NotFoundError, ConflictError):
                        name = obj.metadata.name
                        await self._client.delete(resource, name, namespace, propagation="Background")
        except KubernetesError as error:
            outcome.errors.append(str(error))
            return
        found = (await self._client.list(resource, namespace, as_=Bare)).items
        if found:
            outcome.remaining[resource] = len(found)
        for obj in found:
            for finalizer in obj.metadata.finalizers:
                outcome.finalizers[finalizer] = outcome.finalizers.get(finalizer, 0) + 1

    async def _report(self, namespace: Object, outcome: Outcome, *, only_pods: bool) -> None:
        status = namespace.get("status") or {}
        before = status.get("conditions") or []
        wanted = conditions.conditions(before, outcome, rfc3339(self._clock()), only_pods=only_pods)
        if wanted == before:
            return
        namespace["status"] = {**status, "conditions": wanted}
        with contextlib.suppress(ConflictError):
            written: Object = await self._client.replace(
                NAMESPACES, namespace, namespace["metadata"]["name"], subresource="status"
            )
            namespace["metadata"] = written["metadata"]
