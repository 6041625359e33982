"""The scheduler: binds each pod without a node to the node that `placement` chooses."""

from fractions import Fraction

from kube_base.access.client import PatchType
from kube_base.access.errors import ConflictError, KubernetesError, NotFoundError
from kube_base.access.events import EventRecorder, ObjectRef
from kube_base.access.queue import WorkQueue
from kube_base.resources import NODES, PODS
from kube_base.times import rfc3339
from kube_sandbox.cluster.caches import Caches
from kube_sandbox.cluster.kinds import Node, Object, Pod, find
from kube_sandbox.cluster.scheduler import placement
from kube_sandbox.cluster.scheduler.placement import Load
from kube_sandbox.cluster.settings import SimulationSettings
from kube_sandbox.cluster.work import Key, work

NAME = "default-scheduler"


class Scheduler:
    def __init__(self, caches: Caches, settings: SimulationSettings, recorder: EventRecorder) -> None:
        self._client = caches.client
        self._clock = caches.clock
        self._pods = caches.pods
        self._nodes = caches.nodes
        self._delay = settings.scheduling
        self._recorder = recorder
        self._queue: WorkQueue[Key] = WorkQueue()
        self._placed: dict[str, tuple[str, Load]] = {}
        """By pod uid: its node and its requests. Set before the cache shows the binding."""
        self._loads: dict[str, Load] = {}
        """By node: the sum of the requests in `_placed`."""
        self._waiting: set[Key] = set()
        """Pods that no node can run."""
        caches.pods.add_handler(self._pod_changed)
        caches.nodes.add_handler(self._node_changed)

    async def run(self) -> None:
        await work(self._queue, self._schedule, workers=8)

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if new is None or new.ended:
            if old is not None:
                self._remove(old.metadata.uid)
                self._retry()
        elif new.spec.node_name:
            self._place(new, new.spec.node_name)
        elif old is None or old is new:
            self._queue.add_after(Key(new.metadata.namespace, new.metadata.name), self._delay)
        elif (
            old.spec != new.spec or old.metadata.labels != new.metadata.labels
        ):  # for example, a scheduling gate was removed
            self._queue.add(Key(new.metadata.namespace, new.metadata.name))

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        if old is None or new is None or old.spec != new.spec or old.metadata.labels != new.metadata.labels:
            self._retry()

    def _retry(self) -> None:
        for key in self._waiting:
            self._queue.add(key)

    def _place(self, pod: Pod, node: str) -> None:
        if pod.metadata.uid not in self._placed:
            load = placement.requests(pod)
            self._placed[pod.metadata.uid] = node, load
            self._add(node, load, 1)

    def _remove(self, uid: str) -> None:
        if uid in self._placed:
            node, load = self._placed.pop(uid)
            self._add(node, load, -1)

    def _add(self, node: str, load: Load, sign: int) -> None:
        present = self._loads.setdefault(node, {})
        for name, amount in load.items():
            present[name] = present.get(name, Fraction(0)) + sign * amount

    async def _schedule(self, key: Key) -> None:
        self._waiting.discard(key)
        pod = self._pods.get(*key)
        if pod is None or pod.spec.node_name or pod.metadata.uid in self._placed or not pod.active:
            return
        if pod.spec.scheduler_name != NAME or pod.spec.scheduling_gates:
            return
        nodes = self._nodes.all()
        node = placement.choose(pod, nodes, self._loads)
        if node is None:
            self._waiting.add(key)
            await self._report(pod, placement.explanation(pod, nodes, self._loads))
        else:
            await self._bind(pod, node)

    async def _bind(self, pod: Pod, node: str) -> None:
        metadata = pod.metadata
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": metadata.name, "namespace": metadata.namespace, "uid": metadata.uid},
            "target": {"apiVersion": "v1", "kind": NODES.kind, "name": node},
        }
        self._place(pod, node)
        try:
            await self._client.create(PODS, binding, metadata.namespace, name=metadata.name, subresource="binding")
        except (ConflictError, NotFoundError):  # bound elsewhere or deleted; the cache will show it
            self._remove(metadata.uid)
            return
        except KubernetesError:
            self._remove(metadata.uid)
            raise
        text = f"Successfully assigned {metadata.namespace}/{metadata.name} to {node}"
        self._recorder.event(ObjectRef.of(PODS, metadata), "Normal", "Scheduled", text)

    async def _report(self, pod: Pod, message: str) -> None:
        self._recorder.event(ObjectRef.of(PODS, pod.metadata), "Warning", "FailedScheduling", message)
        present = find(pod.status.conditions, "PodScheduled")
        if present and (present.reason, present.message) == ("Unschedulable", message):
            return
        condition: Object = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": message,
            "lastTransitionTime": rfc3339(self._clock()),
        }
        if pod.metadata.generation:
            condition["observedGeneration"] = pod.metadata.generation
        patch = {"metadata": {"uid": pod.metadata.uid}, "status": {"conditions": [condition]}}
        await self._client.patch(
            PODS, patch, pod.metadata.name, pod.metadata.namespace, subresource="status", type_=PatchType.STRATEGIC
        )
