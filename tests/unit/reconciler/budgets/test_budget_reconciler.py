"""The status of a PodUnavailableBudget: numbers, records, conditions, and disruptions that nobody was asked about."""

import asyncio
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from altershield.api.budgets import (
    MAX_LOSSES,
    DisruptionRecord,
    Operation,
    PodUnavailableBudget,
    PodUnavailableBudgetStatus,
)
from altershield.budget_caches.caches import BudgetCaches
from altershield.budgets import pods
from altershield.budgets.pods import Pod
from altershield.workloads.meta import Owner
from kube_base.access.client import Client
from kube_base.access.configuration import Configuration
from kube_base.access.errors import ConflictError, NotFoundError
from kube_base.access.events import ObjectRef
from kube_base.access.queue import WorkQueue
from kube_base.resources import DEPLOYMENTS, REPLICA_SETS, Resource
from kube_base.times import rfc3339
from reconciler.budgets.budget_reconciler import BudgetReconciler
from reconciler.budgets.departures import Departures
from reconciler.budgets.subject import BudgetRoutes
from reconciler.cluster.caches import Key
from reconciler.cluster.metrics import DisruptionMetrics
from tests.unit.altershield.budgets import builders
from tests.unit.altershield.budgets.builders import DEPLOYMENT, LABELS, NOW, SET, scaled, wire
from tests.unit.reconciler.recording import Announcing

KEY = (builders.NAMESPACE, "web")


