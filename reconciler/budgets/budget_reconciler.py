"""Controller: keeps the numbers in the status of each PodUnavailableBudget, drops records of disruptions that have
happened or can no longer happen, and reports disruptions that no gatekeeper reviewed."""

from collections.abc import Callable, Iterable, Mapping

import msgspec

from altershield.api.announcements import Announcement, announcement
from altershield.api.budgets import REMOVING, BudgetMode, Loss, PodUnavailableBudget
from altershield.api.resources import POD_UNAVAILABLE_BUDGETS
from altershield.budget_caches.caches import BudgetCaches
from altershield.budget_caches.live_pods import read_pod
from altershield.budgets.losses import lost_pods, remembered, reportable
from altershield.budgets.numbers import Counted, numbers
from altershield.budgets.overlap import overlapping
from altershield.budgets.pods import Pod
from altershield.budgets.records import Settled, ended_by_break_glass, settled
from kube_base.access.client import Client
from kube_base.access.errors import NotFoundError
from kube_base.access.events import EventRecorder, ObjectRef
from kube_base.meta import version_number
from kube_base.resources import PODS
from kube_base.times import rfc3339
from reconciler.budgets.budget_status import wait, with_conditions
from reconciler.budgets.departures import Departures, Gone
from reconciler.cluster.caches import Key
from reconciler.cluster.metrics import DisruptionMetrics
from reconciler.cluster.writer import Writer
from reconciler.machinery.announcer import Announcer

_RECONCILE_EVERY = 30.0
"""Seconds after which a budget is reconciled again, because records expire without an event."""


