"""The Job controller and the controller that deletes finished Jobs. `progress` makes the decisions."""

import contextlib

from kube_base.access.errors import ConflictError, NotFoundError
from kube_base.access.events import EventRecorder
from kube_base.resources import JOBS
from kube_sandbox.cluster import users
from kube_sandbox.cluster.caches import Caches, status_patch
from kube_sandbox.cluster.controller import WorkloadController, failure_of
from kube_sandbox.cluster.jobs import progress
from kube_sandbox.cluster.jobs.kinds import Job
from kube_sandbox.cluster.ownership import OWNER
from kube_sandbox.cluster.pod_control import PodControl, in_batches, pod_body
from kube_sandbox.cluster.settings import SimulationSettings
from kube_sandbox.cluster.work import Key

_MAX_PREFIX = 58


class Jobs(WorkloadController[Job]):
    def __init__(self, caches: Caches, settings: SimulationSettings, recorder: EventRecorder) -> None:
        super().__init__(caches, JOBS, caches.pods, workers=4)
        self._settings = settings
        self._pods = caches.pods
        self._control = PodControl(caches, recorder, JOBS)
        self.follow(caches.jobs)

    async def _reconcile(self, key: Key) -> None:
        job = self._get(key)
        if job is None or job.metadata.deletion_timestamp is not None:
            return
        pods = [
            pod
            for pod in self._pods.by_index(OWNER, job.metadata.uid)
            if pod.metadata.controller is not None and pod.metadata.controller.uid == job.metadata.uid
        ]
        plan = progress.plan(job, pods, self._clock(), self._settings.job_back_off)
        if plan.expired:
            await self._delete(job)
            return
        error = await failure_of(self._create(job, plan.create))
        await self._control.delete_all(job.metadata, plan.delete)
        if error is None:
            await self._patch_status(job, status_patch(plan.status, job.status))
            if progress.ended(job) is None and (end := progress.ended(Job(job.metadata, job.spec, plan.status))):
                type_, reason = ("Normal", "Completed") if end.type == "Complete" else ("Warning", end.reason)
                self._control.event(job.metadata, type_, reason, end.message)
        if plan.after is not None:
            self._queue.add_after(key, plan.after)
        if error is not None:
            raise error

    async def _create(self, job: Job, count: int) -> None:
        prefix = f"{job.metadata.name}-"[:_MAX_PREFIX]
        body = pod_body(job.spec.template, JOBS, job.metadata, generateName=prefix)

        async def create() -> None:
            await self._control.create(job.metadata, body)

        await in_batches([create] * count)

    async def _delete(self, job: Job) -> None:
        metadata = job.metadata
        user = users.controller(users.TTL_AFTER_FINISHED, self._settings)
        with users.acting_as(user), contextlib.suppress(NotFoundError, ConflictError):
            await self._client.delete(
                JOBS, metadata.name, metadata.namespace, uid=metadata.uid, propagation="Foreground"
            )
