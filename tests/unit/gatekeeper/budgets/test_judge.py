"""A gatekeeper, its caches and an API server that answers as a test says: conflicts, several budgets, old caches."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from altershield.api.budgets import DisruptionRecord, Operation, PodUnavailableBudget, PodUnavailableBudgetStatus
from altershield.budget_caches.caches import BudgetCaches
from altershield.budgets import pods
from altershield.budgets.pods import Pod
from altershield.budgets.steps import Disruption, Passed, Refused
from altershield.workloads.meta import Owner
from gatekeeper.budgets.judge import Busy, Judge, Verdict
from kube_base.access.client import Client
from kube_base.access.configuration import Configuration
from kube_base.access.errors import ConflictError, KubernetesError, NotFoundError, ServerError
from kube_base.meta import ObjectMeta
from kube_base.resources import DEPLOYMENTS, PODS, REPLICA_SETS, Resource
from kube_base.times import rfc3339
from tests.unit.altershield.budgets.builders import DEPLOYMENT, NAMESPACE, NOW, SET, budget, scaled, wire

pytestmark = pytest.mark.looptime

STATEFUL = Owner("apps/v1", "StatefulSet", "web", "stateful-web")


class World:
    """A gatekeeper whose caches have three ready pods of a Deployment. The watches bring nothing by themselves."""

    def __init__(self, client: Client) -> None:
        self.caches = BudgetCaches(client, lambda namespace: True, lambda namespace: False)
        self.stored: dict[str, PodUnavailableBudget] = {}
        self.pods: dict[str, Pod] = {}
        self.version = "1"
        """The resourceVersion of lists."""
        self.conflicts: dict[str, list[PodUnavailableBudget]] = {}
        """By name: what others write before each of the next writes of this gatekeeper."""
        self.error: KubernetesError | None = None
        """The error of each write."""
        self.puts: list[str] = []
        self.lists: list[str] = []
        self.writing = self.most = 0
        self.judge = Judge(self, self.caches, lambda: NOW)  # type: ignore[arg-type]
        self.lister = self.judge._lister
        self.shared = self.judge._shared

    def fill(self) -> None:
        """Complete the first lists."""
        for informer in (*self.caches.required, *self.caches.counted_informers):
            informer._reflector.synced.set()
        self.caches.namespaces.has_budget = lambda namespace: True  # type: ignore[method-assign]
        for resource, found in ((DEPLOYMENTS, scaled(DEPLOYMENT, 3)), (REPLICA_SETS, scaled(SET, 3, above=DEPLOYMENT))):
            self.caches._scaled[resource].observe(found)
        for number in range(3):
            self.see(f"web-{number}")
        assert self.judge.filled(NAMESPACE)

    def see(self, name: str, version: int = 1, **fields: Any) -> Pod:
        """The watch brings a pod."""
        found = pods.read(msgspec.json.encode(wire(name, version=version, **fields)))
        self.pods[name] = found
        self.caches.pods_informer.observe(found)
        self.caches.pods_informer._cache.changed_version = version
        return found

    def put(self, *budgets: PodUnavailableBudget, seen: bool = True) -> None:
        """Somebody writes budgets. `seen`: the watch brings them."""
        for each in budgets:
            old = self.stored.get(each.metadata.name)
            version = str(int(old.metadata.resource_version) + 1 if old is not None else 1)
            metadata = msgspec.structs.replace(each.metadata, resource_version=version)
            made = self.stored[each.metadata.name] = msgspec.structs.replace(each, metadata=metadata)
            if seen:
                self.caches.budgets_informer.observe(made)
                self.caches.namespaces._filling.clear()

    async def get(self, resource: Resource, name: str, namespace: str, *, as_: type) -> PodUnavailableBudget:
        if name not in self.stored:
            raise NotFoundError("gone", code=404)
        return self.stored[name]

    async def replace(
        self, resource: Resource, obj: PodUnavailableBudget, name: str, *about: Any, **options: Any
    ) -> PodUnavailableBudget:
        self.puts.append(name)
        self.writing += 1
        self.most = max(self.most, self.writing)
        await asyncio.sleep(0.01)
        self.writing -= 1
        if self.error is not None:
            raise self.error
        if self.conflicts.get(name):
            self.put(self.conflicts[name].pop(0), seen=False)
        if name not in self.stored:
            raise NotFoundError("gone", code=404)
        if obj.metadata.resource_version != self.stored[name].metadata.resource_version:
            raise ConflictError("changed", code=409)
        self.put(obj, seen=False)
        return self.stored[name]

    async def request(self, method: str, path: str) -> bytes:
        name = path.rpartition("/")[2]
        assert path == PODS.path(NAMESPACE, name)
        if name not in self.pods:
            raise NotFoundError("gone", code=404)
        return msgspec.json.encode(wire(name, version=self.pods[name].version))

    async def pages(self, resource: Resource, namespace: str, *, label_selector: str) -> AsyncIterator[Any]:
        self.lists.append(label_selector)
        await asyncio.sleep(0.01)
        items = [msgspec.Raw(msgspec.json.encode(wire(name, version=each.version))) for name, each in self.pods.items()]
        yield Page(ObjectMeta(resource_version=self.version), items)

    async def asked(self, name: str = "web-0", operation: Operation = Operation.DELETE, **fields: Any) -> Verdict:
        disruption = Disruption(operation, self.pods[name], "ann", **fields)
        return self.judge.decide(disruption) or await self.judge.judge(disruption)

    def records(self, name: str) -> list[str]:
        return list(self.stored[name].status.disrupted_pods)


class Page(msgspec.Struct):
    metadata: ObjectMeta
    items: list[msgspec.Raw]


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with Client(Configuration(host="http://127.0.0.1")) as client:
        found = World(client)
        found.fill()
        yield found


def free(name: str = "web", **spec: Any) -> PodUnavailableBudget:
    return budget(name=name, **{"maxUnavailable": 2, **spec})


def frozen(name: str = "web") -> PodUnavailableBudget:
    return budget(name=name, maxUnavailable=0)


def recorded(of: PodUnavailableBudget, pod: str, seconds: int) -> PodUnavailableBudget:
    """The budget with a record of this pod, `seconds` old."""
    record = DisruptionRecord(pod, Operation.DELETE, rfc3339(NOW - seconds), "bob")
    return msgspec.structs.replace(of, status=PodUnavailableBudgetStatus(disrupted_pods={f"uid-{pod}": record}))


async def test_process_decides_once_its_first_lists_are_complete_and_before_only_where_no_budget_is() -> None:
    async with Client(Configuration(host="http://127.0.0.1")) as client:
        world = World(client)
        assert not world.judge.filled(NAMESPACE), "there may be a budget"
        for informer in world.caches.required:
            informer._reflector.synced.set()
        assert world.judge.filled(NAMESPACE), "there is none"
        world.put(free())
        assert not world.judge.filled(NAMESPACE)
        assert world.judge.filled("other")
        world.fill()


@pytest.mark.parametrize(
    ("fields", "known"),
    [
        ({}, True),
        ({"ready": False}, True),
        ({"owner": STATEFUL}, True),
        ({"owner": STATEFUL, "ready": False}, False),
        ({"owner": None, "ready": False}, False),
    ],
)
def test_cached_pod_is_the_one_of_the_request_unless_another_one_may_have_its_name(
    world: World, fields: Any, known: bool
) -> None:
    found = world.see("web-0", 2, **fields)
    assert world.judge.cached_pod(NAMESPACE, "web-0") == (found if known else None)
    assert world.judge.cached_pod(NAMESPACE, "web-9") is None


async def test_pod_is_read_only_if_the_cache_gave_it_and_another_one_may_have_its_name(world: World) -> None:
    world.put(budget(minAvailable=1))
    cached, bare = world.pods.pop("web-0"), world.see("web-1", 2, owner=None)
    reviewed = msgspec.structs.replace(world.pods.pop("web-1"))
    for each, wanted in ((cached, Passed(covered=True)), (bare, Passed()), (reviewed, Passed(covered=True))):
        found = await world.judge.judge(Disruption(Operation.DELETE, each, "ann"))
        assert found == wanted, "a read finds nothing"


async def test_each_budget_of_a_pod_gets_a_record(world: World) -> None:
    world.put(free("a"), free("b"))
    assert await world.asked() == Passed(covered=True)
    assert (world.records("a"), world.records("b")) == (["uid-web-0"], ["uid-web-0"])
    assert world.puts == ["a", "b"]


@pytest.mark.parametrize("conflicts", [5, 6])
async def test_record_is_written_in_the_sixth_attempt_or_never(world: World, conflicts: int) -> None:
    world.put(free())
    world.conflicts["web"] = [free()] * conflicts
    busy = Busy("PodUnavailableBudget web is busy with other requests: try again")
    assert await world.asked() == (Passed(covered=True) if conflicts == 5 else busy)
    assert len(world.puts) == 6


async def refused_later(world: World, before: PodUnavailableBudget) -> None:
    """Record a deletion in the budget `a`, before `b` refuses it, which others have changed meanwhile."""
    world.put(before, free("b"))
    world.conflicts["b"] = [frozen("b")]
    assert isinstance(await world.asked(), Refused)
    await asyncio.sleep(1)


async def test_record_of_a_request_that_another_budget_refuses_is_taken_back(world: World) -> None:
    await refused_later(world, free("a"))
    assert world.records("a") == []


async def test_record_on_which_an_earlier_request_may_have_passed_is_not_taken_back(world: World) -> None:
    await refused_later(world, recorded(free("a"), "web-0", 20))
    assert world.records("a") == ["uid-web-0"]


async def test_record_in_a_budget_that_has_changed_since_is_not_taken_back(world: World) -> None:
    world.put(free("a"), free("b"))
    world.conflicts["b"] = [frozen("b")]
    asked = asyncio.create_task(world.asked())
    await asyncio.sleep(0.015)
    world.put(world.stored["a"], seen=False)
    assert isinstance(await asked, Refused)
    await asyncio.sleep(1)
    assert world.records("a") == ["uid-web-0"]


async def test_record_that_two_requests_for_a_pod_share_is_not_taken_back(world: World) -> None:
    world.put(free("a"), free("b"))
    world.conflicts["b"] = [frozen("b")]
    found = await asyncio.gather(world.asked(), world.asked())
    assert all(isinstance(each, Refused) for each in found)
    await asyncio.sleep(1)
    assert world.records("a") == ["uid-web-0"]


async def test_deletion_does_not_pass_on_the_record_of_an_eviction_that_another_budget_refuses(world: World) -> None:
    world.put(free("a"), free("b", protectOperations=["EVICT"]))
    world.conflicts["b"] = [budget(name="b", maxUnavailable=0, protectOperations=["EVICT"])]
    eviction = asyncio.create_task(world.asked(operation=Operation.EVICT))
    await asyncio.sleep(0.015)
    assert world.records("a") == ["uid-web-0"]
    world.caches.budgets_informer.observe(world.stored["a"])
    assert await world.asked() == Passed(covered=True)
    assert isinstance(await eviction, Refused)
    await asyncio.sleep(1)
    assert world.records("a") == ["uid-web-0"], "the deletion takes place"


async def test_request_that_cannot_be_recorded_passes_by_break_glass_or_if_all_budgets_only_warn(world: World) -> None:
    world.error = ServerError("down", code=500)
    world.put(free("a"), free("b", mode="Warn"))
    text = "PodUnavailableBudget a is busy with other requests: try again"
    assert await world.asked() == Busy(text)
    assert await world.asked(break_glass=True) == Passed(
        (f"passed by break glass, and not recorded: {text}",), broken_glass=True, covered=True
    )
    world.put(free("a", mode="Warn"))
    found = await world.asked()
    assert isinstance(found, Passed)
    assert found.only_warned


async def test_request_without_a_decision_is_refused_in_the_name_of_a_budget_that_covers_the_pod(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hang(*_: Any) -> None:
        await asyncio.sleep(3600)

    monkeypatch.setattr(world.shared, "ask", hang)
    world.put(free("a", selector={"matchLabels": {"app": "other"}}), free("z"))
    assert await world.asked() == Busy("PodUnavailableBudget z is busy with other requests: try again")
    world.put(free("a", selector={"matchLabels": {"app": "other"}}), free("z", mode="Warn"))
    found = await world.asked()
    assert isinstance(found, Passed)
    assert found.only_warned, "the budget that does not only warn covers other pods"


@pytest.mark.parametrize("late", [False, True], ids=["frozen", "frozen while the request is recorded"])
async def test_break_glass_is_recorded_and_warned_about(world: World, late: bool) -> None:
    world.put(free() if late else frozen())
    world.conflicts["web"] = [frozen()] if late else []
    text = "PodUnavailableBudget web: 3 of 3 pods are available and 3 must be (maxUnavailable 0)"
    assert await world.asked(break_glass=True) == Passed(
        (f"passed by break glass, and recorded: {text}",), broken_glass=True, covered=True
    )
    assert world.records("web") == ["uid-web-0"]


async def test_budget_that_the_api_server_does_not_have_any_more_decides_nothing(world: World) -> None:
    world.put(free())
    world.stored.clear()
    assert await world.asked() == Passed()
    assert await world.asked("web-1") == Passed()
    assert world.puts == ["web"], "it is not written again"


@pytest.mark.parametrize("ends", ["before the answer", "after the answer"])
async def test_budget_that_is_gone_is_forgotten_once_the_cache_does_not_have_it(world: World, ends: str) -> None:
    world.put(free())
    (known,) = world.caches.budgets(NAMESPACE)
    world.stored.clear()
    asked = asyncio.create_task(world.asked())
    if ends == "after the answer":
        await asked
        assert world.judge._lister._gone == {known.metadata.uid}
    else:
        await asyncio.sleep(0.005)
    world.caches.budgets_informer._cache.drop((NAMESPACE, "web"), 9)
    assert await asked == Passed()
    assert world.judge._lister._gone == set()


async def test_budget_that_another_one_of_its_name_replaces_is_forgotten(world: World) -> None:
    world.put(free())
    world.caches.counted(*world.caches.budgets(NAMESPACE))
    world.stored.clear()
    await world.asked()
    metadata = ObjectMeta("web", NAMESPACE, uid="another", resource_version="9")
    world.caches.budgets_informer.observe(msgspec.structs.replace(free(), metadata=metadata))
    assert (world.judge._lister._gone, world.caches._counts) == (set(), {})


@pytest.mark.parametrize("covers", [True, False])
async def test_budget_that_was_created_again_meanwhile_decides_by_its_own_spec(world: World, covers: bool) -> None:
    old = free()
    world.put(old)
    again = budget(maxUnavailable=0, **({} if covers else {"selector": {"matchLabels": {"app": "other"}}}))
    world.put(msgspec.structs.replace(again, metadata=ObjectMeta("web", NAMESPACE, uid="another")), seen=False)
    found = await world.asked()
    assert isinstance(found, Refused) if covers else found == Passed()
    assert (world.puts, world.records("web")) == (["web"], [])


async def test_requests_that_come_during_a_write_share_the_next_one_and_a_refused_one_costs_none(world: World) -> None:
    world.put(free())
    first = asyncio.create_task(world.asked("web-0"))
    await asyncio.sleep(0.005)
    found = await asyncio.gather(first, world.asked("web-1"), world.asked("web-2"), world.asked("web-0"))
    assert [isinstance(each, Passed) for each in found] == [True, True, False, True]
    assert (len(world.puts), world.most) == (2, 1)
    world.put(frozen())
    assert isinstance(await world.asked("web-2"), Refused)
    refused = await world.shared.ask(
        world.stored["web"].metadata, Disruption(Operation.DELETE, world.pods["web-2"], "ann")
    )
    assert (refused, len(world.puts)) == ((None, None), 2)


def behind(world: World, version: int) -> PodUnavailableBudget:
    """A budget whose status is based on pods that the watch has not brought."""
    status = PodUnavailableBudgetStatus(pods_resource_version=str(version))
    return msgspec.structs.replace(budget(maxUnavailable=1), status=status)


async def test_pods_are_listed_by_the_selector_once_for_all_requests_that_wait_for_them(world: World) -> None:
    world.put(behind(world, 5))
    world.version = "5"
    found = await asyncio.gather(world.asked("web-0"), world.asked("web-0"))
    assert [isinstance(each, Passed) for each in found] == [True, True]
    assert world.lists == ["app=web"]


async def test_list_is_not_used_any_more_once_the_watch_has_caught_up(world: World) -> None:
    world.put(behind(world, 5))
    world.version = "5"
    await world.asked("web-0", dry_run=True)
    world.see("web-1", 6, ready=False)
    assert isinstance(await world.asked("web-0", dry_run=True), Refused)


async def test_watch_that_has_just_the_wanted_version_is_not_waited_for(world: World) -> None:
    world.put(behind(world, 1))
    await world.lister.pods_up_to(world.stored["web"], 1)
    assert world.lists == []