class World(Announcing):
    """Caches that tests fill, and what stands for the API server, the writer and the recorder of Events."""

    def __init__(self, client: Client) -> None:
        super().__init__()
        self.now = NOW
        self.caches = BudgetCaches(client, lambda namespace: True, lambda namespace: False)
        for informer in self.caches.counted_informers:
            informer._reflector.synced.set()
        self.caches.namespaces.has_budget = lambda namespace: True  # type: ignore[method-assign]
        self.live: dict[str, Pod] = {}
        self.stored: PodUnavailableBudget | None = None
        self.writes = 0
        self.lists = 0
        self.while_read: Callable[[], None] = lambda: None
        """Called while the budget is read live."""
        self.events: list[tuple[str, str]] = []
        self.queue: WorkQueue[Key] = WorkQueue()
        self.registry = CollectorRegistry()
        self.metrics = DisruptionMetrics(self.registry)
        self.restart()
        for resource, owner, above in ((DEPLOYMENTS, DEPLOYMENT, None), (REPLICA_SETS, SET, DEPLOYMENT)):
            found = scaled(owner, 5, above=above) if above is not None else scaled(owner, 5)
            self.caches._scaled[resource].observe(found)
        for number in range(1, 6):
            self.put(number)

    def restart(self) -> None:
        """Another reconciler leads, which has not seen the events so far."""
        departures = Departures(lambda: self.now)
        BudgetRoutes(self.caches, self.queue, departures)
        self._reconcile = BudgetReconciler(
            self,
            self.caches,
            self,
            self,
            self.metrics,
            departures,
            lambda: self.now,  # type: ignore[arg-type]
        ).reconcile

    def put(self, number: int, version: int = 0, **fields: Any) -> None:
        version = version or number
        made = wire(f"web-{number}", uid=builders.uid(number), version=version, **fields)
        pod = pods.read(msgspec.json.encode(made))
        self.live[pod.name] = pod
        self.caches.pods_informer.observe(pod)
        self.saw(version)

    def delete(self, number: int, version: int) -> None:
        name = f"web-{number}"
        del self.live[name]
        self.caches.pods_informer._cache.drop((builders.NAMESPACE, name), version)
        self.saw(version)

    def saw(self, version: int) -> None:
        self.caches.pods_informer._cache.changed_version = version

    def apply(self, budget: PodUnavailableBudget) -> None:
        version = int(self.stored.metadata.resource_version) + 1 if self.stored is not None else 1
        metadata = msgspec.structs.replace(budget.metadata, resource_version=str(version))
        self.stored = msgspec.structs.replace(budget, metadata=metadata)
        self.caches.budgets_informer.observe(self.stored)

    async def protect(self, **spec: Any) -> None:
        """Create a budget for the pods, and reconcile it."""
        self.apply(builders.budget(**spec))
        await self.reconcile()

    def admit(
        self, number: int, operation: Operation = Operation.DELETE, shows: str = "", *, break_glass: bool = False
    ) -> None:
        """A gatekeeper records a disruption of the pod."""
        assert self.stored is not None
        status = self.stored.status
        record = DisruptionRecord(f"web-{number}", operation, rfc3339(self.now), "jane", shows, break_glass)
        field = "disrupted_pods" if operation == Operation.DELETE else "unavailable_pods"
        records = {**getattr(status, field), builders.uid(number): record}
        self.apply(msgspec.structs.replace(self.stored, status=msgspec.structs.replace(status, **{field: records})))

    def drop_records(self) -> None:
        """Another reconciler drops all records."""
        assert self.stored is not None
        self.apply(msgspec.structs.replace(self.stored, status=PodUnavailableBudgetStatus()))

    async def replace_status(self, _: object, changed: PodUnavailableBudget) -> None:
        self.writes += 1
        self.apply(changed)

    async def get(self, resource: Resource, name: str, namespace: str, *, as_: type) -> Any:
        if self.stored is None:
            raise NotFoundError("gone", code=404)
        self.while_read()
        return self.stored

    async def pages(self, resource: Resource, namespace: str, *, limit: int) -> AsyncIterator[Any]:
        self.lists += 1
        yield SimpleNamespace(metadata=SimpleNamespace(resource_version="1000"))

    async def request(self, method: str, path: str) -> bytes:
        name = path.rpartition("/")[2]
        if path == REPLICA_SETS.path(builders.NAMESPACE, name):
            owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": DEPLOYMENT.uid}
            metadata = {"name": name, "namespace": builders.NAMESPACE, "uid": f"set-{name}"}
            return msgspec.json.encode({"metadata": {**metadata, "ownerReferences": [{**owner, "controller": True}]}})
        if name not in self.live:
            raise NotFoundError("gone", code=404)
        pod = self.live[name]
        return msgspec.json.encode(wire(name, uid=pod.uid, version=pod.version))

    def event(self, regarding: ObjectRef, type_: str, reason: str, message: str) -> None:
        self.events.append((reason, message))

    async def queued(self) -> list[str]:
        """The names of the budgets in the queue, which is emptied."""
        found = []
        while self.queue.depth:
            key = await self.queue.get()
            self.queue.done(key)
            found.append(key[1])
        return sorted(found)

    def change(self, **fields: Any) -> None:
        """Somebody changes the budget."""
        assert self.stored is not None
        self.apply(msgspec.structs.replace(self.stored, **fields))

    async def reconcile(self, seconds: float = 2.0) -> float | None:
        self.now += seconds
        return await self._reconcile(KEY)

    @property
    def status(self) -> PodUnavailableBudgetStatus:
        assert self.stored is not None
        return self.stored.status

    def numbers(self) -> tuple[int, int, int, int]:
        found = self.status
        return found.total_replicas, found.desired_available, found.current_available, found.unavailable_allowed


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with Client(Configuration(host="http://127.0.0.1")) as client:
        yield World(client)


async def test_status_has_the_numbers_and_is_written_only_if_they_change(world: World) -> None:
    await world.protect(maxUnavailable=2)
    assert world.numbers() == (5, 3, 5, 2)
    assert world.status.observed_generation == 1
    assert {each.type: (each.status, each.reason) for each in world.status.conditions} == {
        "DisruptionAllowed": ("True", "SufficientPods"),
        "Overlapping": ("False", "NoOtherBudget"),
    }
    for _ in range(3):
        assert await world.reconcile() == 30
    assert world.writes == 1
    world.put(1, 6, ready=False)
    assert await world.reconcile(0.1) == 30
    assert world.numbers() == (5, 3, 4, 1)
    world.put(2, 7, ready=False)
    assert await world.reconcile(0.5) == pytest.approx(0.5)
    world.put(1, 8)
    world.put(2, 9)
    await world.reconcile(0.0)
    assert world.numbers() == (5, 3, 5, 2), "slots that come back are written at once"


