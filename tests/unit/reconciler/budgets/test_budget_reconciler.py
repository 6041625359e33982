"""The status of a PodUnavailableBudget: numbers, records, conditions, and disruptions that nobody was asked about."""

from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from altershield.api.budgets import DisruptionRecord, Operation, PodUnavailableBudget, PodUnavailableBudgetStatus
from altershield.api.meta import rfc3339
from altershield.api.resources import DEPLOYMENTS, REPLICA_SETS, Resource
from altershield.budget_caches.caches import BudgetCaches
from altershield.budgets import pods
from altershield.budgets.pods import Pod
from altershield.kube.client import Client
from altershield.kube.configuration import Configuration
from altershield.kube.errors import NotFoundError
from altershield.kube.events import ObjectRef
from altershield.kube.queue import WorkQueue
from reconciler.budgets.budget_reconciler import BudgetReconciler
from reconciler.budgets.departures import Departures
from reconciler.budgets.routes import BudgetRoutes
from reconciler.machinery.caches import Key
from reconciler.machinery.metrics import Metrics
from tests.unit.budgets import builders
from tests.unit.budgets.builders import DEPLOYMENT, LABELS, NOW, SET, scaled, wire

KEY = (builders.NAMESPACE, "web")


class World:
    """Caches that tests fill, and what stands for the API server, the writer and the recorder of Events."""

    def __init__(self, client: Client) -> None:
        self.now = NOW
        self.caches = BudgetCaches(client, lambda namespace: True, lambda namespace: False)
        for informer in self.caches.counted_informers:
            informer._reflector.synced.set()
        self.caches.namespaces.has_budget = lambda namespace: True  # type: ignore[method-assign]
        self.live: dict[str, Pod] = {}
        self.stored: PodUnavailableBudget | None = None
        self.writes = 0
        self.while_read: Callable[[], None] = lambda: None
        """Called while the budget is read live."""
        self.events: list[tuple[str, str]] = []
        self.queue: WorkQueue[Key] = WorkQueue()
        departures = Departures(lambda: self.now)
        BudgetRoutes(self.caches, self.queue, departures)
        self.metrics = Metrics()
        self._reconcile = BudgetReconciler(
            self,
            self.caches,
            self,
            self,
            self.metrics,
            departures,
            lambda: self.now,  # type: ignore[arg-type]
        ).reconcile
        for resource, owner, above in ((DEPLOYMENTS, DEPLOYMENT, None), (REPLICA_SETS, SET, DEPLOYMENT)):
            found = scaled(owner, 5, above=above) if above is not None else scaled(owner, 5)
            self.caches._scaled[resource].observe(found)
        for number in range(1, 6):
            self.put(number)

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

    async def save_budget(self, budget: PodUnavailableBudget, status: PodUnavailableBudgetStatus) -> None:
        self.writes += 1
        self.apply(msgspec.structs.replace(budget, status=status))

    async def get(self, resource: Resource, name: str, namespace: str, *, as_: type) -> Any:
        if self.stored is None:
            raise NotFoundError("gone", code=404)
        self.while_read()
        return self.stored

    async def pages(self, resource: Resource, namespace: str, *, limit: int) -> AsyncIterator[Any]:
        yield SimpleNamespace(metadata=SimpleNamespace(resource_version="1000"))

    async def request(self, method: str, path: str) -> bytes:
        name = path.rpartition("/")[2]
        if name not in self.live:
            raise NotFoundError("gone", code=404)
        pod = self.live[name]
        return msgspec.json.encode(wire(name, uid=pod.uid, version=pod.version))

    def event(self, regarding: ObjectRef, type_: str, reason: str, message: str) -> None:
        self.events.append((reason, message))

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
    world.apply(builders.budget(maxUnavailable=2))
    await world.reconcile()
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
    world.apply(builders.budget(maxUnavailable=2))
    await world.reconcile()
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
    world.apply(builders.budget(maxUnavailable=1))
    await world.reconcile()
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
    world.apply(builders.budget(maxUnavailable=1))
    await world.reconcile()
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
    world.apply(builders.budget(maxUnavailable=1))
    await world.reconcile()
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
    assert found["Overlapping"].message.endswith("has to agree: other")


async def test_deletion_that_no_gatekeeper_was_asked_about_is_reported_once(world: World) -> None:
    world.apply(builders.budget(maxUnavailable=2))
    await world.reconcile()
    world.put(1, 20, deleting=True)
    world.admit(2)
    world.put(2, 21, deleting=True)
    world.put(3, 22, ready=False)
    world.put(3, 23, ready=False, deleting=True)
    for _ in range(2):
        await world.reconcile()
    text = "no gatekeeper was asked before these pods were deleted: web-1"
    assert world.events == [("UngatedDeletion", text)]
    assert world.metrics.registry.get_sample_value("altershield_ungated_deletions_total") == 1


async def test_deletion_whose_record_another_leader_dropped_is_not_reported(world: World) -> None:
    world.apply(builders.budget(maxUnavailable=2))
    await world.reconcile()
    world.admit(1)
    world.put(1, 20, deleting=True)
    world.drop_records()
    await world.reconcile()
    assert world.events == []


async def test_deletion_whose_record_was_dropped_before_the_watch_of_pods_showed_it_is_not_reported(
    world: World,
) -> None:
    world.apply(builders.budget(maxUnavailable=2))
    await world.reconcile()
    world.admit(1)
    world.drop_records()
    world.put(1, 20, deleting=True)
    await world.reconcile()
    assert world.events == []


async def test_deletion_that_is_seen_while_an_earlier_one_is_reported_is_not_reported(world: World) -> None:
    """Its record is dropped in the same reconcile, before its deletion is looked at in the next one."""
    world.apply(builders.budget(maxUnavailable=2))
    await world.reconcile()
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
        found = world.queue.depth > 0
        while world.queue.depth:
            world.queue.done(await world.queue.get())
        return found

    assert await queued()
    world.put(1, 30, annotations={"note": "x"})
    world.put(7, 31, labels={"app": "other"})
    assert not await queued()
    world.put(1, 32, ready=False)
    assert await queued()
    world.put(1, 33, labels={**LABELS, "app": "other"})
    assert await queued(), "the pod leaves the budget"
    world.caches._scaled[DEPLOYMENTS].observe(msgspec.structs.replace(scaled(DEPLOYMENT, 4), packed_version=40))
    assert await queued()


@pytest.mark.parametrize("operation", [Operation.DELETE, Operation.RESTART])
async def test_break_glass_raises_an_event_once_when_its_record_ends(world: World, operation: Operation) -> None:
    world.apply(builders.budget(maxUnavailable=0))
    await world.reconcile()
    world.admit(1, operation, break_glass=True)
    await world.reconcile()
    assert world.events == [], "the record is held"
    world.delete(1, 10)
    for _ in range(3):
        await world.reconcile()
    (event,) = [message for reason, message in world.events if reason == "BreakGlassUsed"]
    assert event == f"jane passed this budget by break glass: {operation} of the pod web-1"
    assert world.metrics.registry.get_sample_value("altershield_break_glass_total") == 1
