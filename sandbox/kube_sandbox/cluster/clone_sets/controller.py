"""The CloneSet controller (OpenKruise): pods without identity that can be updated in place. `rollout` and `pods` make
the decisions. The controller runs while the CustomResourceDefinition of CloneSets exists; see `crd`."""

import asyncio
import contextlib
import secrets

import msgspec

from kube_base.access.client import PatchType
from kube_base.access.errors import ConflictError, KubernetesError, NotFoundError
from kube_base.access.events import EventRecorder
from kube_base.resources import CLONE_SETS, CRDS
from kube_sandbox.cluster import availability, history
from kube_sandbox.cluster.caches import Caches
from kube_sandbox.cluster.clone_sets import crd as clone_set_crd
from kube_sandbox.cluster.clone_sets import pods as clone_pods
from kube_sandbox.cluster.clone_sets import progress, rollout
from kube_sandbox.cluster.clone_sets.rollout import Plan
from kube_sandbox.cluster.controller import WorkloadController, failure_of
from kube_sandbox.cluster.history import History, Revisions
from kube_sandbox.cluster.informer import Informer
from kube_sandbox.cluster.kinds import Condition, Meta, Pod, find
from kube_sandbox.cluster.pod_control import Messages, PodControl, in_batches
from kube_sandbox.cluster.templates import NAME_CHARACTERS
from kube_sandbox.cluster.work import Key
from kube_sandbox.cluster.workload_kinds import CloneSet, ControllerRevision

_MESSAGES = Messages(
    created="succeed to create pod {pod}",
    create_failed="failed to create pod: {error}, pod: {pod}",
    deleted="succeed to delete pod {pod}",
    delete_failed="failed to delete pod {pod}: {error}",
)
_ID_LENGTH = 5


class _CrdStatus(msgspec.Struct, frozen=True):
    conditions: tuple[Condition, ...] | None = ()


class _Crd(msgspec.Struct, frozen=True):
    metadata: Meta
    status: _CrdStatus = _CrdStatus()


class _CannotUpdateInPlaceError(KubernetesError):
    """The strategy is InPlaceOnly, but the change of a pod is not possible in place."""


