"""The disruption controller: keeps the status of PodDisruptionBudgets, which says how many pods may be evicted now.
`budgets` computes it. Only this controller raises `disruptionsAllowed`; each eviction lowers it."""

import contextlib

from kube_base.access.client import PatchType
from kube_base.access.errors import ConflictError, KubernetesError, NotFoundError
from kube_base.access.events import EventRecorder, ObjectRef
from kube_base.access.queue import WorkQueue
from kube_base.resources import DISRUPTION_BUDGETS, PODS
from kube_base.times import rfc3339, unix
from kube_sandbox.cluster.caches import NAMESPACE, Caches
from kube_sandbox.cluster.disruptions import budgets
from kube_sandbox.cluster.disruptions.kinds import Budget, BudgetStatus
from kube_sandbox.cluster.disruptions.scales import Scales, ScaleUnknownError
from kube_sandbox.cluster.kinds import Object, Pod, find
from kube_sandbox.cluster.work import Key, work

_STALE = 120.0
"""Seconds after which the condition DisruptionTarget of a pod that is not terminating becomes False."""


class Disruptions:
    def __init__(self, caches: Caches, recorder: EventRecorder) -> None:
        self._clock = caches.clock
        self._budgets = caches.budgets
        self._pods = caches.pods
        self._recorder = recorder
        self._scales = Scales(caches)
        self._queue: WorkQueue[Key] = WorkQueue()
        caches.budgets.add_handler(self._budget_changed)
        caches.pods.add_handler(self._pod_changed)

    async def run(self) -> None:
        await work(self._queue, self._reconcile, workers=2)

    def _budget_changed(self, old: Budget | None, new: Budget | None) -> None:
        if new is not None:
            self._queue.add(Key(new.metadata.namespace, new.metadata.name))

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        pod = new or old
        if pod is None:
            return
        covering = [
            budget
            for budget in self._budgets.by_index(NAMESPACE, pod.metadata.namespace)
            if budgets.selected(budget, (pod,))
        ]
        for budget in covering:
            self._queue.add(Key(budget.metadata.namespace, budget.metadata.name))
        if len(covering) > 1:
            names = f'"{pod.metadata.namespace}"/"{pod.metadata.name}"'
            chosen = covering[0].metadata.name
            text = f'Pod {names} matches multiple PodDisruptionBudgets.  Chose "{chosen}" arbitrarily.'
            self._recorder.event(ObjectRef.of(PODS, pod.metadata), "Warning", "MultiplePodDisruptionBudgets", text)

    async def _reconcile(self, key: Key) -> None:
        budget = self._budgets.get(*key)
        if budget is None:
            return
        pods = budgets.selected(budget, self._pods.by_index(NAMESPACE, key.namespace))
        if not pods:
            self._event(budget, "Normal", "NoPods", "No matching pods found")
        scale = 0
        if budgets.needs_scale(budget.spec):
            try:
                scale = await self._scales.sum(pods)
            except (ScaleUnknownError, KubernetesError) as error:
                text = f"Failed to calculate the number of expected pods: {error}"
                self._event(budget, "Warning", "CalculateExpectedPodCountFailed", text)
                await self._write(budget, budgets.failed(budget, str(error), self._clock()))
                return
            if any(pod.metadata.controller is None for pod in pods):
                self._event(budget, "Warning", "UnmanagedPods", _UNMANAGED)
        found = budgets.sync(budget, pods, scale, self._clock())
        for pod in found.overdue:
            # The real controller prints the namespace two times, too.
            text = f"Pod was expected by PDB {key.namespace}/{key.namespace} to be deleted but it wasn't"
            self._recorder.event(ObjectRef.of(PODS, pod.metadata), "Warning", "NotDeleted", text)
        await self._write(budget, found.status)
        if found.recheck is not None:
            self._queue.add_after(key, found.recheck + 1)

    async def _write(self, budget: Budget, status: BudgetStatus) -> None:
        if patch := budgets.patch(budget, status):
            name, namespace = budget.metadata.name, budget.metadata.namespace
            with contextlib.suppress(NotFoundError):
                await self._budgets.patch(patch, name, namespace, subresource="status")

    def _event(self, budget: Budget, type_: str, reason: str, message: str) -> None:
        self._recorder.event(ObjectRef.of(DISRUPTION_BUDGETS, budget.metadata), type_, reason, message)


_UNMANAGED = (
    "Pods selected by this PodDisruptionBudget were found to be unmanaged. As a result, the status of the PDB cannot be"
    " calculated correctly, which may result in undefined behavior. To account for these pods please set"
    ' ".spec.minAvailable" field of the PDB to an integer value.'
)


class StaleConditions:
    """Sets the condition DisruptionTarget to False on pods that were not deleted after it became True."""

    def __init__(self, caches: Caches) -> None:
        self._clock = caches.clock
        self._pods = caches.pods
        self._queue: WorkQueue[Key] = WorkQueue()
        caches.pods.add_handler(self._pod_changed)

    async def run(self) -> None:
        await work(self._queue, self._reconcile, workers=1)

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if new is not None and (left := self._left(new)) is not None:
            self._queue.add_after(Key(new.metadata.namespace, new.metadata.name), left)

    def _left(self, pod: Pod) -> float | None:
        """Seconds until the condition of the pod is stale; None if it cannot become stale."""
        found = find(pod.status.conditions, "DisruptionTarget")
        if not pod.active or found is None or found.status != "True" or found.reason == "TerminationByKubelet":
            return None
        return max(0.0, unix(found.last_transition_time) + _STALE - self._clock())

    async def _reconcile(self, key: Key) -> None:
        pod = self._pods.get(*key)
        left = self._left(pod) if pod is not None else None
        if pod is None or left is None:
            return
        if left > 0:
            self._queue.add_after(key, left)
            return
        since = rfc3339(self._clock())
        condition: Object = {"type": "DisruptionTarget", "status": "False", "lastTransitionTime": since}
        condition |= {"reason": None, "message": None}
        patch = {"metadata": {"uid": pod.metadata.uid}, "status": {"conditions": [condition]}}
        with contextlib.suppress(NotFoundError, ConflictError):
            await self._pods.patch(patch, *reversed(key), subresource="status", type_=PatchType.STRATEGIC)