async def test_record_is_dropped_when_the_pod_shows_the_deletion(world: World) -> None:
    await world.protect(maxUnavailable=2)
    world.admit(1)
    await world.reconcile()
    assert (len(world.status.disrupted_pods), world.numbers()) == (1, (5, 3, 4, 1))
    world.put(1, 20, deleting=True)
    await world.reconcile()
    assert (dict(world.status.disrupted_pods), world.status.pods_resource_version) == ({}, "20")
    assert world.numbers() == (5, 3, 4, 1)
    world.delete(1, 21)
    world.put(6, 22)
    await world.reconcile()
    assert world.numbers() == (5, 3, 5, 2)
    assert world.events == []


async def test_record_of_a_deletion_that_did_not_happen_is_dropped_after_a_live_read(world: World) -> None:
    await world.protect(maxUnavailable=1)
    world.admit(1)
    await world.reconcile(34)
    assert world.numbers() == (5, 4, 4, 0)
    hidden = world.live.pop("web-1")  # the API server has deleted it, and the watch has not brought that yet
    await world.reconcile(60)
    assert world.numbers() == (5, 4, 4, 0)
    world.live["web-1"] = hidden
    await world.reconcile(30)
    assert world.numbers() == (5, 4, 5, 1)


async def test_cache_that_is_older_than_the_status_drops_nothing(world: World) -> None:
    await world.protect(maxUnavailable=1)
    world.admit(1)
    world.apply(
        msgspec.structs.replace(
            world.stored,
            status=msgspec.structs.replace(world.status, pods_resource_version="900"),  # type: ignore[type-var]
        )
    )
    world.put(1, 20, deleting=True)
    await world.reconcile(100)
    assert list(world.status.disrupted_pods) == [builders.uid(1)]
    assert world.status.pods_resource_version == "900"


async def test_version_of_pods_that_the_api_server_has_not_reached_is_corrected(world: World) -> None:
    """Gatekeepers would wait for it for ever."""
    await world.protect(maxUnavailable=1)
    world.admit(1)
    far = msgspec.structs.replace(world.status, pods_resource_version="9000000")
    world.apply(msgspec.structs.replace(world.stored, status=far))  # type: ignore[type-var]
    await world.reconcile(1)
    assert world.status.pods_resource_version == "1000"
    assert list(world.status.disrupted_pods) == [builders.uid(1)]
    world.put(1, 1001, deleting=True)
    await world.reconcile(1)
    assert not world.status.disrupted_pods


async def test_another_budget_of_the_same_pods_is_named(world: World) -> None:
    world.apply(builders.budget(minAvailable="100%"))
    other = builders.budget(
        name="other", maxUnavailable=1, selector={"matchExpressions": [{"key": "app", "operator": "Exists"}]}
    )
    world.caches.budgets_informer.observe(other)
    await world.reconcile()
    found = {each.type: each for each in world.status.conditions}
    assert (found["DisruptionAllowed"].status, found["DisruptionAllowed"].reason) == ("False", "NoDisruptionEver")
    assert found["Overlapping"].message.endswith("each has to admit a disruption: other")


async def test_deletion_that_no_gatekeeper_was_asked_about_is_reported_once(world: World) -> None:
    await world.protect(maxUnavailable=2)
    world.put(1, 20, deleting=True)
    world.admit(2)
    world.put(2, 21, deleting=True)
    world.put(3, 22, ready=False)
    world.put(3, 23, ready=False, deleting=True)
    for _ in range(2):
        await world.reconcile()
    text = "no gatekeeper was asked before these pods were deleted or evicted: web-1"
    assert world.events == [("UngatedDeletion", text)]
    assert world.registry.get_sample_value("altershield_ungated_deletions_total") == 1


EVICTED = {"phase": "Failed", "reason": "Evicted", "ready": False, "disruption": "TerminationByKubelet"}
GARBAGE_COLLECTED = {"phase": "Failed", "ready": False, "disruption": "DeletionByPodGC"}
UNGATED = ("UngatedDeletion", "no gatekeeper was asked before these pods were deleted or evicted: web-1")


def by_kubelet(world: World) -> None:
    world.put(1, 20, ready=False)  # the kubelet stops the containers first
    world.put(1, 21, **EVICTED)


