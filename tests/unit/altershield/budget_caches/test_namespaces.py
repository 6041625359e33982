"""The caches have the pods and workloads of the namespaces that have a budget, and of no others."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from aiohttp import web

from altershield.api.budgets import Operation
from altershield.api.resources import POD_UNAVAILABLE_BUDGETS
from altershield.budget_caches.caches import BudgetCaches
from altershield.budget_caches.namespaces import BudgetNamespaces
from altershield.budgets.steps import Disruption, Refused
from gatekeeper.budgets.judge import Busy, Judge
from kube_base.access.client import Client
from kube_base.resources import DEPLOYMENTS, PODS, REPLICA_SETS, Resource
from tests.support.polling import until
from tests.support.stub_api import StubApi, answer, is_paged_list, serving
from tests.unit.altershield.budgets.builders import DEPLOYMENT, NOW, SET, budget, pod, wire

pytestmark = pytest.mark.looptime

BUDGET = {"selector": {"matchLabels": {"app": "web"}}, "maxUnavailable": 0}


def lists_pods(request: web.Request) -> bool:
    return is_paged_list(request) and request.path == PODS.path("shop")


def lists_all_pods(request: web.Request) -> bool:
    return is_paged_list(request) and request.path == PODS.path()


async def put(
    api: StubApi, resource: Resource, name: str, uid: str, owner: dict[str, Any] | None = None, replicas: int = 2
) -> None:
    metadata = {"name": name, "namespace": "shop", "uid": uid, "ownerReferences": [owner] if owner else []}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": {"spec": {"containers": []}}}
    await api.put(resource, {"metadata": metadata, "spec": spec, "status": {"replicas": 2}})


@contextlib.asynccontextmanager
async def application() -> AsyncIterator[tuple[StubApi, Client]]:
    """A cluster with a Deployment, its ReplicaSet and two pods."""
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": DEPLOYMENT.uid, "controller": True}
    async with serving() as (api, client):
        await put(api, DEPLOYMENTS, DEPLOYMENT.name, DEPLOYMENT.uid)
        await put(api, REPLICA_SETS, SET.name, SET.uid, owner)
        for number in (1, 2):
            await api.put(PODS, wire(f"web-{number}"))
        yield api, client


async def put_budget(api: StubApi, name: str = "web", namespace: str = "shop", **spec: Any) -> None:
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "generation": 1}
    await api.put(POD_UNAVAILABLE_BUDGETS, {"metadata": metadata, "spec": BUDGET | spec})


@contextlib.asynccontextmanager
async def following(client: Client) -> AsyncIterator[BudgetCaches]:
    caches = BudgetCaches(client, lambda namespace: True, lambda namespace: False)
    task = asyncio.create_task(caches.run())
    try:
        for informer in caches.required:
            await informer.wait_synced()
        yield caches
    finally:
        task.cancel()
        await asyncio.wait((task,))


async def has_budgets(caches: BudgetCaches, count: int) -> None:
    await until(lambda: len(caches.budgets("shop")) == count, "the watch to bring the budgets")


async def test_nothing_is_listed_in_a_cluster_without_budgets() -> None:
    async with application() as (api, client), following(client):
        await asyncio.sleep(60)
        assert not any(request.path.endswith(("/pods", "/deployments")) for request in api.requests)


async def test_namespace_without_a_budget_costs_no_memory() -> None:
    async with application() as (api, client):
        await put_budget(api, namespace="other")
        async with following(client) as caches:
            await caches.wait_filled("other")
            await api.put(PODS, wire("web-3"))
            await asyncio.sleep(1)
            assert not any(map(len, (caches.pods_informer, *caches._scaled.values())))


async def test_namespace_that_has_a_budget_at_the_start_is_listed_once() -> None:
    async with application() as (api, client):
        await put_budget(api)
        async with following(client) as caches:
            filled: list[str] = []
            caches.namespaces.add_handler(filled.append)
            await caches.wait_filled("shop")
            await until(lambda: filled == ["shop"], "the handlers to be called")
            assert len(caches.pods_informer) == 2
            assert not any(map(lists_pods, api.requests))


@pytest.mark.parametrize("cluster_has_none", [True, False], ids=["of the cluster", "of the namespace"])
async def test_first_budget_is_in_force_at_once(cluster_has_none: bool) -> None:
    """The request waits until the pods are listed: before, no pod of the budget would be known."""
    async with application() as (api, client):

        async def late(request: web.Request) -> web.StreamResponse:
            await asyncio.sleep(2)
            return await api.list_page(request)

        api.streams_lists = False
        api.fault(lists_all_pods if cluster_has_none else lists_pods, late)
        if not cluster_has_none:
            await put_budget(api, namespace="other")
        async with following(client) as caches:
            judge = Judge(client, caches, lambda: NOW)
            if not cluster_has_none:
                await caches.wait_filled("other")
            await put_budget(api)
            await has_budgets(caches, 1)
            assert not caches.is_filled("shop")
            verdict = await judge.judge(Disruption(Operation.DELETE, pod(), "ann"))
            assert isinstance(verdict, Refused), verdict
            assert verdict.message == (
                "PodUnavailableBudget web: 2 of 2 pods are available and 2 must be (maxUnavailable 0)"
            )


async def test_request_is_refused_while_the_pods_cannot_be_listed_and_decided_afterwards() -> None:
    async with application() as (api, client):
        api.streams_lists = False
        api.fault(lists_all_pods, answer(503), times=40)
        async with following(client) as caches:
            judge = Judge(client, caches, lambda: NOW)
            await put_budget(api)
            await has_budgets(caches, 1)
            assert isinstance(await judge.judge(Disruption(Operation.DELETE, pod(), "ann")), Busy)
            async with asyncio.timeout(3600):
                await caches.wait_filled("shop")
            assert isinstance(await judge.judge(Disruption(Operation.DELETE, pod(), "ann")), Refused)


async def test_pods_are_dropped_with_the_last_budget_and_listed_again_with_the_next() -> None:
    async with application() as (api, client):
        await put_budget(api)
        await put_budget(api, "other", selector={"matchLabels": {"app": "other"}})
        async with following(client) as caches:
            filled: list[str] = []
            caches.namespaces.add_handler(filled.append)
            await until(lambda: filled == ["shop"], "the pods to be listed")
            filled.clear()
            await api.remove(POD_UNAVAILABLE_BUDGETS, "other", "shop")
            await has_budgets(caches, 1)
            await asyncio.sleep(1)
            assert len(caches.pods_informer) == 2
            await api.remove(POD_UNAVAILABLE_BUDGETS, "web", "shop")
            await until(lambda: len(caches.pods_informer) == 0, "the pods to be dropped")
            assert not caches.index.groups("shop")
            await put_budget(api)
            await until(lambda: filled == ["shop"], "the pods to be listed")
            assert len(caches.pods_informer) == 2


async def test_budget_that_is_replaced_during_the_list_has_all_pods() -> None:
    async with application() as (api, client):

        async def replaced(request: web.Request) -> web.StreamResponse:
            found = await api.list_page(request)
            await api.remove(POD_UNAVAILABLE_BUDGETS, "web", "shop")
            await asyncio.sleep(1)
            await put_budget(api)
            await asyncio.sleep(1)
            return found

        api.fault(lists_pods, replaced)
        await put_budget(api, namespace="other")
        async with following(client) as caches:
            await caches.wait_filled("other")
            await put_budget(api)
            await api.wait_for_requests(lists_pods, 2)
            await caches.wait_filled("shop")
            assert len(caches.pods_informer) == 2
            assert len(caches.index.groups("shop")) == 1


async def test_budget_that_comes_during_the_first_list_has_all_pods() -> None:
    async with application() as (api, client):

        async def late(request: web.Request) -> web.StreamResponse:
            found = await api.list_page(request)
            await put_budget(api)
            await asyncio.sleep(1)
            return found

        api.streams_lists = False
        await put_budget(api, "other", namespace="other")
        api.fault(lists_all_pods, late)
        async with following(client) as caches:
            await has_budgets(caches, 1)
            await caches.wait_filled("shop")
            assert len(caches.pods_informer) == 2


async def test_replica_set_that_was_read_live_and_is_scaled_to_zero_later_is_read_again() -> None:
    """The first read would keep its pods protected for ever, also from their own controller."""
    async with serving() as (api, client):
        await put_budget(api)
        async with following(client) as caches:
            await caches.wait_filled("shop")
            await put(api, REPLICA_SETS, SET.name, SET.uid)
            await caches.scales.read(SET, "shop")
            await until(lambda: len(caches._scaled[REPLICA_SETS]) == 1, "the watch to bring the ReplicaSet")
            await put(api, REPLICA_SETS, SET.name, SET.uid, replicas=0)
            await until(lambda: not len(caches._scaled[REPLICA_SETS]), "the watch to bring the change")
            assert caches.scales.of("shop").can_read(SET)
            await caches.scales.read(SET, "shop")
            found = caches.scales.of("shop").get(SET)
            assert found is not None
            assert found.replicas == 0


async def test_cached_object_of_another_namespace_is_no_owner() -> None:
    """An owner is in the namespace of its pods: the garbage collector deletes a pod whose owner is elsewhere."""
    async with application() as (api, client):
        await put_budget(api)
        async with following(client) as caches:
            await caches.wait_filled("shop")
            scales, other = caches.scales.of("shop"), caches.scales.of("other")
            assert scales.get(SET) is not None
            assert other.get(SET) is None
            assert other.can_read(SET)
            assert [each.uid for each in scales.owned_by(DEPLOYMENT.uid)] == [SET.uid]
            assert other.owned_by(DEPLOYMENT.uid) == []


class Lists:
    """Stands for the informer of budgets, and for one of pods whose lists end when a test says so."""

    synced = True

    def __init__(self) -> None:
        self.budgets: set[str] = set()
        self.began: list[str] = []
        self.ends = asyncio.Semaphore(0)
        self.filled: list[str] = []
        self.namespaces = BudgetNamespaces(self, lambda: [self])  # type: ignore[arg-type, list-item]
        self.namespaces.add_handler(self.filled.append)

    def add_handler(self, handler: Callable[[Any, Any], None]) -> None:
        self._handler = handler

    def has_namespace(self, namespace: str) -> bool:
        return bool(self.budgets)

    def create(self, name: str) -> None:
        self.budgets.add(name)
        self._handler(None, budget(name=name, maxUnavailable=1))

    def delete(self, name: str) -> None:
        self.budgets.remove(name)
        self._handler(budget(name=name, maxUnavailable=1), None)

    async def refill(self, namespace: str) -> None:
        self.began.append("list")
        await self.ends.acquire()

    async def evict(self, namespace: str) -> None:
        self.began.append("evict")


@contextlib.asynccontextmanager
async def working() -> AsyncIterator[Lists]:
    lists = Lists()
    task = asyncio.create_task(lists.namespaces.run())
    yield lists
    task.cancel()
    await asyncio.wait((task,))


async def test_second_budget_of_a_namespace_comes_and_goes_without_a_list() -> None:
    async with working() as lists:
        lists.ends.release()
        lists.create("web")
        await lists.namespaces.wait_filled("shop")
        lists.create("other")
        lists.delete("other")
        lists.create("another")
        await asyncio.sleep(1)
        assert lists.namespaces.is_filled("shop")
        assert (lists.began, lists.filled) == (["list"], ["shop"])


async def test_nobody_waits_for_the_pods_of_a_namespace_whose_last_budget_is_deleted() -> None:
    async with working() as lists:
        lists.create("web")
        waits = asyncio.create_task(lists.namespaces.wait_filled("shop"))
        await asyncio.sleep(1)
        assert not waits.done()
        lists.delete("web")
        await asyncio.wait_for(waits, 1)


async def test_list_that_began_for_an_earlier_budget_does_not_fill_the_namespace_for_its_successor() -> None:
    async with working() as lists:
        lists.create("web")
        await asyncio.sleep(1)
        lists.delete("web")
        lists.create("web")
        lists.ends.release()
        await asyncio.sleep(1)
        assert (lists.namespaces.is_filled("shop"), lists.filled) == (False, [])
        lists.ends.release()
        await lists.namespaces.wait_filled("shop")
        assert (lists.began, lists.filled) == (["list", "list"], ["shop"])


async def test_namespace_that_is_still_being_filled_is_not_announced() -> None:
    lists = Lists()
    lists.create("web")
    lists.namespaces.announce()
    assert lists.filled == []
    early = Lists()
    early.synced = False
    early.create("web")
    early.namespaces.announce()
    assert early.filled == ["shop"]
