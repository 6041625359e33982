"""The ReplicaSet controller: creates and deletes the pods of each ReplicaSet. `replicas` decides which pods to delete,
and computes the status."""

from collections.abc import Iterable, Sequence

from kube_base.access.errors import KubernetesError
from kube_base.access.events import EventRecorder
from kube_base.resources import REPLICA_SETS
from kube_sandbox.cluster.caches import Caches, status_patch
from kube_sandbox.cluster.controller import WorkloadController, failure_of
from kube_sandbox.cluster.kinds import Pod, ReplicaSet
from kube_sandbox.cluster.ownership import OWNER
from kube_sandbox.cluster.pod_control import PodControl, in_batches, pod_body
from kube_sandbox.cluster.replica_sets import replicas
from kube_sandbox.cluster.work import Key

_BURST = 500  # pods created or deleted in one reconciliation
_MAX_PREFIX = 253


class ReplicaSets(WorkloadController[ReplicaSet]):
    def __init__(self, caches: Caches, recorder: EventRecorder) -> None:
        super().__init__(caches, REPLICA_SETS, caches.pods, workers=8)
        self._replica_sets = caches.replica_sets
        self._pods = caches.pods
        self._control = PodControl(caches, recorder, REPLICA_SETS)
        self.follow(caches.replica_sets)

    async def _reconcile(self, key: Key) -> None:
        rs = self._get(key)
        if rs is None:
            return
        active = [pod for pod in await self._control.claim(rs.metadata, rs.spec.selector) if pod.active]
        terminating = rs.metadata.deletion_timestamp is not None
        error = None if terminating else await failure_of(self._scale(rs, active))
        await self._write_status(key, error)
        if error is not None:
            raise error

    async def _scale(self, rs: ReplicaSet, active: Sequence[Pod]) -> None:
        if len(active) < rs.spec.replicas:
            await self._create(rs, min(rs.spec.replicas - len(active), _BURST))
        elif len(active) > rs.spec.replicas:
            await self._delete(rs, active, min(len(active) - rs.spec.replicas, _BURST))

    async def _create(self, rs: ReplicaSet, count: int) -> None:
        prefix = f"{rs.metadata.name}-"[:_MAX_PREFIX]
        body = pod_body(rs.spec.template, REPLICA_SETS, rs.metadata, generateName=prefix)

        async def create() -> None:
            await self._control.create(rs.metadata, body)

        await in_batches([create] * count)

    async def _delete(self, rs: ReplicaSet, active: Sequence[Pod], count: int) -> None:
        chosen = replicas.to_delete(active, self._related(rs), count, self._clock())
        await self._control.delete_all(rs.metadata, chosen)

    def _related(self, rs: ReplicaSet) -> Iterable[Pod]:
        """The pods of all ReplicaSets with the same controller."""
        owner = rs.metadata.controller
        family = self._replica_sets.by_index(OWNER, owner.uid) if owner else [rs]
        return [pod for member in family for pod in self._pods.by_index(OWNER, member.metadata.uid)]

    async def _write_status(self, key: Key, error: KubernetesError | None) -> None:
        """Compute the status from the current caches, which have the pods just created and deleted."""
        rs = self._get(key)
        if rs is None:
            return
        pods = self._control.owned(rs.metadata, rs.spec.selector)
        active = [pod for pod in pods if pod.active]
        terminating = sum(not pod.ended for pod in pods) - len(active)
        now = self._clock()
        status = replicas.status(rs, active, terminating, str(error) if error else None, now)
        await self._patch_status(rs, status_patch(status, rs.status))
        self._requeue_when_available(key, active, rs.spec.min_ready_seconds, now)