def by_kubelet_of_an_older_cluster(world: World) -> None:
    world.put(1, 20, phase="Failed", reason="Terminated", ready=False)


def by_pod_garbage_collection(world: World) -> None:
    world.put(1, 20, ready=False)  # the node is lost
    world.put(1, 21, **GARBAGE_COLLECTED)
    world.delete(1, 22)


def by_taints(world: World) -> None:
    world.put(1, 20, ready=False)
    world.put(1, 21, ready=False, disruption="DeletionByTaintManager")
    world.put(1, 22, ready=False, disruption="DeletionByTaintManager", deleting=True)


@pytest.mark.parametrize("take", [by_kubelet, by_kubelet_of_an_older_cluster, by_pod_garbage_collection, by_taints])
async def test_pod_that_a_kubelet_or_the_end_of_its_node_takes_is_reported_once_also_after_a_restart(
    world: World, take: Callable[[World], None]
) -> None:
    await world.protect(maxUnavailable=2)
    take(world)
    await world.reconcile()
    assert world.events == [UNGATED]
    assert list(world.status.ungated_pods) == [builders.uid(1)]
    assert world.registry.get_sample_value("altershield_ungated_deletions_total") == 1
    for _ in range(2):
        world.restart()
        await world.reconcile(60)
    assert world.events == [UNGATED]
    await world.reconcile(3600)
    assert (world.events, world.status.ungated_pods) == ([UNGATED], {})


@pytest.mark.parametrize(("ago", "expected"), [(0, [UNGATED]), (3000, [UNGATED]), (3600, [])])
async def test_evicted_pod_is_found_for_an_hour_by_a_reconciler_that_did_not_see_the_eviction(
    world: World, ago: int, expected: list[tuple[str, str]]
) -> None:
    world.put(1, 20, **EVICTED, at=NOW - ago)
    await world.protect(maxUnavailable=2)
    assert world.events == expected


async def test_pod_that_was_evicted_before_its_budget_was_created_is_not_reported(world: World) -> None:
    world.put(1, 20, **EVICTED, at=NOW - 60)
    made = builders.budget(maxUnavailable=2)
    created = msgspec.structs.replace(made.metadata, creation_timestamp=rfc3339(NOW))
    world.apply(msgspec.structs.replace(made, metadata=created))
    await world.reconcile()
    assert world.events == []


async def test_lost_pod_is_reported_again_if_the_status_could_not_be_written(world: World) -> None:
    await world.protect(maxUnavailable=2)
    world.put(1, 20, deleting=True)
    save = world.replace_status

    async def conflict(*_: Any) -> None:
        raise ConflictError("changed", code=409)

    world.replace_status = conflict  # type: ignore[method-assign]
    with pytest.raises(ConflictError):
        await world.reconcile()
    assert world.events == []
    world.replace_status = save  # type: ignore[method-assign]
    await world.reconcile(1)
    assert world.events == [UNGATED]


def asked(world: World) -> None:
    """A gatekeeper admitted the deletion by the taint manager."""
    world.put(1, 20, ready=False, disruption="DeletionByTaintManager")
    world.admit(1)
    world.put(1, 21, ready=False, disruption="DeletionByTaintManager", deleting=True)


OTHER_ENDS: dict[str, Callable[[World], None]] = {
    "a gatekeeper was asked": asked,
    "it failed by itself": lambda world: world.put(1, 20, phase="Failed", reason="", ready=False),
    "it is completed": lambda world: world.put(1, 20, phase="Succeeded", ready=False),
    "another application": lambda world: world.put(6, 20, **EVICTED, labels={"app": "other"}),
    "not protected": lambda world: world.put(1, 20, **EVICTED, annotations={"pub.kruise.io/no-protect": "true"}),
    "by an API client": lambda world: world.put(1, 20, ready=False, disruption="EvictionByEvictionAPI"),
}


@pytest.mark.parametrize("end", OTHER_ENDS.values(), ids=OTHER_ENDS)
async def test_other_ends_of_a_pod_are_not_reported(world: World, end: Callable[[World], None]) -> None:
    await world.protect(maxUnavailable=2)
    end(world)
    for _ in range(2):
        await world.reconcile()
        world.restart()
    assert world.events == []


