"""Controller: creates, updates and deletes the budgets that annotations ask for.

The garbage collector deletes the budgets of a deleted workload.
"""

from typing import Any

import msgspec

from altershield.workloads import BY_KIND
from altershield.workloads.workload import Workload, generates
from kube_base.access.client import Client
from kube_base.access.errors import NotFoundError
from kube_base.access.events import WARNING, EventRecorder, ObjectRef
from kube_base.meta import ObjectMeta
from reconciler.cluster.caches import Caches
from reconciler.cluster.ownership import WorkloadKey
from reconciler.cluster.writer import Writer
from reconciler.generated_budgets.budget_plan import (
    RESOURCES,
    Budget,
    LiveWorkload,
    Plan,
    amount,
    is_by_user,
    is_of,
    plan,
)
from reconciler.generated_budgets.wanted import Amount, BudgetKind, Invalid, wanted_amount
from reconciler.machinery.announcer import identity


class _Template(msgspec.Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()


class _Spec(msgspec.Struct, frozen=True):
    selector: dict[str, Any] = {}
    template: _Template = _Template()


class _Live(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    spec: _Spec = _Spec()


class GeneratedBudgetReconciler:
    """Its keys are workloads."""

    def __init__(self, client: Client, caches: Caches, writer: Writer, recorder: EventRecorder) -> None:
        self._client = client
        self._caches = caches
        self._writer = writer
        self._recorder = recorder
        self._reported: dict[tuple[WorkloadKey, BudgetKind], str] = {}
        """The message of the last Event, for workloads whose annotations ask for a budget that they do not get."""

    async def reconcile(self, key: WorkloadKey) -> float | None:
        """Bring the budgets of the workload in line with its annotations. The workload is read from the API server, but
        only if the caches show that a budget may have to change."""
        workload = self._caches.workload(key)
        if workload is None or not self._caches.governed(key.namespace):
            for kind in BudgetKind:
                self._reported.pop((key, kind), None)
            return None
        amounts = {kind: wanted_amount(kind, workload, self._default(key.namespace)) for kind in BudgetKind}
        unsettled = [kind for kind, wanted in amounts.items() if not self._is_settled(kind, wanted, workload)]
        if not unsettled:
            return None
        live = await self._read(workload)
        if live is None:
            return None  # the workload was deleted
        for kind in unsettled:
            await self._carry_out(key, kind, plan(kind, amounts[kind], live, self._budgets(kind, key.namespace)))
        return None

    def _default(self, namespace: str) -> dict[str, str]:
        found = self._caches.namespaces.get("", namespace)
        return dict(generates(found.metadata.annotations)) if found is not None else {}

    def _budgets(self, kind: BudgetKind, namespace: str) -> list[Budget]:
        return self._caches.budgets.of(RESOURCES[kind], namespace)

    def _is_settled(self, kind: BudgetKind, wanted: Amount | Invalid | None, workload: Workload) -> bool:
        """Whether the caches show that the generated budget is right. They do not if users have budgets: only the
        template of the workload shows whether such a budget covers its pods."""
        budgets = self._budgets(kind, workload.metadata.namespace)
        own = [each for each in budgets if is_of(each, workload.metadata.uid)]
        if wanted is None or (not isinstance(wanted, Invalid) and workload.replicas <= 1):
            return not own
        by_users = any(map(is_by_user, budgets))
        return not by_users and [amount(each) for each in own] == [wanted]

    async def _read(self, workload: Workload) -> LiveWorkload | None:
        resource, metadata = BY_KIND[workload.group_kind].resource, workload.metadata
        try:
            live = await self._client.get(resource, metadata.name, metadata.namespace, as_=_Live)
        except NotFoundError:
            return None
        if live.metadata.uid != metadata.uid:
            return None
        return LiveWorkload(
            resource, live.metadata, workload.replicas, live.spec.selector, live.spec.template.metadata.labels
        )

    async def _carry_out(self, key: WorkloadKey, kind: BudgetKind, found: Plan) -> None:
        resource = RESOURCES[kind]
        for budget in found.delete:
            await self._writer.delete(resource, budget.metadata)
        if found.replace is not None:
            budget, spec = found.replace
            await self._writer.patch_uncached(
                resource, budget.metadata, [{"op": "replace", "path": "/spec", "value": spec}]
            )
        if found.create is not None:
            # not with server-side apply, which would adopt an object of this name that the cache does not have yet
            await self._writer.create_uncached(resource, found.create, key.namespace)
        self._report(key, kind, found)

    def _report(self, key: WorkloadKey, kind: BudgetKind, found: Plan) -> None:
        """Raise an Event if the workload gets no budget, unless the last Event gave the same reason. A new leader finds
        the Event of the last one by its identity."""
        reported = self._reported.pop((key, kind), "")
        if not found.reason:
            return
        self._reported[key, kind] = found.message
        workload = self._caches.workload(key)
        if reported != found.message and workload is not None:
            regarding, own = _reference(workload), identity(workload.metadata.uid, kind, found.message)
            if found.reason == "BudgetInvalid":
                self._recorder.announce(regarding, WARNING, "BudgetInvalid", found.message, identity=own)
            else:
                self._recorder.announce(regarding, WARNING, "BudgetSkipped", found.message, identity=own)


def _reference(workload: Workload) -> ObjectRef:
    resource, metadata = BY_KIND[workload.group_kind].resource, workload.metadata
    return ObjectRef(resource.api_version, resource.kind, metadata.name, metadata.namespace, metadata.uid)
