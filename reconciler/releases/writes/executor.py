"""Carries out decisions on a release in three phases: the effects that the status relies on, the status, and the
effects that rely on the status. So a crash at any point is safe."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import replace
from typing import assert_never

from altershield.api import labels
from altershield.api.change_workload import ChangeWorkload, ChangeWorkloadStatus, WorkloadState
from altershield.api.condition_types import ConditionType
from altershield.api.json_patch import Operation, at_version, label_path, without_label
from altershield.api.meta import find_condition
from altershield.api.resources import CHANGE_PODS, CHANGE_WORKLOADS
from altershield.releases.release import version_of
from altershield.workloads import BY_KIND, hold
from altershield.workloads.adapter import Object
from altershield.workloads.pods import Pod
from altershield.workloads.sets import Set
from altershield.workloads.workload import Workload
from kube_base.access.errors import BadRequestError, ConflictError, ForbiddenError, InvalidError, NotFoundError
from kube_base.access.events import EventRecorder
from kube_base.times import rfc3339
from reconciler.cluster.batch import Batch
from reconciler.cluster.caches import Caches
from reconciler.cluster.release import Release
from reconciler.cluster.writer import Writer
from reconciler.releases.metrics import ReleaseMetrics
from reconciler.releases.reads.live import LiveReader
from reconciler.releases.terms.announcements import announced_first, with_announcements
from reconciler.releases.terms.effects import (
    After,
    AllowRepair,
    Announce,
    Before,
    CreateBatch,
    Decision,
    EndHold,
    Evict,
    FreeFields,
    KeepHistory,
    Mark,
    Overrule,
    Pause,
    ReleaseAgain,
    Remove,
    Repeat,
    RestoreLabel,
    RestoreManagers,
    Resume,
    SetHold,
    SetThreshold,
    Suspend,
    Unpause,
)
from reconciler.releases.writes.batches import BatchWriter
from reconciler.releases.writes.events import ReleaseEvents
from reconciler.releases.writes.history import HistoryWriter
from reconciler.releases.writes.holds import HoldWriter
from reconciler.releases.writes.rollback import RollbackWriter

logger = logging.getLogger(__name__)

_SUSPEND = label_path(labels.SUSPEND)
_VERSION = label_path(labels.VERSION)


class Executor:
    """`clock` returns Unix seconds."""

    def __init__(
        self,
        caches: Caches,
        writer: Writer,
        live: LiveReader,
        recorder: EventRecorder,
        metrics: ReleaseMetrics,
        clock: Callable[[], float],
        *,
        history: HistoryWriter | None = None,
    ) -> None:
        self._caches = caches
        self._writer = writer
        self._live = live
        self._history = history
        self._events = ReleaseEvents(recorder, clock)
        self._metrics = metrics
        self._clock = clock
        self._batches = BatchWriter(caches, writer, clock)
        self._rollbacks = RollbackWriter(caches, writer, live, clock)
        self._holds = HoldWriter(caches, writer, live)

    async def carry_out(self, release: Release, workload: Workload, decision: Decision) -> Release:
        """Carry out the decision, and return the ChangeWorkload as it is afterwards.

        ConflictError: the objects have changed; decide again with newer caches. Refused: the API server refuses to
        release the template of an older version.
        """
        left = self._events.left(release)
        decision = announced_first(release, decision, left, self._clock())
        release, events = await self._before(release, workload, decision.before)
        decision = with_announcements(release, replace(decision, after=(*decision.after, *events)), left, self._clock())
        if decision.status is not None:
            before = release
            release = await self._writer.save_release(release, decision.status, lists=decision.lists)
            self._events.write(release, workload)
            self._metrics.steps_passed(before.status.rollout.passed_steps, decision.status.rollout.passed_steps)
            if decision.status.status != before.status.status:
                self._count_end(before, decision.status)
        for effect in decision.after:
            workload = await self._after(workload, effect)
        return release

    async def _after(self, workload: Workload, effect: After) -> Workload:
        """Carry out an effect of the last phase. Returns the workload as it is afterwards, if its labels change."""
        match effect:
            case Suspend(since):
                return await self._suspend(workload, since)
            case Pause():
                await self._pause(workload, effect)
            case Unpause():
                await self._unpause(workload)
            case SetHold(wanted):
                await self._holds.set(workload, wanted)
            case Evict(pod):
                await self._holds.evict(pod)
            case EndHold():
                await self._holds.end(workload)
            case ReleaseAgain(target, by):
                await self._rollbacks.release_again(workload, target, by)
            case Remove(obj):
                await self._remove(obj)
            case Repeat(batch):
                await self._batches.repeat(batch)
            case Announce():
                pass  # the status has it
            case _:
                assert_never(effect)
        return workload

    async def _before(
        self, release: Release, workload: Workload, effects: Sequence[Before]
    ) -> tuple[Release, Sequence[Announce]]:
        """Carry out the effects of the first phase: those on pods and batches at the same time, then those on the
        ChangeWorkload and the workload one after the other. Returns the ChangeWorkload as it is afterwards, and Events
        about the effects."""
        events: list[Announce] = []
        work = [each for effect in effects if (each := self._independent(release, effect)) is not None]
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
            elif isinstance(effect, RestoreManagers):
                refusal = await self._rollbacks.restore_managers(workload, effect.target)
                if refusal:
                    text = f"the API server refuses to change the field managers of the pod template: {refusal}"
                    events.append(Announce("ManagersNotRestored", text))
            elif isinstance(effect, FreeFields):
                await self._holds.free_fields(workload)
            elif isinstance(effect, KeepHistory) and self._history is not None:
                await self._history.keep(release, workload, effect.status, effect.evidence)
        return release, events

    def _independent(self, release: Release, effect: Before) -> Coroutine[None, None, None] | None:
        """The write of an effect on pods or batches; None for another effect."""
        match effect:
            case Mark(pod, at):
                return self._mark(pod, at)
            case RestoreLabel(obj):
                return self._restore_label(obj, version_of(release))
            case CreateBatch():
                return self._batches.create(release, effect)
            case Overrule():
                return self._batches.overrule(effect)
            case SetThreshold() | AllowRepair() | Resume() | KeepHistory() | RestoreManagers() | FreeFields():
                return None
            case _:
                assert_never(effect)

    async def _remove(self, obj: ChangeWorkload | Batch) -> None:
        await self._writer.delete(CHANGE_WORKLOADS if isinstance(obj, ChangeWorkload) else CHANGE_PODS, obj.metadata)

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

    async def _set_threshold(self, release: Release, count: int) -> Release:
        operations: list[Operation] = [
            # the next write relies on this object: do not overwrite a status that a person wrote meanwhile
            at_version(release.metadata.resource_version),
            {"op": "replace", "path": "/spec/countThreshold", "value": count},
        ]
        return await self._writer.patch(self._caches.releases, release, operations)

    async def _suspend(self, workload: Workload, since: int) -> Workload:
        suspended: Operation = {"op": "add", "path": _SUSPEND, "value": str(since)}
        # the label may be left from an earlier repair and must not admit the next release
        return await self.label(workload, [suspended, *without_label(labels.IGNORED_SUSPEND)])

    async def label(self, workload: Workload, operations: Sequence[Operation]) -> Workload:
        """Change labels of the workload, if it still has the version that the decision was about."""
        same: Operation = {"op": "test", "path": _VERSION, "value": workload.version}
        return await self._writer.patch(self._caches.workloads[workload.group_kind], workload, [same, *operations])

    async def _pause(self, workload: Workload, effect: Pause) -> None:
        raw = await self._live.raw(workload)
        until = rfc3339(effect.until) if effect.until else ""
        cause = hold.Cause(hold.PAUSE, effect.reason, rfc3339(self._clock()), until)
        wanted = BY_KIND[workload.group_kind].pause()
        await self._patch_read(workload, raw, hold.begin(raw, wanted, effect.version, cause))

    async def _unpause(self, workload: Workload) -> None:
        raw = await self._live.raw(workload)
        wanted = BY_KIND[workload.group_kind].pause()
        try:
            await self._patch_read(workload, raw, hold.end(raw, wanted, hold.PAUSE))
        except InvalidError as error:
            if error.may_heal:
                raise
            # somebody changed the annotation: the API server does not accept its values of the fields
            metadata = workload.metadata
            where = f"{workload.kind} {metadata.namespace}/{metadata.name}"
            logger.warning("could not restore the fields of a pause", extra={"object": where, "cause": str(error)})
            await self._patch_read(workload, raw, hold.forget(raw))

    async def _patch_read(self, workload: Workload, raw: Object, operations: Sequence[Operation]) -> None:
        """Change the workload, if it has not changed since it was read."""
        if not operations:
            return
        unchanged = at_version(raw["metadata"]["resourceVersion"])
        await self._writer.patch(self._caches.workloads[workload.group_kind], workload, [unchanged, *operations])

    def _count_end(self, release: Release, status: ChangeWorkloadStatus) -> None:
        """Count the release in the metrics if the new state ends it. A superseded rollback does not count."""
        condition = find_condition(status.conditions, ConditionType.ROLLED_BACK)
        rolled_back = status.status == WorkloadState.FAILED and condition is not None and condition.is_true
        if rolled_back and condition is not None:
            self._metrics.rolled_back(release.metadata.namespace, condition.reason)
        if rolled_back or status.status in (WorkloadState.SUCCESS, WorkloadState.SUSPEND):
            self._metrics.ended(status.status, max(0.0, self._clock() - release.spec.create_time_unix))


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