async def test_lost_pods_that_the_status_remembers_are_bounded(world: World) -> None:
    world.apply(builders.budget(maxUnavailable=2))
    for number in range(10, 10 + MAX_LOSSES + 5):
        world.put(number, number, **EVICTED)
    await world.reconcile()
    assert len(world.status.ungated_pods) == MAX_LOSSES
    await world.reconcile()
    assert len(world.events) == 1


async def test_deletion_whose_record_another_leader_dropped_is_not_reported(world: World) -> None:
    await world.protect(maxUnavailable=2)
    world.admit(1)
    world.put(1, 20, deleting=True)
    world.drop_records()
    await world.reconcile()
    assert world.events == []


async def test_deletion_whose_record_was_dropped_before_the_watch_of_pods_showed_it_is_not_reported(
    world: World,
) -> None:
    await world.protect(maxUnavailable=2)
    world.admit(1)
    world.drop_records()
    world.put(1, 20, deleting=True)
    await world.reconcile()
    assert world.events == []


async def test_deletion_that_is_seen_while_an_earlier_one_is_reported_is_not_reported(world: World) -> None:
    """Its record is dropped in the same reconcile, before its deletion is looked at in the next one."""
    await world.protect(maxUnavailable=2)
    for number in (1, 2):
        world.admit(number)
    world.put(1, 20, deleting=True)
    world.while_read = lambda: world.put(2, 21, deleting=True)
    for _ in range(2):
        await world.reconcile()
    assert not world.status.disrupted_pods
    assert world.events == []


async def test_budget_is_queued_when_its_pods_or_workloads_change(world: World) -> None:
    world.apply(builders.budget(maxUnavailable=2))

    async def queued() -> bool:
        return await world.queued() == ["web"]

    assert await queued()
    world.put(1, 30, annotations={"note": "x"})
    world.put(7, 31, labels={"app": "other"})
    assert not await queued()
    world.put(1, 32, ready=False)
    assert await queued()
    world.put(1, 33, labels={**LABELS, "app": "other"})
    assert await queued(), "the pod leaves the budget"
    world.put(2, 34, containers={"web": "f" * 64})
    assert await queued(), "the pod may show a restart"
    for version, of in ((40, scaled(DEPLOYMENT, 4)), (41, scaled(DEPLOYMENT, 4, deleting=True))):
        world.caches._scaled[DEPLOYMENTS].observe(msgspec.structs.replace(of, packed_version=version))
        assert await queued()
    world.caches.namespaces._filling[builders.NAMESPACE] = asyncio.Event()
    world.put(3, 50, ready=False)
    assert not await queued(), "the budget is queued when all pods are there"


async def test_only_budgets_of_its_pods_are_queued_when_a_workload_changes(world: World) -> None:
    target = {"apiVersion": "apps/v1", "kind": "Deployment"}
    for budget in (
        builders.budget(maxUnavailable=2),
        builders.budget(name="target", maxUnavailable=2, targetRef={**target, "name": "web"}),
        builders.budget(name="other", maxUnavailable=2, selector={"matchLabels": {"app": "other"}}),
        builders.budget(name="other-target", maxUnavailable=2, targetRef={**target, "name": "other"}),
    ):
        world.caches.budgets_informer.observe(budget)
    await world.queued()
    deployments, sets = world.caches._scaled[DEPLOYMENTS], world.caches._scaled[REPLICA_SETS]

    deployments.observe(msgspec.structs.replace(scaled(DEPLOYMENT, 4), packed_version=40))
    assert await world.queued() == ["target", "web"]
    sets.observe(msgspec.structs.replace(scaled(SET, 4, above=DEPLOYMENT), packed_version=41))
    assert await world.queued() == ["target", "web"]
    sibling = Owner("apps/v1", "ReplicaSet", "web-2", "set-2")
    sets.observe(msgspec.structs.replace(scaled(sibling, 1, above=DEPLOYMENT), packed_version=41))
    assert await world.queued() == ["target", "web"], "the sets of a workload may decide how many pods it should have"
    sets.observe(msgspec.structs.replace(scaled(SET, 4), packed_version=42))
    assert await world.queued() == ["target", "web"], "the set does not belong to the target any more"
    other = Owner("apps/v1", "Deployment", "other", "deployment-other")
    deployments.observe(msgspec.structs.replace(scaled(other, 4), packed_version=43))
    assert await world.queued() == ["other-target"], "its workload has no pods yet"


