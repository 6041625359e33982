"""Carries out decisions on a release in three phases: the effects that the status relies on, the status, and the
effects that rely on the status. So a crash at any point is safe."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import assert_never

import msgspec

from altershield.api import labels, names, released_by
from altershield.api.json_patch import Operation, label_path
from altershield.api.kinds import (
    ChangePod,
    ChangePodSpec,
    ChangeWorkload,
    ChangeWorkloadStatus,
    ConditionType,
    SourceRef,
    Verdict,
    WorkloadState,
)
from altershield.api.meta import ObjectMeta, find_condition, plain_time, rfc3339
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
from altershield.workloads.adapter import Object
from altershield.workloads.pods import Pod
from altershield.workloads.sets import Set
from altershield.workloads.workload import Workload
from reconciler.batches.batch import Batch
from reconciler.batches.repeating import is_repeatable, repeated
from reconciler.batches.skipping import requested
from reconciler.machinery.caches import Caches
from reconciler.machinery.metrics import Metrics
from reconciler.machinery.writer import Writer, owner
from reconciler.releases import pausing
from reconciler.releases.effects import (
    AllowRepair,
    Announce,
    Before,
    CreateBatch,
    Decision,
    DeletePod,
    KeepHistory,
    Mark,
    Overrule,
    Pause,
    ReleaseAgain,
    Remove,
    Repeat,
    RestoreLabel,
    Resume,
    SetThreshold,
    Suspend,
    Unpause,
)
from reconciler.releases.history_writer import HistoryWriter
from reconciler.releases.live_reader import LiveReader
from reconciler.releases.projection import Release

logger = logging.getLogger(__name__)

_SUSPEND = label_path(labels.SUSPEND)
_VERSION = label_path(labels.VERSION)
_ANNOTATIONS = "/metadata/annotations"
_RELEASED_BY = label_path(released_by.ANNOTATION, _ANNOTATIONS)


class Refused(Exception):  # noqa: N818  (a result that ends the reconcile, not an error)
    """The API server refuses the write that releases an older template."""

    def __init__(self, cause: ApiError) -> None:
        super().__init__(str(cause))
        self.cause = cause


class Executor:
    """`clock` returns Unix seconds."""

    def __init__(
        self,
        caches: Caches,
        writer: Writer,
        live: LiveReader,
        recorder: EventRecorder,
        metrics: Metrics,
        clock: Callable[[], float],
        *,
        history: HistoryWriter | None = None,
    ) -> None:
        self._caches = caches
        self._writer = writer
        self._live = live
        self._history = history
        self._recorder = recorder
        self._metrics = metrics
        self._clock = clock

    async def carry_out(self, release: Release, workload: Workload, decision: Decision) -> Release:
        """Carry out the decision, and return the ChangeWorkload as it is afterwards.

        ConflictError: the objects have changed; decide again with newer caches. Refused: the API server refuses to
        release the template of an older version.
        """
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
                case Pause():
                    await self._pause(workload, effect)
                case Unpause():
                    await self._unpause(workload)
                case ReleaseAgain(target, by):
                    await self._release_again(workload, target, by)
                case Remove(obj):
                    await self._remove(obj)
                case Repeat(batch):
                    await self._repeat(batch)
                case Announce(reason, message, warning):
                    self._announce(workload, reason, message, warning=warning)
                case _:
                    assert_never(effect)
        return release

    def announce(self, workload: Workload, reason: str, message: str) -> None:
        """Send a Warning Event about the workload."""
        self._announce(workload, reason, message, warning=True)

    async def _before(self, release: Release, workload: Workload, effects: Sequence[Before]) -> Release:
        """Carry out the effects of the first phase. Effects on different pods run at the same time."""
        work: list[Coroutine[None, None, None]] = []
        for effect in effects:
            match effect:
                case Mark(pod, at):
                    work.append(self._mark(pod, at))
                case RestoreLabel(obj):
                    work.append(self._restore_label(obj, version_of(release)))
                case CreateBatch():
                    work.append(self._create_batch(release, effect))
                case DeletePod(pod):
                    work.append(self._writer.delete(PODS, pod.metadata))
                case Overrule():
                    work.append(self._overrule(effect))
                case SetThreshold() | AllowRepair() | Resume() | KeepHistory():
                    pass
                case _:
                    assert_never(effect)
        failures = [each for each in await asyncio.gather(*work, return_exceptions=True) if each is not None]
        if failures:
            raise next((each for each in failures if not isinstance(each, ConflictError)), failures[0])
        for effect in effects:
            if isinstance(effect, SetThreshold):
                release = await self._set_threshold(release, effect.count)
            elif isinstance(effect, AllowRepair):
                workload = await self.label(
                    workload, [{"op": "add", "path": label_path(labels.IGNORED_SUSPEND), "value": "true"}]
                )
            elif isinstance(effect, Resume):
                workload = await self.label(workload, [{"op": "remove", "path": _SUSPEND}])
            elif isinstance(effect, KeepHistory) and self._history is not None:
                await self._history.keep(release, workload, effect.status)
        return release

    async def _remove(self, obj: ChangeWorkload | Batch) -> None:
        await self._writer.delete(CHANGE_WORKLOADS if isinstance(obj, ChangeWorkload) else CHANGE_PODS, obj.metadata)

    async def _overrule(self, effect: Overrule) -> None:
        """Write the verdict `pass`. If somebody has failed a pod of a held batch meanwhile, that verdict stays."""
        change_pod = await self._writer.read_batch(effect.batch)
        known = {result.pod: result for result in change_pod.status.pod_results if result.verdict}
        overruled = {
            info.pod: msgspec.structs.replace(info, verdict=Verdict.PASS.value, message=effect.message, by=effect.by)
            for info in change_pod.spec.pod_infos
            if info.pod in effect.pods and _is_overruled(known.get(info.pod, info).verdict, held=effect.held)
        }
        if not overruled:
            return
        kept = [result for result in change_pod.status.pod_results if result.pod not in overruled]
        status = msgspec.structs.replace(change_pod.status, pod_results=(*kept, *overruled.values()))
        await self._writer.save_batch(change_pod, requested(status, self._clock()) if effect.skip else status)

    async def _repeat(self, batch: Batch) -> None:
        """Store that the check is to be repeated. The controller of ChangePods asks the server."""
        change_pod = await self._writer.read_batch(batch)
        if not is_repeatable(change_pod):
            where = f"{batch.metadata.namespace}/{batch.metadata.name}"
            raise ConflictError(f"ChangePod {where} has changed since it was read", code=409)
        await self._writer.save_batch(change_pod, repeated(change_pod, self._clock()))

    async def _mark(self, pod: Pod, at: int) -> None:
        mark: Operation = {"op": "add", "path": label_path(labels.OPERATE_FINISHED), "value": str(at)}
        with _label_failures_logged(pod):
            await self._writer.patch(self._caches.pods, pod, [mark])

    async def _restore_label(self, obj: Pod | Set, version: str) -> None:
        label: Operation = {"op": "add", "path": _VERSION, "value": version}
        with _label_failures_logged(obj):
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
            # the next write relies on this object: do not overwrite a status that a person wrote meanwhile
            {"op": "test", "path": "/metadata/resourceVersion", "value": release.metadata.resource_version},
            {"op": "replace", "path": "/spec/countThreshold", "value": count},
        ]
        return await self._writer.patch(self._caches.releases, release, operations)

    async def _suspend(self, workload: Workload, since: int) -> Workload:
        operations: list[Operation] = [{"op": "add", "path": _SUSPEND, "value": str(since)}]
        if workload.ignores_suspension:
            # the label is left from an earlier repair and must not admit the next release
            operations.append({"op": "remove", "path": label_path(labels.IGNORED_SUSPEND)})
        return await self.label(workload, operations)

    async def label(self, workload: Workload, operations: Sequence[Operation]) -> Workload:
        """Change labels of the workload, if it still has the version that the decision was about."""
        same: Operation = {"op": "test", "path": _VERSION, "value": workload.version}
        return await self._writer.patch(self._caches.workloads[workload.kind], workload, [same, *operations])

    async def _pause(self, workload: Workload, effect: Pause) -> None:
        raw = await self._live.raw(workload)
        wanted = BY_KIND[workload.kind].pause(workload)
        marker = pausing.Marker(
            rfc3339(self._clock()), effect.version, effect.reason, until=rfc3339(effect.until) if effect.until else ""
        )
        await self._patch_read(workload, raw, pausing.pause(raw, wanted, marker))

    async def _unpause(self, workload: Workload) -> None:
        raw = await self._live.raw(workload)
        await self._patch_read(workload, raw, pausing.unpause(raw, BY_KIND[workload.kind].pause(workload)))

    async def _patch_read(self, workload: Workload, raw: Object, operations: Sequence[Operation]) -> None:
        """Change the workload, if it has not changed since it was read."""
        if not operations:
            return
        unchanged: Operation = {
            "op": "test", "path": "/metadata/resourceVersion", "value": raw["metadata"]["resourceVersion"],
        }  # fmt: skip
        await self._writer.patch(self._caches.workloads[workload.kind], workload, [unchanged, *operations])

    async def _release_again(self, workload: Workload, target: SourceRef, by: str) -> None:
        """Give the workload the template of one of its revisions, as `kubectl rollout undo` does.

        Workload and template are read once more, so that exactly the decided template replaces exactly the decided
        version. The labels are set as the gatekeeper sets them, so that a rollback also works while no gatekeeper is
        available.

        `by`: the user who requested the rollback. If it is empty, the gatekeeper names the reconciler.
        """
        present = await self._live.workload(workload)
        if present.workload.version != workload.version or present.workload.fingerprint != workload.fingerprint:
            where = f"{workload.kind} {workload.metadata.namespace}/{workload.metadata.name}"
            raise ConflictError(f"{where}: another version was released since it was read", code=409)
        template = await self._live.template(workload, target)
        operations: list[Operation] = [
            {"op": "test", "path": "/metadata/resourceVersion", "value": present.workload.metadata.resource_version},
            *BY_KIND[workload.kind].release(template),
        ]
        version = target.version or target.fingerprint
        operations.append({"op": "add", "path": _VERSION, "value": version})
        if by:
            value = released_by.encode(by, version, self._clock())
            whole: Operation = {"op": "add", "path": _ANNOTATIONS, "value": {released_by.ANNOTATION: value}}
            operations.append({"op": "add", "path": _RELEASED_BY, "value": value} if present.annotations else whole)
        if present.workload.processed:
            operations.append({"op": "remove", "path": label_path(labels.DEFENSE_STATUS)})
        try:
            await self._writer.patch(self._caches.workloads[workload.kind], workload, operations)
        except ApiError as error:
            if _is_temporary(error):
                raise
            raise Refused(error) from error

    def _announce(self, workload: Workload, reason: str, message: str, *, warning: bool) -> None:
        resource, metadata = BY_KIND[workload.kind].resource, workload.metadata
        regarding = ObjectRef(resource.api_version, resource.kind, metadata.name, metadata.namespace, metadata.uid)
        self._recorder.event(regarding, WARNING if warning else NORMAL, reason, message)

    def _count_end(self, release: Release, status: ChangeWorkloadStatus) -> None:
        """Count the release in the metrics if the new state ends it. A superseded rollback does not count."""
        condition = find_condition(status.conditions, ConditionType.ROLLED_BACK)
        rolled_back = status.status == WorkloadState.FAILED and condition is not None and condition.is_true
        if rolled_back and condition is not None:
            self._metrics.rolled_back(release.metadata.namespace, condition.reason)
        if rolled_back or status.status in (WorkloadState.SUCCESS, WorkloadState.SUSPEND):
            self._metrics.ended(status.status, max(0.0, self._clock() - release.spec.create_time_unix))


def _is_overruled(verdict: str, *, held: bool) -> bool:
    return not verdict if held else verdict not in ("", Verdict.PASS)


@contextlib.contextmanager
def _label_failures_logged(obj: Pod | Set) -> Iterator[None]:
    """Ignore failures to write a label of a pod or ReplicaSet: no decision depends on these labels.

    If the object was deleted or replaced, the label is not needed. If a policy forbids the write, a warning is logged,
    and the release is verified nevertheless.
    """
    try:
        yield
    except (ConflictError, NotFoundError):
        return
    except (BadRequestError, ForbiddenError, InvalidError) as error:
        place = f"{obj.metadata.namespace}/{obj.metadata.name}"
        logger.warning(
            "could not write a label; the release is verified nevertheless",
            extra={"object": place, "cause": str(error)},
        )


def _is_temporary(error: ApiError) -> bool:
    """Whether the error is temporary: a conflict, throttling, or a state of the cluster that changes.

    A webhook can deny with any code, so a 409 from an admission webhook counts as a refusal.
    """
    if isinstance(error, ConflictError):
        return not str(error).count("admission webhook")
    return isinstance(error, NotFoundError | TooManyRequestsError | NamespaceTerminatingError | UnauthorizedError)
