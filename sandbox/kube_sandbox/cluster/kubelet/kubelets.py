"""The kubelets of all simulated nodes. They write the status that `lifecycle` computes for each pod, and remove pods
that are being deleted."""

import asyncio
import contextlib
import ipaddress
from collections import defaultdict

from kube_base.access.client import PatchType
from kube_base.access.errors import ConflictError, NotFoundError
from kube_base.access.events import EventRecorder, ObjectRef
from kube_base.access.queue import WorkQueue
from kube_base.resources import PODS
from kube_sandbox.cluster import users
from kube_sandbox.cluster.caches import NODE, Caches
from kube_sandbox.cluster.kinds import Node, Pod
from kube_sandbox.cluster.kubelet import images, lifecycle, pod_states, pressure, resizing
from kube_sandbox.cluster.nodes import health
from kube_sandbox.cluster.nodes import registration as nodes
from kube_sandbox.cluster.settings import SimulationSettings
from kube_sandbox.cluster.work import Key, work

_FIRST_POD_IP = ipaddress.IPv4Address("10.244.0.1")
_POD_IPS = 2**18


class Kubelets:
    def __init__(self, caches: Caches, settings: SimulationSettings, recorder: EventRecorder) -> None:
        self._client = caches.client
        self._clock = caches.clock
        self._pods = caches.pods
        self._settings = settings
        self._recorder = recorder
        self._queue: WorkQueue[Key] = WorkQueue()
        self._nodes = caches.nodes
        self._own = frozenset(nodes.names(settings))
        self._images: defaultdict[str, set[str]] = defaultdict(set)
        """The pulled images by node."""
        self._since: dict[str, dict[str, tuple[str, float]]] = {}
        """By pod uid and container: its state, and the time of the event loop when the kubelet first saw that state.
        After a restart of this process, each container starts its current state again."""
        self._ips: dict[str, str] = {}  # by pod uid
        self._taken: set[str] = set()
        self._next_ip = 0
        caches.pods.add_handler(self._pod_changed)
        caches.nodes.add_handler(self._node_changed)

    async def run(self) -> None:
        await work(self._queue, self._sync, workers=16)

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if old is not None and (new is None or old.metadata.uid != new.metadata.uid):
            self._since.pop(old.metadata.uid, None)
            self._taken.discard(self._ips.pop(old.metadata.uid, ""))
        if new is not None and self._is_simulated(new):
            if new.status.pod_ip:
                self._taken.add(self._ips.setdefault(new.metadata.uid, new.status.pod_ip))
            self._queue.add(Key(new.metadata.namespace, new.metadata.name))

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        """When a kubelet works again, it syncs all its pods."""
        if new is not None and (old is None or health.kubelet(old) != health.kubelet(new)):
            for pod in self._pods.by_index(NODE, new.metadata.name):
                self._queue.add(Key(pod.metadata.namespace, pod.metadata.name))

    def _is_simulated(self, pod: Pod) -> bool:
        """Whether the node of the pod is simulated."""
        name = pod.spec.node_name
        node = self._nodes.get("", name)
        return name in self._own or (node is not None and health.KUBELET in node.metadata.annotations)

    async def _sync(self, key: Key) -> None:
        pod = self._pods.get(*key)
        if pod is None or not self._is_simulated(pod) or not health.works(self._nodes.get("", pod.spec.node_name)):
            return
        users.become(users.kubelet(pod.spec.node_name))
        if pod.metadata.deletion_timestamp is not None:
            await self._terminate(key, pod)
        elif resource := pressure.resource_pressure(pod):
            await self._evict(key, pod, resource)
        elif not pod.ended:
            await self._advance(key, pod)

    async def _advance(self, key: Key, pod: Pod) -> None:
        uid, name = pod.metadata.uid, pod.spec.node_name
        ages = {container: self._age(uid, container, state) for container, state in lifecycle.states(pod).items()}
        shortage = self._shortage(pod) if resizing.pending(pod) else ""
        node = pod_states.Node(nodes.internal_ip(name), self._pod_ip(pod), self._images[name], shortage)
        step = lifecycle.advance(pod, ages, node, self._settings, self._clock())
        if step.status is not None:
            # With the version, because a pod that has ended meanwhile stays ended.
            patch = {"metadata": {"uid": uid, "resourceVersion": pod.metadata.resource_version}, "status": step.status}
            try:
                written = await self._pods.patch(
                    patch, key.name, key.namespace, subresource="status", type_=PatchType.STRATEGIC
                )
            except (NotFoundError, ConflictError):  # deleted, replaced or changed; the cache will show it
                return
            run = {str(status["image"]) for status in written.status.container_statuses if status.get("imageID")}
            self._images[name] |= {one.image for one in pod.spec.containers if images.full_reference(one.image) in run}
        for event in step.events:
            about = ObjectRef.of(PODS, pod.metadata, _field_path(pod, event.container))
            type_ = "Warning" if event.warning else "Normal"
            self._recorder.event(about, type_, event.reason, event.message)
        if step.wait is not None:
            self._queue.add_after(key, step.wait)

    async def _evict(self, key: Key, pod: Pod, resource: str) -> None:
        about = ObjectRef.of(PODS, pod.metadata)
        self._recorder.event(about, "Warning", pressure.REASON, pressure.message(resource))
        patch = {"metadata": {"uid": pod.metadata.uid}, "status": pressure.status(pod, resource, self._clock())}
        with contextlib.suppress(NotFoundError, ConflictError):
            type_ = PatchType.STRATEGIC
            await self._pods.patch(patch, key.name, key.namespace, subresource="status", type_=type_)

    def _shortage(self, pod: Pod) -> str:
        """The message about the resource that the node lacks for a resize of the pod; empty if it lacks none."""
        name = pod.spec.node_name
        node = self._nodes.get("", name)
        other_pods = (one for one in self._pods.by_index(NODE, name) if one.metadata.uid != pod.metadata.uid)
        return resizing.shortage(pod, other_pods, node.status.allocatable if node else {})

    async def _terminate(self, key: Key, pod: Pod) -> None:
        """Wait for `SimulationSettings.termination` or the grace period, whichever is shorter, then remove the pod."""
        grace = pod.metadata.deletion_grace_period_seconds
        if grace == 0:  # the kubelet has removed it, but finalizers still block the deletion
            return
        age = self._age(pod.metadata.uid, "", "terminating")
        if age == 0 and not pod.ended:
            for container in pod.spec.containers:
                about = ObjectRef.of(PODS, pod.metadata, _field_path(pod, container.name))
                text = f"Stopping container {container.name}"
                self._recorder.event(about, "Normal", "Killing", text)
        termination = 0.0 if pod.ended else min(self._settings.termination, grace or 0)
        if (left := termination - age) > 0:
            self._queue.add_after(key, left)
            return
        with contextlib.suppress(NotFoundError, ConflictError):
            await self._client.delete(PODS, key.name, key.namespace, uid=pod.metadata.uid, grace=0)

    def _age(self, uid: str, container: str, state: str) -> float:
        """Seconds since the kubelet first saw `container` in `state`; 0 for the first time."""
        now = asyncio.get_running_loop().time()
        seen = self._since.setdefault(uid, {})
        if container not in seen or seen[container][0] != state:
            seen[container] = state, now
        return now - seen[container][1]

    def _pod_ip(self, pod: Pod) -> str:
        uid = pod.metadata.uid
        while uid not in self._ips:
            address = str(_FIRST_POD_IP + self._next_ip)
            self._next_ip = (self._next_ip + 1) % _POD_IPS
            if address not in self._taken:
                self._taken.add(address)
                self._ips[uid] = address
        return self._ips[uid]


def _field_path(pod: Pod, container: str) -> str:
    """The part of the pod that an Event about this container names; empty if the Event is about the whole pod."""
    if not container:
        return ""
    is_init = any(one.name == container for one in pod.spec.init_containers)
    return f"spec.{'initContainers' if is_init else 'containers'}{{{container}}}"
