"""The subject of releases. A workload is reconciled after the events that may change a decision about its releases.

An event only queues a workload. An extra reconcile does no harm. After a missed event, the workload is reconciled at
its next event or resync.
"""

import asyncio
from collections.abc import Callable

from altershield.api.change_workload import KIND
from altershield.api.gates.limits import ReleaseLimit
from altershield.api.gates.overrides import ReleaseOverride
from altershield.api.ops_config_info import OpsConfigInfo
from altershield.api.resources import CHANGE_WORKLOADS
from altershield.api.rights import Right
from altershield.api.rollout import Phase
from altershield.gates import overrides
from altershield.releases import history
from altershield.workloads import ADAPTERS
from altershield.workloads.nodes import Node
from altershield.workloads.pods import Pod
from altershield.workloads.sets import Set
from altershield.workloads.workload import Workload
from kube_base.access.queue import WorkQueue, as_backlog
from kube_base.access.time_slices import time_slices
from kube_base.resources import PODS
from reconciler.cluster.batch import Batch
from reconciler.cluster.caches import Caches
from reconciler.cluster.gates import LIMITS, OVERRIDES, WATCHES
from reconciler.cluster.gauges import Gauges
from reconciler.cluster.ownership import WorkloadKey, workload_key
from reconciler.cluster.release import Release
from reconciler.policies.acceptance import rule_of
from reconciler.releases.gauges import families
from reconciler.releases.metrics import ReleaseMetrics
from reconciler.releases.pods.health import Timing
from reconciler.releases.reads.groups import PodGroupsCache
from reconciler.releases.reconciler import ReleaseReconciler
from reconciler.releases.step_gauges import step_families
from reconciler.subject import CHECKING_WORKERS, Controller, Parts, Subject