@pytest.mark.parametrize("operation", [Operation.DELETE, Operation.RESTART])
async def test_break_glass_raises_an_event_once_when_its_record_ends(world: World, operation: Operation) -> None:
    await world.protect(maxUnavailable=0)
    world.admit(1, operation, break_glass=True)
    await world.reconcile()
    assert world.events == [], "the record is held"
    world.delete(1, 10)
    for _ in range(3):
        await world.reconcile()
    (event,) = [message for reason, message in world.events if reason == "BreakGlassUsed"]
    assert event == f"jane passed this budget by break glass: {operation} of the pod web-1"
    assert world.registry.get_sample_value("altershield_break_glass_total") == 1


async def test_budget_is_left_alone_while_it_is_deleted_or_its_pods_are_not_known(world: World) -> None:
    made = builders.budget(maxUnavailable=2)
    deleted = msgspec.structs.replace(made.metadata, deletion_timestamp="2027-01-15T08:00:00Z")
    world.apply(msgspec.structs.replace(made, metadata=deleted))
    assert await world.reconcile() is None
    world.apply(made)
    world.caches.namespaces._filling[builders.NAMESPACE] = asyncio.Event()
    assert await world.reconcile() == 30
    assert world.writes == 0


async def test_version_of_pods_is_corrected_also_if_nothing_else_changes_and_read_only_if_it_is_ahead(
    world: World,
) -> None:
    await world.protect(maxUnavailable=2)
    await world.reconcile()
    assert world.lists == 0
    world.change(status=msgspec.structs.replace(world.status, pods_resource_version="9000000"))
    await world.reconcile()
    assert (world.status.pods_resource_version, world.lists) == ("1000", 1)


async def test_owner_that_no_cache_has_is_read_before_the_pods_are_counted(world: World) -> None:
    world.caches.scales._client = world  # type: ignore[assignment]
    world.put(6, owner=Owner("apps/v1", "ReplicaSet", "new", "set-new"))
    await world.protect(maxUnavailable=2)
    assert world.numbers() == (5, 3, 6, 3)


async def test_record_of_a_pod_that_left_the_budget_is_dropped(world: World) -> None:
    await world.protect(maxUnavailable=2)
    for number in (1, 2):
        world.admit(number, Operation.UPDATE, "left")
    world.put(1, 20, labels={"app": "other"})
    await world.reconcile()
    assert list(world.status.unavailable_pods) == [builders.uid(2)]


@pytest.mark.parametrize(("spec", "reported"), [({}, 1), ({"mode": "Warn"}, 0), ({"protectOperations": ["EVICT"]}, 0)])
async def test_only_a_budget_that_refuses_deletions_and_evictions_reports_those_without_a_review(
    world: World, spec: dict[str, Any], reported: int
) -> None:
    await world.protect(maxUnavailable=2, **spec)
    world.put(1, 20, deleting=True)
    await world.reconcile()
    assert len(world.events) == reported


@pytest.mark.parametrize("cached", [True, False])
async def test_deletion_with_a_record_in_the_cache_or_at_the_api_server_is_not_reported(
    world: World, cached: bool
) -> None:
    await world.protect(maxUnavailable=2)
    without = world.status
    record = {builders.uid(1): DisruptionRecord("web-1", Operation.DELETE, rfc3339(world.now), "jane")}
    recorded = msgspec.structs.replace(without, disrupted_pods=record)
    assert world.stored is not None
    world.apply(msgspec.structs.replace(world.stored, status=recorded if cached else without))
    world.put(1, 20, deleting=True)
    world.stored = msgspec.structs.replace(world.stored, status=without if cached else recorded)
    await world.reconcile()
    assert world.events == []


@pytest.mark.parametrize(("count", "text"), [(3, "web-1, web-2, web-3"), (5, "web-1, web-2, web-3 and 2 more")])
async def test_event_names_three_pods(world: World, count: int, text: str) -> None:
    await world.protect(maxUnavailable=2)
    for number in range(1, count + 1):
        world.put(number, 20 + number, deleting=True)
    await world.reconcile()
    ((_, message),) = world.events
    assert message.endswith(f": {text}")