class CloneSets(WorkloadController[CloneSet]):
    def __init__(self, caches: Caches, recorder: EventRecorder) -> None:
        super().__init__(caches, CLONE_SETS, caches.pods, workers=4)
        self._crd = Informer(caches.client, CRDS, _Crd, field_selector=f"metadata.name={clone_set_crd.NAME}")
        self._crd_changed = asyncio.Event()
        self._control = PodControl(caches, recorder, CLONE_SETS, _MESSAGES)
        self._history = History(caches, CLONE_SETS)
        self._crd.add_handler(lambda old, new: self._crd_changed.set())

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._crd.run())
            group.create_task(super().run())
            served, following = "", None
            while True:
                await self._crd_changed.wait()
                self._crd_changed.clear()
                if served == (served := self._served()):
                    continue
                if following is not None:
                    following.cancel()
                    self._workloads = None
                if served:
                    sets = Informer(self._client, CLONE_SETS, CloneSet)
                    self.follow(sets)
                    following = group.create_task(sets.run())

    def _served(self) -> str:
        """The uid of the established CRD of CloneSets; empty if there is none."""
        crd = self._crd.get("", clone_set_crd.NAME)
        established = find(crd.status.conditions or (), "Established") if crd else None
        if crd is None or established is None or established.status != "True":
            return ""
        return crd.metadata.uid if crd.metadata.deletion_timestamp is None else ""

    async def _reconcile(self, key: Key) -> None:
        clone_set = self._get(key)
        if clone_set is None or clone_set.metadata.deletion_timestamp is not None:
            return
        metadata, spec = clone_set.metadata, clone_set.spec
        pods = [pod for pod in await self._control.claim(metadata, spec.selector) if pod.active]
        kept = await self._history.of(clone_set)
        update, collisions = await self._history.current(clone_set, kept, clone_set.status.collision_count, {})
        current = history.named(kept, clone_set.status.current_revision) or update
        revisions = Revisions(current.metadata.name, update.metadata.name)
        pods = [await self._refresh(pod) for pod in pods]
        plan = rollout.plan(clone_set, pods, revisions, self._clock())
        failure = await failure_of(self._carry_out(clone_set, plan, kept, current, update))
        await self._write_status(key, revisions, collisions, plan, failure)
        live = {clone_pods.short(name) for name in (*revisions, *map(clone_pods.revision, pods))}
        live_names = {one.metadata.name for one in kept if clone_pods.short(one.metadata.name) in live}
        limit = 10 if spec.revision_history_limit is None else spec.revision_history_limit
        await self._history.prune(kept, live_names, limit)
        if failure is not None:
            raise failure

    async def _refresh(self, pod: Pod) -> Pod:
        """Finish an update in place: set the readiness gate and the lifecycle state when the containers are updated."""
        with contextlib.suppress(
            NotFoundError, ConflictError
        ):  # deleted, perhaps replaced by another pod of the same name
            if finish := clone_pods.finish_patch(pod, self._clock()):
                pod = await self._control.patch(pod, finish, PatchType.STRATEGIC, subresource="status")
            if next_state := clone_pods.lifecycle_patch(pod, self._clock()):
                pod = await self._control.patch(pod, next_state)
        return pod

    async def _carry_out(
        self,
        clone_set: CloneSet,
        plan: Plan,
        kept: list[ControllerRevision],
        current: ControllerRevision,
        update: ControllerRevision,
    ) -> None:
        async def create(revision: ControllerRevision) -> None:
            instance = "".join(secrets.choice(NAME_CHARACTERS) for _ in range(_ID_LENGTH))
            template = history.template_of(revision)
            body = clone_pods.body(clone_set, template, revision.metadata.name, instance)
            await self._control.create(clone_set.metadata, body)

        if plan.limited is not None:
            text = f"scaleUp is limited because of scaleStrategy.maxUnavailable, limit: {plan.limited}"
            self._control.event(clone_set.metadata, "Warning", "ScaleUpLimited", text)
        made = [current] * plan.create_current + [update] * plan.create_update
        await in_batches([lambda revision=revision: create(revision) for revision in made])  # type: ignore[misc]
        await self._control.delete_all(clone_set.metadata, plan.delete)
        for pod in plan.update:
            old = next((one for one in kept if clone_pods.is_of(pod, one.metadata.name)), None)
            await self._update_pod(clone_set, pod, old, update)

    async def _update_pod(
        self, clone_set: CloneSet, pod: Pod, old: ControllerRevision | None, new: ControllerRevision
    ) -> None:
        kind, name = clone_set.spec.update_strategy.type, new.metadata.name
        if kind in ("InPlaceIfPossible", "InPlaceOnly"):
            before = history.template_of(old) if old else None
            change = clone_pods.in_place_update(before, history.template_of(new))
            if change is not None:
                start = clone_pods.start_patch(pod, self._clock())
                pod = await self._control.patch(pod, start, PatchType.STRATEGIC, subresource="status")
                patch = clone_pods.update_patch(pod, change, name, self._clock())
                await self._control.patch(pod, patch, PatchType.STRATEGIC)
                text = f"successfully update pod {pod.metadata.name} in-place(revision {name})"
                self._control.event(clone_set.metadata, "Normal", "SuccessfulUpdatePodInPlace", text)
                return
            if kind == "InPlaceOnly":
                raise _CannotUpdateInPlaceError(
                    f"find Pod {pod.metadata.name} update strategy is InPlaceOnly but can not update in-place"
                )
        label = {clone_pods.SPECIFIED_DELETE: "true"}
        await self._control.patch(pod, {"metadata": {"uid": pod.metadata.uid, "labels": label}})
        text = f"successfully patch pod {pod.metadata.name} specified-delete for update(revision {name})"
        self._control.event(clone_set.metadata, "Normal", "SuccessfulUpdatePodReCreate", text)

    async def _write_status(
        self, key: Key, revisions: Revisions, collisions: int, plan: Plan, failure: KubernetesError | None
    ) -> None:
        """Compute the status from the current caches."""
        clone_set = self._get(key)
        if clone_set is None or self._workloads is None:
            return
        now = self._clock()
        pods = [pod for pod in self._control.owned(clone_set.metadata, clone_set.spec.selector) if pod.active]
        type_ = rollout.FAILED_UPDATE if plan.update else rollout.FAILED_SCALE
        condition = Condition(type_, "True", message=str(failure)) if failure else None
        status = rollout.status(clone_set, pods, revisions, collisions, condition, now)
        if status != clone_set.status:
            await self._patch_status(clone_set, msgspec.to_builtins(status))
        left = rollout.leftover_names(clone_set, pods)
        if left is not None:
            patch = {"metadata": {"uid": clone_set.metadata.uid}, "spec": {"scaleStrategy": {"podsToDelete": left}}}
            await self._workloads.patch(patch, key.name, key.namespace)
        ready = availability.next_change(pods, clone_set.spec.min_ready_seconds, now)
        for wait in (ready, progress.next_check(clone_set, status, now)):
            if wait is not None:
                self._queue.add_after(key, wait)
