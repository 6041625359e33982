"""The subject of holds that end because AlterShield lets go of a workload."""

from collections.abc import Callable

from altershield.api.ops_config_info import OpsConfigInfo
from altershield.workloads import ADAPTERS
from altershield.workloads.workload import Workload
from kube_base.access.queue import WorkQueue
from reconciler.cluster.caches import Caches
from reconciler.cluster.ownership import WorkloadKey
from reconciler.holds.hold_reconciler import HoldReconciler
from reconciler.subject import Controller, Parts, Subject


class HoldRoutes:
    """Handlers for the events of the caches. `old` is None for a new object, `new` is None for a deleted one."""

    def __init__(self, caches: Caches, queue: WorkQueue[WorkloadKey], lets_go: Callable[[str], bool]) -> None:
        self._caches = caches
        self._queue = queue
        self._lets_go = lets_go
        caches.settings.add_handler(self._setting)
        for workloads in caches.workloads.values():
            workloads.add_handler(self._workload)

    def _setting(self, old: OpsConfigInfo | None, new: OpsConfigInfo | None) -> None:
        if not self._caches.settings.synced or self._caches.in_effect().rollout:
            return
        for workloads in self._caches.workloads.values():
            for workload in workloads.all():
                self._workload(None, workload)

    def _workload(self, old: Workload | None, new: Workload | None) -> None:
        """The caches also lose a workload when its namespace is not governed any more."""
        workload = new or old
        if workload is not None and workload.steps is not None and self._lets_go(workload.metadata.namespace):
            self._queue.add(WorkloadKey(workload.group_kind, workload.metadata.namespace, workload.metadata.name))


def start(parts: Parts[WorkloadKey]) -> Controller[WorkloadKey]:
    holds = HoldReconciler(parts.client, parts.caches, parts.writer, parts.queue)
    HoldRoutes(parts.caches, parts.queue, holds.lets_go)

    def find_all() -> None:
        for adapter in ADAPTERS:
            parts.queue.add(WorkloadKey(adapter.resource.group_kind, "", ""))

    return Controller(reconcile=holds.reconcile, on_lead=find_all)


HOLDS = Subject("holds", start, writes=tuple((adapter.resource, ("patch",)) for adapter in ADAPTERS), workers=4)