async def test_new_spec_and_dropped_records_are_written_at_once_and_other_numbers_after_a_second(world: World) -> None:
    await world.protect(maxUnavailable=1)
    metadata = msgspec.structs.replace(world.stored.metadata, generation=2)  # type: ignore[union-attr]
    world.change(metadata=metadata, spec=builders.budget(maxUnavailable="20%").spec)
    assert await world.reconcile(0.1) == 30
    assert world.status.observed_generation == 2
    world.admit(1)
    await world.reconcile()
    world.put(1, 20, deleting=True)
    assert await world.reconcile(0.1) == 30
    assert not world.status.disrupted_pods
    world.put(2, 21, ready=False)
    assert await world.reconcile(0.1) == pytest.approx(0.9)
    assert world.numbers() == (5, 4, 4, 0)


async def test_condition_names_five_other_budgets(world: World) -> None:
    world.apply(builders.budget(maxUnavailable=1))
    for number in range(7):
        world.caches.budgets_informer.observe(builders.budget(name=f"b{number}", maxUnavailable=1))
    await world.reconcile()
    (found,) = (each for each in world.status.conditions if each.type == "Overlapping")
    assert found.message.endswith(": b0, b1, b2, b3, b4")


async def test_other_budgets_are_queued_when_a_budget_comes_goes_or_covers_other_pods(world: World) -> None:
    world.caches.budgets_informer.observe(builders.budget(name="other", maxUnavailable=1))
    await world.queued()
    world.apply(builders.budget(maxUnavailable=1))
    assert await world.queued() == ["other", "web"]
    world.change(status=msgspec.structs.replace(world.status, total_replicas=7))
    assert await world.queued() == ["web"]
    world.change(spec=builders.budget(maxUnavailable=2).spec)
    assert await world.queued() == ["other", "web"]
    world.caches.budgets_informer._cache.drop(KEY, 99)
    assert await world.queued() == ["other", "web"]


async def test_pods_that_leave_the_cache_or_did_not_belong_to_the_budget_are_no_departures(world: World) -> None:
    await world.protect(maxUnavailable=2)
    world.put(7, 20, labels={"app": "other"})
    world.put(7, 21, deleting=True)
    world.caches.namespaces.has_budget = lambda namespace: False  # type: ignore[method-assign]
    await world.caches.pods_informer.evict(builders.NAMESPACE)
    assert len(world.caches.pods_informer) == 0
    await world.reconcile()
    assert world.events == []


class Times:
    """Departures of pods of one budget, by a clock of their own."""

    def __init__(self) -> None:
        self.now = NOW
        self.departures = Departures(lambda: self.now)

    def add(self, after: float, *names: str) -> None:
        self.now = NOW + after
        for name in names:
            self.departures.add(KEY, builders.pod(name), None)

    def drop(self, after: float, *names: str) -> None:
        self.now = NOW + after
        self.departures.drop_records(KEY, [f"uid-{name}" for name in names])

    def take(self, after: float) -> list[str]:
        self.now = NOW + after
        return [gone.name for gone in self.departures.take(KEY).values()]


def test_departure_is_reported_within_thirty_seconds() -> None:
    times = Times()
    for after, found in ((29, ["a"]), (30, [])):
        times.add(0, "a")
        assert times.take(after) == found
    times.add(0, "a")
    times.departures.forget(KEY)
    assert times.take(1) == [], "the budget is deleted"


def test_very_many_departures_are_not_all_remembered() -> None:
    times = Times()
    times.add(0, *(f"web-{number}" for number in range(150)))
    assert len(times.take(1)) == 100


def test_dropped_record_is_remembered_for_a_minute_from_the_last_time() -> None:
    times = Times()
    times.drop(0, "a")
    times.drop(30, "b")
    times.drop(40, "a")
    times.drop(60, "c")
    times.add(61, "a", "b", "c", "d")
    assert times.take(62) == ["d"]
    times.drop(95, "e")
    times.add(95, "a", "b")
    assert times.take(96) == ["b"]
