"""The node lifecycle controller: taints nodes that are not ready, marks their pods as not ready, and evicts these pods.
It is also the pod garbage collector, which removes the pods of deleted nodes. `health` has the rules."""

import asyncio
import contextlib

import msgspec

from kube_base.access.client import PatchType
from kube_base.access.errors import ApiError, ConflictError, NotFoundError
from kube_base.access.events import EventRecorder, ObjectRef
from kube_base.access.queue import WorkQueue
from kube_base.resources import NODES, PODS
from kube_sandbox.cluster import users
from kube_sandbox.cluster.caches import NODE, Caches
from kube_sandbox.cluster.kinds import Node, Object, Pod
from kube_sandbox.cluster.nodes import health
from kube_sandbox.cluster.settings import SimulationSettings
from kube_sandbox.cluster.work import work

_TRIES, _PAUSE = 5, 0.01  # attempts to delete an evicted pod, and the seconds between them


class NodeLifecycle:
    def __init__(self, caches: Caches, settings: SimulationSettings, recorder: EventRecorder) -> None:
        self._client = caches.client
        self._clock = caches.clock
        self._nodes = caches.nodes
        self._pods = caches.pods
        self._settings = settings
        self._recorder = recorder
        self._queue: WorkQueue[str] = WorkQueue()
        self._since: dict[str, float] = {}
        """By node: the time of the event loop since which the kubelet does not respond or the node does not exist."""
        self._refused: dict[str, Object] = {}
        """By uid: pods whose deletion was refused, with the cause of their eviction."""
        caches.nodes.add_handler(self._node_changed)
        caches.pods.add_handler(self._pod_changed)

    async def run(self) -> None:
        await work(self._queue, self._reconcile, workers=4)

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        node = new or old
        if node is not None:
            self._queue.add(node.metadata.name)

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        """Queue the node of a pod, unless the node is healthy."""
        if new is None and old is not None:
            self._refused.pop(old.metadata.uid, None)
        if new is None or not new.spec.node_name:
            return
        node = self._nodes.get("", new.spec.node_name)
        if node is None or not health.is_ready(node) or health.repels(node):
            self._queue.add(new.spec.node_name)

    async def _reconcile(self, name: str) -> None:
        node = self._nodes.get("", name)
        if node is None:
            if self._waited(name, self._settings.pod_gc):
                await self._collect(name)
            return
        if health.kubelet(node) == health.DOWN:
            if not self._waited(name, self._settings.node_grace):
                return
            if conditions := health.silent_conditions(node, self._clock()):
                node = await self._write_conditions(node, conditions)
        else:
            self._since.pop(name, None)
        node = await self._taint(node)
        pods = self._pods.by_index(NODE, name)
        if not health.is_ready(node):
            await self._mark(pods)
        if health.repels(node):
            await self._evict(node, pods)

    def _waited(self, name: str, seconds: float) -> bool:
        now = asyncio.get_running_loop().time()
        left = self._since.setdefault(name, now) + seconds - now
        if left > 0:
            self._queue.add_after(name, left)
        return left <= 0

    async def _write_conditions(self, node: Node, conditions: list[Object]) -> Node:
        name = node.metadata.name
        text = f"Node {name} status is now: NodeNotReady"
        self._recorder.event(ObjectRef.of(NODES, node.metadata), "Normal", "NodeNotReady", text)
        patch = {"status": {"conditions": conditions}}
        return await self._nodes.patch(patch, name, subresource="status", type_=PatchType.STRATEGIC)

    async def _taint(self, node: Node) -> Node:
        wanted = health.taints(node, self._clock())
        if {(one.key, one.effect) for one in wanted} == {(one.key, one.effect) for one in node.spec.taints}:
            return node
        patch = {
            "metadata": {"resourceVersion": node.metadata.resource_version},
            "spec": {"taints": [msgspec.to_builtins(taint) for taint in wanted]},
        }
        return await self._nodes.patch(patch, node.metadata.name)

    async def _mark(self, pods: list[Pod]) -> None:
        for pod in health.to_mark(pods):
            await self._patch_status(pod, health.unready_patch(pod, self._clock()))
            self._recorder.event(ObjectRef.of(PODS, pod.metadata), "Warning", "NodeNotReady", "Node is not ready")

    async def _evict(self, node: Node, pods: list[Pod]) -> None:
        now = self._clock()
        for pod, at in health.evictions(node, pods, self._settings.eviction):
            if self._refused.get(pod.metadata.uid) == health.eviction_cause(node, pod):
                continue
            if at > now:
                self._queue.add_after(node.metadata.name, at - now)
                continue
            text = f"Marking for deletion Pod {pod.metadata.namespace}/{pod.metadata.name}"
            self._recorder.event(ObjectRef.of(PODS, pod.metadata), "Normal", "TaintManagerEviction", text)
            await self._delete(node, pod)

    async def _delete(self, node: Node, pod: Pod) -> None:
        """Delete an evicted pod. As in Kubernetes, a refused deletion is repeated at once and then never again, until
        the taints of the node or the tolerations of the pod change."""
        metadata, patch = pod.metadata, health.evicted_patch(pod, self._clock())
        for _ in range(_TRIES):
            try:
                await self._patch_status(pod, patch)
                await self._client.delete(PODS, metadata.name, metadata.namespace, uid=metadata.uid)
            except (NotFoundError, ConflictError):
                return
            except ApiError:
                await asyncio.sleep(_PAUSE)
            else:
                return
        self._refused[pod.metadata.uid] = health.eviction_cause(node, pod)

    async def _collect(self, name: str) -> None:
        """Remove the pods of a deleted node: no kubelet does it."""
        user = users.controller(users.POD_GARBAGE_COLLECTOR, self._settings)
        with users.acting_as(user):
            for pod in self._pods.by_index(NODE, name):
                await self._patch_status(pod, health.collected_patch(pod, self._clock()))
                with contextlib.suppress(NotFoundError, ConflictError):
                    metadata = pod.metadata
                    await self._client.delete(PODS, metadata.name, metadata.namespace, uid=metadata.uid, grace=0)

    async def _patch_status(self, pod: Pod, patch: Object) -> None:
        with contextlib.suppress(NotFoundError, ConflictError):
            name, namespace = pod.metadata.name, pod.metadata.namespace
            await self._pods.patch(patch, name, namespace, subresource="status", type_=PatchType.STRATEGIC)
