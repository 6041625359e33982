"""The StatefulSet controller: creates, updates and deletes pods with an identity. `rollout` makes the decisions."""

import contextlib

from kube_base.access.errors import AlreadyExistsError
from kube_base.access.events import EventRecorder
from kube_base.resources import PERSISTENT_VOLUME_CLAIMS, STATEFUL_SETS
from kube_sandbox.cluster import history
from kube_sandbox.cluster.caches import Caches, status_patch
from kube_sandbox.cluster.controller import WorkloadController, failure_of
from kube_sandbox.cluster.history import History, Revisions
from kube_sandbox.cluster.kinds import Pod
from kube_sandbox.cluster.pod_control import Messages, PodControl, in_batches
from kube_sandbox.cluster.stateful_sets import pods as stateful_pods
from kube_sandbox.cluster.stateful_sets import rollout
from kube_sandbox.cluster.stateful_sets.rollout import Plan
from kube_sandbox.cluster.work import Key
from kube_sandbox.cluster.workload_kinds import ControllerRevision, StatefulSet

_MESSAGES = Messages(
    created="create Pod {pod} in StatefulSet {owner} successful",
    create_failed="create Pod {pod} in StatefulSet {owner} failed error: {error}",
    deleted="delete Pod {pod} in StatefulSet {owner} successful",
    delete_failed="delete Pod {pod} in StatefulSet {owner} failed error: {error}",
)


class StatefulSets(WorkloadController[StatefulSet]):
    def __init__(self, caches: Caches, recorder: EventRecorder) -> None:
        super().__init__(caches, STATEFUL_SETS, caches.pods, workers=8)
        self._control = PodControl(caches, recorder, STATEFUL_SETS, _MESSAGES)
        self._history = History(caches, STATEFUL_SETS)
        self.follow(caches.stateful_sets)

    async def _reconcile(self, key: Key) -> None:
        set_ = self._get(key)
        if set_ is None or set_.metadata.deletion_timestamp is not None:
            return
        metadata, spec = set_.metadata, set_.spec
        pods = [
            pod
            for pod in await self._control.claim(metadata, spec.selector, lambda pod: _is_member(set_, pod))
            if _is_member(set_, pod)
        ]
        kept = await self._history.of(set_)
        update, collisions = await self._history.current(set_, kept, set_.status.collision_count, metadata.annotations)
        current = history.named(kept, set_.status.current_revision) or update
        revisions = Revisions(current.metadata.name, update.metadata.name)
        plan = rollout.plan(set_, pods, revisions, self._clock())
        error = await failure_of(self._carry_out(set_, plan, current, update))
        await self._write_status(key, revisions, collisions)
        live = {*revisions, *(stateful_pods.revision(pod) for pod in pods)}
        await self._history.prune(kept, live, spec.revision_history_limit)
        if error is not None:
            raise error

    async def _carry_out(
        self, set_: StatefulSet, plan: Plan, current: ControllerRevision, update: ControllerRevision
    ) -> None:
        async def create(number: int) -> None:
            revision = current if rollout.is_of_current(set_, number) else update
            template = history.template_of(revision)
            await self._claim_volumes(set_, number)
            body = stateful_pods.body(set_, number, template, revision.metadata.name)
            await self._control.create(set_.metadata, body)

        await in_batches([lambda number=number: create(number) for number in plan.create])  # type: ignore[misc]
        for pod in plan.label:
            number = stateful_pods.ordinal(set_, pod)
            if number is not None:
                patch = {"metadata": {"labels": stateful_pods.identity(set_, number), "uid": pod.metadata.uid}}
                await self._control.patch(pod, patch)
        await self._control.delete_all(set_.metadata, plan.delete)

    async def _claim_volumes(self, set_: StatefulSet, number: int) -> None:
        """Create the PersistentVolumeClaims of a pod. They are never bound, and the pod does not wait for that."""
        for claim in stateful_pods.claims(set_, number):
            with contextlib.suppress(AlreadyExistsError):
                await self._client.create(PERSISTENT_VOLUME_CLAIMS, claim, set_.metadata.namespace)
                text = (
                    f"create Claim {claim['metadata']['name']} Pod {set_.metadata.name}-{number} in "
                    f"StatefulSet {set_.metadata.name} success"
                )
                self._control.event(set_.metadata, "Normal", "SuccessfulCreate", text)

    async def _write_status(self, key: Key, revisions: Revisions, collisions: int) -> None:
        """Compute the status from the current caches."""
        set_ = self._get(key)
        if set_ is None:
            return
        pods = [pod for pod in self._control.owned(set_.metadata, set_.spec.selector) if _is_member(set_, pod)]
        now = self._clock()
        status = rollout.status(set_, pods, revisions, collisions, now)
        await self._patch_status(set_, status_patch(status, set_.status))
        self._requeue_when_available(key, pods, set_.spec.min_ready_seconds, now)


def _is_member(set_: StatefulSet, pod: Pod) -> bool:
    return stateful_pods.ordinal(set_, pod) is not None