class ReleaseRoutes:
    """Handlers for the events of the caches. `old` is None for a new object, `new` is None for a deleted one."""

    def __init__(self, caches: Caches, queue: WorkQueue[WorkloadKey], groups_cache: PodGroupsCache) -> None:
        self._caches = caches
        self._queue = queue
        self._groups_cache = groups_cache
        self._setting_changed = asyncio.Event()
        self._gate_changed = asyncio.Event()
        caches.settings.add_handler(self._setting)
        for watch in WATCHES:
            caches[watch].add_handler(self._gate)
        caches[OVERRIDES].add_handler(self._override)
        caches[LIMITS].add_handler(self._limit)
        for workloads in caches.workloads.values():
            workloads.add_handler(self._workload)
        for sets in caches.sets.values():
            sets.add_handler(self._set)
        caches.pods.add_handler(self._pod)
        caches.releases.add_handler(self._release)
        caches.batches.add_handler(self._batch)
        caches.nodes.add_handler(self._node)

    async def follow(self) -> None:
        """Queue workloads after changes of settings and gates, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.queue_after_settings())
            group.create_task(self.queue_after_gates())

    async def queue_after_settings(self) -> None:
        """Queue all workloads after each change of a setting, until cancelled."""
        await self._queue_after(self._setting_changed, lambda release: True)

    async def queue_after_gates(self) -> None:
        """Queue the workloads that wait before a step, after each change of a gate, until cancelled."""
        await self._queue_after(self._gate_changed, lambda release: release.status.rollout.phase == Phase.HELD)

    async def _queue_after(self, changed: asyncio.Event, wanted: Callable[[Release], bool]) -> None:
        """Queue workloads after each change. It does not block the event loop, even with tens of thousands of them."""
        slices = time_slices()
        while True:
            await changed.wait()
            changed.clear()
            for release in self._caches.releases.all():
                if wanted(release):
                    with as_backlog():
                        self._queue.add(workload_key(release))
                await slices.yield_if_over()

    def _setting(self, old: OpsConfigInfo | None, new: OpsConfigInfo | None) -> None:
        if not self._caches.settings.synced:
            return  # no workload has been reconciled: this begins after the first lists, which queue all workloads
        if old is not new and (old is None or new is None or (old.spec, old.status) != (new.spec, new.status)):
            self._setting_changed.set()

    def _gate(self, old: object, new: object) -> None:
        if old is not new:
            self._gate_changed.set()

    def _limit(self, old: ReleaseLimit | None, new: ReleaseLimit | None) -> None:
        """The releases that wait for it may not have to any more. It says itself when one has its turn."""
        if old is None or new is None or old.metadata.generation != new.metadata.generation:
            self._gate_changed.set()

    def _override(self, old: ReleaseOverride | None, new: ReleaseOverride | None) -> None:
        """A use belongs to the release, and the cache may show it after the release."""
        if new is None or not new.status.uses or (old is not None and old.status.uses == new.status.uses):
            return
        namespace, kind, name = overrides.target(new, self._caches.system_namespace)
        for adapter in ADAPTERS:
            if adapter.resource.kind == kind:
                self._queue.add(WorkloadKey(adapter.resource.group_kind, namespace, name))

    def _workload(self, old: Workload | None, new: Workload | None) -> None:
        for workload in (old, new):
            if workload is not None:
                metadata = workload.metadata
                self._queue.add(WorkloadKey(workload.group_kind, metadata.namespace, metadata.name))

    def _node(self, old: Node | None, new: Node | None) -> None:
        """The steps of a release may select the node, and it may be ready for an eviction now."""
        if old is not None and new is not None and (old.labels, old.ready) == (new.labels, new.ready):
            return
        for adapter in ADAPTERS:
            if not adapter.evicts:
                continue
            for workload in self._caches.workloads[adapter.resource.group_kind].all():
                if workload.steps is not None:
                    self._workload(None, workload)

    def _set(self, old: Set | None, new: Set | None) -> None:
        for each in (old, new):
            if each is not None:
                key = WorkloadKey(each.owner.group_kind, each.metadata.namespace, each.owner.name)
                if old is None or new is None or old.owner != new.owner:
                    # The pods of the set may have been in the cache before the set. The groups of the other pods stay:
                    # anybody may create and delete sets, and new groups do not know when a pod was last up.
                    for pod in self._caches.pods_of_set(each):
                        self._groups_cache.on_pod(key, pod, gone=False)
                self._queue.add(key)

    def _pod(self, old: Pod | None, new: Pod | None) -> None:
        if old is not None and new is not None and _decisive_fields(old) == _decisive_fields(new):
            return  # most changes of a pod do not affect a decision
        # after a gap of the watch, one change may replace a pod by another one of the same name
        stays = old is not None and new is not None and (old.owner, old.metadata.uid) == (new.owner, new.metadata.uid)
        for pod in (old, new):
            key = self._caches.workload_of(pod) if pod is not None else None
            if pod is not None and key is not None:
                if pod is new or not stays:
                    self._groups_cache.on_pod(key, pod, gone=pod is not new)
                self._queue.add(key)

    def _release(self, old: Release | None, new: Release | None) -> None:
        for release in (old, new):
            if release is not None:
                self._queue.add(workload_key(release))

    def _batch(self, old: Batch | None, new: Batch | None) -> None:
        batch = new or old
        if batch is None:
            return
        release = self._caches.releases.get(*batch.release)
        if release is not None:
            key = workload_key(release)
            self._groups_cache.on_batch(key, batch, release, gone=new is None)
            self._queue.add(key)


def _decisive_fields(pod: Pod) -> tuple[object, ...]:
    """The fields of a pod that decisions depend on."""
    return (
        pod.metadata.uid,
        pod.owner,
        pod.hash,
        pod.version,
        pod.finished,
        pod.exists,
        pod.ready,
        pod.ready_at,
        pod.restarts,
        pod.node,
        pod.packed_ip,
        pod.unscheduled,
        pod.creating,
        pod.starting,
        pod.trouble,
    )


def start(parts: Parts[WorkloadKey]) -> Controller[WorkloadKey]:
    options = parts.options
    releases = ReleaseReconciler(
        parts.client,
        parts.caches,
        parts.writer,
        parts.recorder,
        ReleaseMetrics(parts.registry),
        parts.slewed_clock,
        timing=Timing(options.start_timeout, options.observe_seconds),
        batch_wait=options.batch_wait,
        history_limit=options.history_limit,
        turns=parts.turns,
        server=parts.server,
        url_rule=rule_of(parts.allowed_hosts),
        separation_of_duties=options.separation_of_duties,
    )
    routes = ReleaseRoutes(parts.caches, parts.queue, releases.groups_cache)
    parts.turns.add_handler(parts.queue.add)
    parts.registry.register(Gauges(lambda: families(parts.caches)))
    parts.registry.register(Gauges(lambda: step_families(parts.caches, parts.slewed_clock())))
    # another leader may have decided since an earlier term of this process
    return Controller(
        reconcile=releases.reconcile,
        on_lead=releases.forget,
        # a setting that changes before this process leads is found here: the event stays set
        task=routes.follow,
    )


RELEASES = Subject(
    "releases",
    start,
    kinds=(KIND,),
    rights=(
        Right((CHANGE_WORKLOADS,), "update", "finalizers", why="For owner references with blockOwnerDeletion."),
        Right(
            (CHANGE_WORKLOADS,),
            "get list watch create patch delete",
            why="`get` after a creation without an answer, and before the verdict of a callback is stored.",
        ),
        Right((CHANGE_WORKLOADS,), "patch", "status"),
        Right(
            (PODS,),
            "create",
            "eviction",
            why="Old pods of a workload whose controller replaces none while a release in steps holds it.",
        ),
    ),
    writes=(
        *((adapter.resource, ("patch",)) for adapter in ADAPTERS),
        *((adapter.intermediate, ("patch",)) for adapter in ADAPTERS if adapter.intermediate is not None),
        (PODS, ("patch", "delete", "create eviction")),
        (CHANGE_WORKLOADS, ("create", "patch", "patch status", "delete")),
        (history.RESOURCE, ("create", "patch", "delete")),
    ),
    workers=CHECKING_WORKERS,
)
