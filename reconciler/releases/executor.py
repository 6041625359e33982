"""Carries out what was decided on a release, in three phases that a crash cannot spoil: what the status rests on, the
status, what rests on the status."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import assert_never

from altershield.api import labels, names
from altershield.api.json_patch import Operation, label_path
from altershield.api.kinds import (
    ChangePod,
    ChangePodSpec,
    ChangeWorkload,
    ChangeWorkloadStatus,
    ConditionType,
    SourceRef,
    WorkloadState,
)
from altershield.api.meta import ObjectMeta, find_condition, plain_time
from altershield.api.resources import CHANGE_PODS, CHANGE_WORKLOADS, PODS
from altershield.kube.errors import (
    ApiError,
    BadRequestError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    NamespaceTerminatingError,
    NotFoundError,
    TooManyRequestsError,
    UnauthorizedError,
)
from altershield.kube.events import NORMAL, WARNING, EventRecorder, ObjectRef
from altershield.releases.release import version as version_of
from altershield.workloads import BY_KIND
from altershield.workloads.pods import Pod
from altershield.workloads.sets import Set
from altershield.workloads.workload import Workload
from reconciler.machinery.caches import Caches
from reconciler.machinery.metrics import Metrics
from reconciler.machinery.writer import Writer, owner
from reconciler.releases.effects import (
    Announce,
    Before,
    CreateBatch,
    Decision,
    DeletePod,
    Mark,
    PutBack,
    ReleaseAgain,
    Remove,
    Resume,
    SetThreshold,
    Suspend,
)
from reconciler.releases.live_reader import LiveReader
from reconciler.releases.projection import Release

logger = logging.getLogger(__name__)

_SUSPEND = label_path(labels.SUSPEND)
_VERSION = label_path(labels.VERSION)


class Refused(Exception):  # noqa: N818  (a result that ends the turn, not an error)
    """The API server refuses to let an older template be released."""

    def __init__(self, cause: ApiError) -> None:
        super().__init__(str(cause))
        self.cause = cause


class Executor:
    def __init__(
        self,
        caches: Caches,
        writer: Writer,
        live: LiveReader,
        recorder: EventRecorder,
        metrics: Metrics,
        clock: Callable[[], float],
    ) -> None:
        self._caches = caches
        self._writer = writer
        self._live = live
        self._recorder = recorder
        self._metrics = metrics
        self._clock = clock

    async def carry_out(self, release: Release, workload: Workload, decision: Decision) -> Release:
        """Do it all; the record as it is then. ConflictError: decide anew, on newer caches. Refused: the template of
        an older version could not be released."""
        release = await self._before(release, workload, decision.before)
        if decision.status is not None:
            before = release
            release = await self._writer.save_release(release, decision.status, lists=decision.lists)
            if decision.status.status != before.status.status:
                self._count_end(before, decision.status)
        for effect in decision.after:
            match effect:
                case Suspend(since):
                    workload = await self._suspend(workload, since)
                case ReleaseAgain(target):
                    await self._release_again(workload, target)
                case Remove(obj):
                    await self._writer.delete(
                        CHANGE_WORKLOADS if isinstance(obj, Release) else CHANGE_PODS, obj.metadata
                    )
                case Announce(reason, message, warning):
                    self._announce(workload, reason, message, warning=warning)
                case _:
                    assert_never(effect)
        return release

    def announce(self, workload: Workload, reason: str, message: str) -> None:
        """A warning on the workload."""
        self._announce(workload, reason, message, warning=True)

    async def _before(self, release: Release, workload: Workload, effects: Sequence[Before]) -> Release:
        """What is about different pods is done at the same time."""
        work: list[Coroutine[None, None, None]] = []
        for effect in effects:
            match effect:
                case Mark(pod, at):
                    work.append(self._mark(pod, at))
                case PutBack(obj):
                    work.append(self._put_back(obj, version_of(release)))
                case CreateBatch():
                    work.append(self._create_batch(release, effect))
                case DeletePod(pod):
                    work.append(self._writer.delete(PODS, pod.metadata))
                case SetThreshold() | Resume():
                    pass
                case _:
                    assert_never(effect)
        failures = [each for each in await asyncio.gather(*work, return_exceptions=True) if each is not None]
        if failures:
            raise next((each for each in failures if not isinstance(each, ConflictError)), failures[0])
        for effect in effects:
            if isinstance(effect, SetThreshold):
                release = await self._set_threshold(release, effect.count)
            elif isinstance(effect, Resume):
                await self.label(workload, [{"op": "remove", "path": _SUSPEND}])
        return release

    async def _mark(self, pod: Pod, at: int) -> None:
        mark: Operation = {"op": "add", "path": label_path(labels.OPERATE_FINISHED), "value": str(at)}
        with _not_in_the_way(pod):
            await self._writer.patch(self._caches.pods, pod, [mark])

    async def _put_back(self, obj: Pod | Set, version: str) -> None:
        label: Operation = {"op": "add", "path": _VERSION, "value": version}
        with _not_in_the_way(obj):
            if isinstance(obj, Pod):
                await self._writer.patch(self._caches.pods, obj, [label])
            else:
                await self._writer.patch(self._caches.informer_of(obj), obj, [label])

    async def _create_batch(self, release: ChangeWorkload, effect: CreateBatch) -> None:
        now = self._clock()
        metadata = release.metadata
        batch = ChangePod(
            metadata=ObjectMeta(
                name=names.change_pod_name(metadata.name, effect.number),
                namespace=metadata.namespace,
                labels={
                    labels.VERSION: version_of(release),
                    labels.WORKLOAD_NAME: names.label_value(release.spec.service_name),
                },
                owner_references=(owner(CHANGE_WORKLOADS, metadata),),
            ),
            spec=ChangePodSpec(
                change_workload_id=metadata.name,
                create_time=plain_time(now),
                create_time_unix=int(now),
                pod_infos=effect.pods,
                failed_by=effect.failed_by,
            ),
        )
        await self._writer.create(self._caches.batches, batch, metadata.namespace)

    async def _set_threshold(self, release: Release, count: int) -> Release:
        operations: list[Operation] = [
            # else a status written meanwhile, as a person who asks for a rollback does, would be overwritten next
            {"op": "test", "path": "/metadata/resourceVersion", "value": release.metadata.resource_version},
            {"op": "replace", "path": "/spec/countThreshold", "value": count},
        ]
        return await self._writer.patch(self._caches.releases, release, operations)

    async def _suspend(self, workload: Workload, since: int) -> Workload:
        operations: list[Operation] = [{"op": "add", "path": _SUSPEND, "value": str(since)}]
        if workload.ignores_suspension:
            # left from an earlier repair, whose manifest was applied once more: it is not about this one
            operations.append({"op": "remove", "path": label_path(labels.IGNORED_SUSPEND)})
        return await self.label(workload, operations)

    async def label(self, workload: Workload, operations: Sequence[Operation]) -> Workload:
        """Change labels of the workload as long as it is at the version that was decided about."""
        same: Operation = {"op": "test", "path": _VERSION, "value": workload.version}
        return await self._writer.patch(self._caches.workloads[workload.kind], workload, [same, *operations])

    async def _release_again(self, workload: Workload, target: SourceRef) -> None:
        """Give the workload the template of one of its revisions, as `kubectl rollout undo` does.

        Template and workload are read a last time: what goes back is what was verified, to where it was. The labels
        are set as the gatekeeper would, so that a cluster whose gatekeeper is down goes on as well.
        """
        present = await self._live.workload(workload)
        if present.workload.version != workload.version or present.workload.fingerprint != workload.fingerprint:
            raise ConflictError(f"another version of {workload.metadata.name} was released meanwhile", code=409)
        template = await self._live.template(workload, target)
        operations: list[Operation] = [
            {"op": "test", "path": "/metadata/resourceVersion", "value": present.workload.metadata.resource_version},
            *BY_KIND[workload.kind].release(template),
        ]
        operations.append({"op": "add", "path": _VERSION, "value": target.version or target.fingerprint})
        if present.workload.processed:
            operations.append({"op": "remove", "path": label_path(labels.DEFENSE_STATUS)})
        try:
            await self._writer.patch(self._caches.workloads[workload.kind], workload, operations)
        except ApiError as error:
            if _will_pass(error):
                raise
            raise Refused(error) from error

    def _announce(self, workload: Workload, reason: str, message: str, *, warning: bool) -> None:
        resource, metadata = BY_KIND[workload.kind].resource, workload.metadata
        regarding = ObjectRef(resource.api_version, resource.kind, metadata.name, metadata.namespace, metadata.uid)
        self._recorder.event(regarding, WARNING if warning else NORMAL, reason, message)

    def _count_end(self, release: Release, status: ChangeWorkloadStatus) -> None:
        """Count the end of a release, if the new state is one. A rollback that another release forestalled is none."""
        condition = find_condition(status.conditions, ConditionType.ROLLED_BACK)
        rolled_back = status.status == WorkloadState.FAILED and condition is not None and condition.is_true
        if rolled_back and condition is not None:
            self._metrics.rollbacks.labels(condition.reason).inc()
        if rolled_back or status.status in (WorkloadState.SUCCESS, WorkloadState.SUSPEND):
            self._metrics.ended(status.status, max(0.0, self._clock() - release.spec.create_time_unix))


@contextlib.contextmanager
def _not_in_the_way(obj: Pod | Set) -> Iterator[None]:
    """A label of a pod decides nothing. Where the pod is gone, it is none of the workload's any more; where somebody's
    policy forbids the write, the release is verified all the same."""
    try:
        yield
    except (ConflictError, NotFoundError):
        return
    except (BadRequestError, ForbiddenError, InvalidError) as error:
        place = f"{obj.metadata.namespace}/{obj.metadata.name}"
        logger.warning("a label could not be written", extra={"object": place, "cause": str(error)})


def _will_pass(error: ApiError) -> bool:
    """Whether an error says nothing of the write itself: somebody was faster, or it is too early or too much. What a
    webhook denies comes with whatever code the webhook likes."""
    if isinstance(error, ConflictError):
        return not str(error).count("admission webhook")
    return isinstance(error, NotFoundError | TooManyRequestsError | NamespaceTerminatingError | UnauthorizedError)
