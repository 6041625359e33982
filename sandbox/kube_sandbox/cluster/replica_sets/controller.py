"""The ReplicaSet controller: as many pods as each ReplicaSet wants. What to delete and the status are decided by
`replicas`."""

from collections.abc import Iterable, Sequence

from kube_sandbox.client.errors import KubernetesError
from kube_sandbox.client.events import EventRecorder
from kube_sandbox.client.queue import WorkQueue
from kube_sandbox.client.resources import REPLICA_SETS
from kube_sandbox.cluster import availability, selectors
from kube_sandbox.cluster.caches import OWNER, Caches, status_patch
from kube_sandbox.cluster.pod_control import PodControl, in_batches, pod_body
from kube_sandbox.cluster.replica_sets import replicas
from kube_sandbox.cluster.views import Pod, ReplicaSet
from kube_sandbox.cluster.work import Key, work

_BURST = 500  # pods created or deleted in one go
_MAX_PREFIX = 253


class ReplicaSets:
    def __init__(self, caches: Caches, recorder: EventRecorder) -> None:
        self._client = caches.client
        self._clock = caches.clock
        self._replica_sets = caches.replica_sets
        self._pods = caches.pods
        self._control = PodControl(caches, recorder, REPLICA_SETS)
        self._queue: WorkQueue[Key] = WorkQueue()
        caches.replica_sets.add_handler(self._replica_set_changed)
        caches.pods.add_handler(self._pod_changed)

    async def run(self) -> None:
        await work(self._queue, self._reconcile, workers=8)

    def _replica_set_changed(self, old: ReplicaSet | None, new: ReplicaSet | None) -> None:
        if new is not None:
            self._queue.add(Key(new.metadata.namespace, new.metadata.name))

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        for pod in (old, new):
            if pod is None:
                continue
            if (owner := pod.metadata.controller) is not None:
                if owner.kind == REPLICA_SETS.kind:
                    self._queue.add(Key(pod.metadata.namespace, owner.name))
                continue
            for rs in self._replica_sets.all():  # an orphan: somebody may want it
                if rs.metadata.namespace == pod.metadata.namespace and selectors.matches(
                    rs.spec.selector, pod.metadata.labels
                ):
                    self._queue.add(Key(rs.metadata.namespace, rs.metadata.name))

    async def _reconcile(self, key: Key) -> None:
        rs = self._replica_sets.get(*key)
        if rs is None:
            return
        active = [pod for pod in await self._control.claim(rs.metadata, rs.spec.selector) if pod.active]
        error: KubernetesError | None = None
        if rs.metadata.deletion_timestamp is None:
            try:
                if len(active) < rs.spec.replicas:
                    await self._create(rs, min(rs.spec.replicas - len(active), _BURST))
                elif len(active) > rs.spec.replicas:
                    await self._delete(rs, active, min(len(active) - rs.spec.replicas, _BURST))
            except KubernetesError as caught:
                error = caught
        await self._write_status(key, error)
        if error is not None:
            raise error

    async def _create(self, rs: ReplicaSet, count: int) -> None:
        prefix = f"{rs.metadata.name}-"[:_MAX_PREFIX]
        body = pod_body(rs.spec.template, REPLICA_SETS, rs.metadata, generateName=prefix)

        async def create() -> None:
            await self._control.create(rs.metadata, body)

        await in_batches([create] * count)

    async def _delete(self, rs: ReplicaSet, active: Sequence[Pod], count: int) -> None:
        doomed = replicas.to_delete(active, self._related(rs), count, self._clock())
        await self._control.delete_all(rs.metadata, doomed)

    def _related(self, rs: ReplicaSet) -> Iterable[Pod]:
        """The pods of all ReplicaSets with the same controller."""
        owner = rs.metadata.controller
        family = self._replica_sets.by_index(OWNER, owner.uid) if owner else [rs]
        return [pod for member in family for pod in self._pods.by_index(OWNER, member.metadata.uid)]

    async def _write_status(self, key: Key, error: KubernetesError | None) -> None:
        """From the caches as they are by now: what was just created counts, what was just deleted does not."""
        rs = self._replica_sets.get(*key)
        if rs is None:
            return
        now = self._clock()
        pods = self._control.owned(rs.metadata, rs.spec.selector)
        active = [pod for pod in pods if pod.active]
        terminating = sum(not pod.ended for pod in pods) - len(active)
        status = replicas.status(rs, active, terminating, str(error) if error else None, now)
        if patch := status_patch(status, rs.status):
            body = {"metadata": {"uid": rs.metadata.uid}, "status": patch}
            written = await self._client.patch(
                REPLICA_SETS, body, key.name, key.namespace, subresource="status", as_=ReplicaSet
            )
            self._replica_sets.observe(written)
        if (wait := availability.next_change(active, rs.spec.min_ready_seconds, now)) is not None:
            self._queue.add_after(key, wait)
