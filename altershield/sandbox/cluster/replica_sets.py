"""The ReplicaSet controller: as many pods as each ReplicaSet wants. What to delete and the status are decided by
`replicas`."""

import asyncio
import contextlib
from collections.abc import Iterable, Sequence

from altershield.api.resources import PODS, REPLICA_SETS
from altershield.kube.client import PatchType
from altershield.kube.errors import ConflictError, KubernetesError, NamespaceTerminatingError, NotFoundError
from altershield.kube.events import EventRecorder, ObjectRef
from altershield.kube.queue import WorkQueue
from altershield.sandbox.cluster import ownership, replicas, selectors
from altershield.sandbox.cluster.caches import OWNER, Caches, status_patch
from altershield.sandbox.cluster.views import Object, Pod, ReplicaSet
from altershield.sandbox.cluster.work import Key, work

_BURST = 500  # pods created or deleted in one go
_MAX_PREFIX = 253


class ReplicaSets:
    def __init__(self, caches: Caches, recorder: EventRecorder) -> None:
        self._client = caches.client
        self._clock = caches.clock
        self._replica_sets = caches.replica_sets
        self._pods = caches.pods
        self._recorder = recorder
        self._queue: WorkQueue[Key] = WorkQueue()
        self._deleted: set[str] = set()
        """Uids of pods that were deleted but that the cache still shows as active: nothing is deleted twice."""
        caches.replica_sets.add_handler(self._replica_set_changed)
        caches.pods.add_handler(self._pod_changed)

    async def run(self) -> None:
        await work(self._queue, self._reconcile, workers=8)

    def _replica_set_changed(self, old: ReplicaSet | None, new: ReplicaSet | None) -> None:
        if new is not None:
            self._queue.add(Key(new.metadata.namespace, new.metadata.name))

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if old is not None and (new is None or not new.active):
            self._deleted.discard(old.metadata.uid)
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
        pods = await self._claim(rs)
        active = [pod for pod in pods if pod.active and pod.metadata.uid not in self._deleted]
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

    async def _claim(self, rs: ReplicaSet) -> list[Pod]:
        """The pods of this ReplicaSet, after adopting orphans and letting go of what it no longer selects."""
        owner, selector = rs.metadata, rs.spec.selector
        owned = self._pods.by_index(OWNER, owner.uid)
        unmanaged = self._pods.by_index(OWNER, ownership.orphans(owner.namespace))
        for pod in ownership.to_release(owner, selector, owned):
            await self._patch(pod, ownership.release_patch(owner, pod.metadata))
        mine = ownership.managed(owner, selector, owned)
        adoptable = [pod for pod in ownership.to_adopt(owner, selector, unmanaged) if pod.active]
        if adoptable and await ownership.is_still_there(self._client, REPLICA_SETS, owner):
            for pod in adoptable:
                patch = ownership.adopt_patch(REPLICA_SETS, owner, pod.metadata)
                mine.append(await self._patch(pod, patch))
        return mine

    async def _create(self, rs: ReplicaSet, count: int) -> None:
        """In batches of 1, 2, 4, ...: where one pod is refused (a quota, a webhook), hundreds need not be tried."""
        batch = 1
        while count > 0:
            batch = min(batch, count)
            answers = await asyncio.gather(*(self._create_one(rs) for _ in range(batch)), return_exceptions=True)
            for answer in answers:
                if isinstance(answer, BaseException):
                    raise answer
            count -= batch
            batch *= 2

    async def _create_one(self, rs: ReplicaSet) -> None:
        template = rs.spec.template
        metadata = template.get("metadata") or {}
        body: Object = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "generateName": f"{rs.metadata.name}-"[:_MAX_PREFIX],
                "ownerReferences": [ownership.controller_reference(REPLICA_SETS, rs.metadata)],
                **{key: metadata[key] for key in ("labels", "annotations", "finalizers") if metadata.get(key)},
            },
            "spec": template.get("spec") or {},
        }
        try:
            pod = await self._client.create(PODS, body, rs.metadata.namespace, as_=Pod)
        except NamespaceTerminatingError:
            return
        except KubernetesError as error:
            self._tell(rs, "Warning", "FailedCreate", f"Error creating: {error}")
            raise
        self._pods.observe(pod)
        self._tell(rs, "Normal", "SuccessfulCreate", f"Created pod: {pod.metadata.name}")

    async def _delete(self, rs: ReplicaSet, active: Sequence[Pod], count: int) -> None:
        doomed = replicas.to_delete(active, self._related(rs), count, self._clock())
        answers = await asyncio.gather(*(self._delete_one(rs, pod) for pod in doomed), return_exceptions=True)
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer

    async def _delete_one(self, rs: ReplicaSet, pod: Pod) -> None:
        self._deleted.add(pod.metadata.uid)
        try:
            with contextlib.suppress(NotFoundError, ConflictError):  # gone, perhaps replaced by a namesake
                await self._client.delete(PODS, pod.metadata.name, pod.metadata.namespace, uid=pod.metadata.uid)
        except KubernetesError as error:
            self._deleted.discard(pod.metadata.uid)
            self._tell(rs, "Warning", "FailedDelete", f"Error deleting: {error}")
            raise
        self._tell(rs, "Normal", "SuccessfulDelete", f"Deleted pod: {pod.metadata.name}")

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
        pods = ownership.managed(rs.metadata, rs.spec.selector, self._pods.by_index(OWNER, rs.metadata.uid))
        active = [pod for pod in pods if pod.active and pod.metadata.uid not in self._deleted]
        terminating = sum(not pod.ended for pod in pods) - len(active)
        status = replicas.status(rs, active, terminating, str(error) if error else None, now)
        if patch := status_patch(status, rs.status):
            body = {"metadata": {"uid": rs.metadata.uid}, "status": patch}
            written = await self._client.patch(
                REPLICA_SETS, body, key.name, key.namespace, subresource="status", as_=ReplicaSet
            )
            self._replica_sets.observe(written)
        waits = [replicas.seconds_to_available(rs, pod, now) for pod in active]
        if soon := [wait for wait in waits if wait]:
            self._queue.add_after(key, min(soon))

    async def _patch(self, pod: Pod, patch: Object) -> Pod:
        new = await self._client.patch(
            PODS, patch, pod.metadata.name, pod.metadata.namespace, type_=PatchType.STRATEGIC, as_=Pod
        )
        self._pods.observe(new)
        return new

    def _tell(self, rs: ReplicaSet, type_: str, reason: str, message: str) -> None:
        self._recorder.event(ObjectRef.of(REPLICA_SETS, rs.metadata), type_, reason, message)
