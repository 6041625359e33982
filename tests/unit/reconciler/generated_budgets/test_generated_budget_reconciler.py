"""When the reconciler reads a workload whose annotations ask for a budget, and what it writes and reports."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from altershield.api import labels
from altershield.api.annotations import GENERATE
from altershield.api.budgets import PodUnavailableBudget
from altershield.api.resources import POD_UNAVAILABLE_BUDGETS
from kube_base.access.errors import NotFoundError
from kube_base.access.events import ObjectRef
from kube_base.meta import ObjectMeta
from kube_base.resources import Resource
from reconciler.cluster.caches import Caches
from reconciler.cluster.ownership import WorkloadKey
from reconciler.generated_budgets.generated_budget_reconciler import GeneratedBudgetReconciler
from tests.support.workloads import GROUP_KINDS
from tests.unit.altershield.workloads import objects
from tests.unit.reconciler.filled import empty_caches, namespace, put
from tests.unit.reconciler.recording import Announcing

Object = dict[str, Any]
KEY = WorkloadKey(GROUP_KINDS["Deployment"], "shop", "web")
UID = "3f1c9a52-0d4e-4a43-8a30-1f6f3a1f0c11"


class World(Announcing):
    """Stands for the API server, the writer and the recorder of Events."""

    def __init__(self, caches: Caches) -> None:
        super().__init__()
        self.caches = caches
        self.version = 0
        self.live: Object | None = None
        self.reads = 0
        self.writes: list[str] = []
        self.events: list[str] = []
        self.lead()
        self.govern()

    def lead(self) -> None:
        """Start a reconciler."""
        own = GeneratedBudgetReconciler(self, self.caches, self, self)  # type: ignore[arg-type]
        self._reconcile = own.reconcile

    def govern(self, governed: bool = True, annotations: Object | None = None) -> None:
        self.version += 1
        put(self.caches, namespace("shop", self.version, governed=governed, annotations=annotations or {}))

    def ask(self, *, replicas: int = 3, uid: str = UID, **generate: str) -> None:
        """A user changes the annotations of the workload."""
        self.version += 1
        annotations = {f"{GENERATE}{key.replace('_', '-')}": value for key, value in generate.items()}
        metadata = {"name": "web", "namespace": "shop", "uid": uid, "annotations": annotations}
        metadata["resourceVersion"] = str(self.version)
        put(self.caches, objects.workload("Deployment", metadata=metadata, replicas=replicas))
        self.live = {"metadata": metadata, "spec": {"template": {"metadata": {"labels": {"app": "web"}}}}}

    def put_budget(self, name: str, *, own: bool = False, **spec: Any) -> None:
        self.version += 1
        owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": UID, "controller": True}
        metadata: Object = {"name": name, "namespace": "shop", "uid": name, "resourceVersion": str(self.version)}
        if own:
            metadata |= {"labels": {labels.MANAGED_BY: labels.MANAGED_BY_VALUE}, "ownerReferences": [owner]}
        target = {"targetRef": {key: owner[key] for key in ("apiVersion", "kind", "name")}}
        self.caches.budgets.budgets_informer.observe(
            msgspec.convert({"metadata": metadata, "spec": {**target, **spec}}, PodUnavailableBudget)
        )

    async def get(self, resource: Resource, name: str, namespace: str, *, as_: Any) -> Any:
        self.reads += 1
        if self.live is None:
            raise NotFoundError("gone", code=404)
        return msgspec.convert(self.live, as_)

    async def delete(self, resource: Resource, metadata: ObjectMeta) -> None:
        self.writes.append(f"delete {metadata.name}")

    async def patch_uncached(self, resource: Resource, metadata: ObjectMeta, operations: list[Object]) -> None:
        self.writes.append(f"patch {metadata.name} to {operations[0]['value']['maxUnavailable']}")

    async def create_uncached(self, resource: Resource, obj: Object, namespace: str) -> None:
        assert resource == POD_UNAVAILABLE_BUDGETS
        self.writes.append(f"create {obj['metadata']['name']}")

    def event(self, regarding: ObjectRef, type_: str, reason: str, message: str) -> None:
        assert (regarding.kind, regarding.name, regarding.uid) == ("Deployment", "web", UID)
        self.events.append(reason)

    async def reconcile(self) -> list[str]:
        """What is written."""
        self.writes.clear()
        await self._reconcile(KEY)
        return self.writes


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with empty_caches() as caches:
        yield World(caches)


async def test_workload_is_read_only_if_its_budgets_may_have_to_change(world: World) -> None:
    world.ask()
    assert await world.reconcile() == []
    assert world.reads == 0
    world.ask(pub="true", pub_maxUnavailable="1")
    assert await world.reconcile() == ["create web"]
    world.put_budget("web", own=True, maxUnavailable=1)
    world.reads = 0
    assert await world.reconcile() == []
    assert world.reads == 0
    world.ask(pub="true", pub_maxUnavailable="2")
    assert await world.reconcile() == ["patch web to 2"]
    world.ask(pub="false")
    assert await world.reconcile() == ["delete web"]


async def test_one_replica_gets_no_budget_and_its_workload_is_not_read_for_that(world: World) -> None:
    world.ask(pub="true", replicas=1)
    assert await world.reconcile() == []
    assert world.reads == 0
    world.put_budget("web", own=True, maxUnavailable=1)
    assert await world.reconcile() == ["delete web"]


async def test_namespace_that_is_not_governed_gets_no_budget(world: World) -> None:
    world.ask(pub="true")
    world.govern(False)
    assert await world.reconcile() == []
    world.govern(annotations={f"{GENERATE}pub": "true"})
    assert await world.reconcile() == ["create web"]
    world.ask()
    assert await world.reconcile() == ["create web"], "the annotation of the namespace asks for it"


async def test_workload_that_was_deleted_or_replaced_gets_no_budget(world: World) -> None:
    world.ask(pub="true")
    assert world.live is not None
    world.live["metadata"] = world.live["metadata"] | {"uid": "successor"}
    assert await world.reconcile() == []
    world.live = None
    assert await world.reconcile() == []
    assert world.reads == 2


async def test_generated_budget_goes_when_a_user_creates_one_and_the_event_is_raised_once(world: World) -> None:
    world.ask(pub="true", pub_maxUnavailable="1")
    world.put_budget("web", own=True, maxUnavailable=1)
    world.put_budget("mine", maxUnavailable=3)
    assert await world.reconcile() == ["delete web"]
    for _ in range(2):
        await world.reconcile()
    assert world.events == ["BudgetSkipped"]


async def test_event_about_wrong_annotations_is_raised_once_for_each_text_also_by_the_next_leader(world: World) -> None:
    for value in ("yes", "yes", "no", "true", "no"):
        world.ask(pub=value)
        await world.reconcile()
    assert world.events == ["BudgetInvalid"] * 2
    world.lead()
    await world.reconcile()
    assert world.events == ["BudgetInvalid"] * 2


async def test_event_about_wrong_annotations_is_raised_again_after_a_correction_if_the_first_one_is_gone(
    world: World,
) -> None:
    world.ask(pub="no")
    await world.reconcile()
    world.announced.clear()
    await world.reconcile()
    assert world.events == ["BudgetInvalid"]
    world.govern(False)
    await world.reconcile()
    world.govern()
    await world.reconcile()
    assert world.events == ["BudgetInvalid"] * 2