class BudgetReconciler:
    """Its keys are the namespace and name of a PodUnavailableBudget. `clock` returns the API server's time."""

    def __init__(
        self,
        client: Client,
        caches: BudgetCaches,
        writer: Writer,
        recorder: EventRecorder,
        metrics: DisruptionMetrics,
        departures: Departures,
        clock: Callable[[], float],
    ) -> None:
        self._client = client
        self._caches = caches
        self._writer = writer
        self._announcer = Announcer(recorder, clock)
        self._metrics = metrics
        self._departures = departures
        self._clock = clock
        self._written: dict[Key, float] = {}
        """When the status was written last."""

    async def reconcile(self, key: Key) -> float | None:
        """Update the status, and report lost pods."""
        budget = self._caches.budgets_informer.get(*key)
        if budget is None or budget.metadata.deletion_timestamp is not None:
            self._written.pop(key, None)
            return None
        if not self._caches.is_filled(key[0]):
            return _RECONCILE_EVERY  # the budget is queued when all pods of the namespace are listed
        gone = self._departures.take(key)
        try:
            return await self._update(budget, gone)
        except Exception:
            self._departures.put_back(key, gone)
            raise

    async def _update(self, budget: PodUnavailableBudget, gone: Mapping[str, Gone]) -> float | None:
        """Bring the status up to date. Lost pods are reported after the status remembers them, so that each is reported
        once."""
        key = budget.metadata.namespace, budget.metadata.name
        lost = await self._lost(budget, gone)
        stored, budget = budget, await self._with_possible_version(budget)
        found = await self._count(budget)
        kept = await self._settle(budget, found)
        now = self._clock()
        generation = budget.metadata.generation
        figures = numbers(found, kept)
        status = with_conditions(
            kept.on(budget.status, figures, generation), figures, self._overlapping(budget), generation, now
        )
        status = remembered(status, lost, now)
        regarding, uid = ObjectRef.of(POD_UNAVAILABLE_BUDGETS, budget.metadata), budget.metadata.uid
        self._announcer.write(regarding, uid, stored.status.announcements)
        if status == stored.status:
            return _RECONCILE_EVERY
        delay = wait(budget, status, self._written.get(key, 0.0), now)
        if delay:
            return delay
        used = [
            announcement(
                "BreakGlassUsed",
                f"{record.by} passed this budget by break glass: {record.operation} of the pod {record.name}",
                now,
            )
            for record in ended_by_break_glass(budget.status, status)
        ]
        new = [*_ungated(lost, now), *used]
        announcements = self._announcer.with_new(uid, status.announcements, new)
        await self._writer.replace_status(
            self._caches.budgets_informer,
            msgspec.structs.replace(budget, status=msgspec.structs.replace(status, announcements=announcements)),
        )
        self._written[key] = now
        self._metrics.ungated_deletions.inc(len(lost))
        self._metrics.break_glass.inc(len(used))
        self._announcer.write(regarding, uid, new)  # the status may not have space for all
        return _RECONCILE_EVERY

    async def _with_possible_version(self, budget: PodUnavailableBudget) -> PodUnavailableBudget:
        """The budget with a `podsResourceVersion` that pods of this cluster have reached. Gatekeepers would wait for a
        later one for ever: a person may have written it, or a backup of another cluster may contain it."""
        wanted, metadata = version_number(budget.status.pods_resource_version), budget.metadata
        if wanted <= self._caches.seen:
            return budget
        async for page in self._client.pages(PODS, metadata.namespace, limit=1):
            if wanted > version_number(page.metadata.resource_version):
                status = msgspec.structs.replace(budget.status, pods_resource_version=page.metadata.resource_version)
                return msgspec.structs.replace(budget, status=status)
            break
        return budget

    async def _count(self, budget: PodUnavailableBudget) -> Counted:
        found, _ = self._caches.counted(budget)
        if found.unread:
            for owner in found.unread:
                await self._caches.scales.read(owner, budget.metadata.namespace)
            found, _ = self._caches.counted(budget)
        return found

    async def _settle(self, budget: PodUnavailableBudget, found: Counted) -> Settled:
        live: dict[str, Pod | None] = {}
        namespace = budget.metadata.namespace

        def decided() -> Settled:
            return settled(
                budget.status,
                find=lambda name: self._caches.pod(namespace, name),
                covered=lambda pod: pod.packed_uid in found.pods,
                seen=self._caches.seen,
                now=self._clock(),
                live=live,
            )

        kept = decided()
        if not kept.unread:
            return kept
        for name in kept.unread:
            live[name] = await read_pod(self._client, namespace, name)
        return decided()

    def _overlapping(self, budget: PodUnavailableBudget) -> Iterable[str]:
        """The names of other budgets of the namespace that cover a pod of this one."""
        namespace, caches = budget.metadata.namespace, self._caches
        groups, scales = caches.index.groups(namespace), caches.scales.of(namespace)
        return overlapping(budget, caches.budgets(namespace), groups, scales)

    async def _lost(self, budget: PodUnavailableBudget, gone: Mapping[str, Gone]) -> dict[str, Loss]:
        """The lost pods that are to be reported, by uid. The budget is read from the API server, because the cache may
        lack the record of a deletion that the cache of pods has already."""
        if budget.spec.mode != BudgetMode.ENFORCE or not set(REMOVING) <= set(budget.spec.protect_operations):
            return {}
        namespace = budget.metadata.namespace
        groups, scales = self._caches.index.groups(namespace), self._caches.scales.of(namespace)
        found = lost_pods(budget, groups, scales, self._clock())
        found |= {uid: Loss(each.name, rfc3339(each.at)) for uid, each in gone.items()}
        if not reportable(budget.status, found, ()):
            return {}
        try:
            live = await self._client.get(
                POD_UNAVAILABLE_BUDGETS, budget.metadata.name, budget.metadata.namespace, as_=PodUnavailableBudget
            )
        except NotFoundError:
            return {}
        return reportable(live.status, found, {*live.status.disrupted_pods, *budget.status.disrupted_pods})


def _ungated(lost: Mapping[str, Loss], now: float) -> list[Announcement]:
    """The Event about lost pods, if there are any."""
    names = sorted(each.name for each in lost.values())
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    message = f"no gatekeeper was asked before these pods were deleted or evicted: {', '.join(names[:3])}{more}"
    return [announcement("UngatedDeletion", message, now)] if names else []
