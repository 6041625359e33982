"""The common base of the workload controllers. Deployments own ReplicaSets; all other kinds own pods."""

from collections.abc import Awaitable, Sequence
from typing import Any, Generic, Protocol, TypeVar

from kube_base.access.errors import KubernetesError
from kube_base.access.queue import WorkQueue
from kube_base.resources import Resource
from kube_sandbox.cluster import availability, selectors
from kube_sandbox.cluster.caches import Caches
from kube_sandbox.cluster.informer import Informer
from kube_sandbox.cluster.kinds import LabelSelector, Meta, Object, Pod
from kube_sandbox.cluster.ownership import HasMeta
from kube_sandbox.cluster.work import Key, work


class _Spec(Protocol):
    @property
    def selector(self) -> LabelSelector: ...


class Workload(Protocol):
    @property
    def metadata(self) -> Meta: ...
    @property
    def spec(self) -> _Spec: ...


W = TypeVar("W", bound=Workload)


class WorkloadController(Generic[W]):
    """Queues the workloads of one kind when they or their dependents change. `_reconcile` handles one workload."""

    def __init__(self, caches: Caches, resource: Resource, dependents: Informer[Any], *, workers: int) -> None:
        self._client = caches.client
        self._clock = caches.clock
        self._workloads: Informer[W] | None = None
        """None while the API server does not serve the kind."""
        self._queue: WorkQueue[Key] = WorkQueue()
        self._resource = resource
        self._workers = workers
        dependents.add_handler(self._dependent_changed)

    def follow(self, workloads: Informer[W]) -> None:
        """Reconcile the workloads of this informer."""
        self._workloads = workloads
        workloads.add_handler(self._workload_changed)

    async def run(self) -> None:
        """Reconcile until cancelled."""
        await work(self._queue, self._reconcile, workers=self._workers)

    async def _reconcile(self, key: Key) -> None:
        raise NotImplementedError

    def _workload_changed(self, _: W | None, new: W | None) -> None:
        if new is not None:
            self._queue.add(_key(new))

    def _dependent_changed(self, old: HasMeta | None, new: HasMeta | None) -> None:
        for obj in (old, new):
            if obj is None:
                continue
            if (owner := obj.metadata.controller) is not None:
                if owner.kind == self._resource.kind:
                    self._queue.add(Key(obj.metadata.namespace, owner.name))
                continue
            for workload in self._workloads.all() if self._workloads else ():  # an orphan, which a workload may adopt
                if workload.metadata.namespace == obj.metadata.namespace and selectors.matches(
                    workload.spec.selector, obj.metadata.labels
                ):
                    self._queue.add(_key(workload))

    def _get(self, key: Key) -> W | None:
        """The current workload from the cache."""
        return self._workloads.get(*key) if self._workloads else None

    async def _patch_status(self, workload: W, status: Object, **metadata: Any) -> None:
        """Write the status and metadata; without either, send no request."""
        if self._workloads is not None and (status or metadata):
            found = workload.metadata
            body = {"metadata": {"uid": found.uid, **metadata}, **({"status": status} if status else {})}
            await self._workloads.patch(body, found.name, found.namespace, subresource="status")

    def _requeue_when_available(self, key: Key, pods: Sequence[Pod], min_ready_seconds: int, now: float) -> None:
        """Queue the workload for the time when the next of these pods becomes available. `now` is the time of the
        status that was written: a pod that has become available since then is not in it."""
        wait = availability.next_change(pods, min_ready_seconds, now)
        if wait is not None:
            self._queue.add_after(key, wait)


async def failure_of(action: Awaitable[None]) -> KubernetesError | None:
    """The error of an action, so that the caller can write the status before it raises the error."""
    try:
        await action
    except KubernetesError as error:
        return error
    return None


def _key(workload: Workload) -> Key:
    return Key(workload.metadata.namespace, workload.metadata.name)
