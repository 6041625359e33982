"""Refills and evictions of namespaces during a watch: the cache keeps the newest version of each object, and handlers
learn whether an object was deleted or evicted."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Container
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given, settings
from hypothesis import strategies as st

from kube_base.access import client as client_module
from kube_base.access.client import Client
from kube_base.access.errors import ServerError, UnreachableError
from kube_base.access.informer import Informer
from kube_base.resources import PODS
from tests.support.polling import until
from tests.support.projections import Pod
from tests.support.simulated_time import simulated_time
from tests.support.stub_api import StubApi, answer, is_paged_list, is_watch, serving
from tests.unit.kube_base.access.informers import informing, pod, running, started

pytestmark = pytest.mark.looptime

SHOP = "/api/v1/namespaces/shop/pods"


def refills(request: web.Request) -> bool:
    return is_paged_list(request) and request.path == SHOP


def listed_before(api: StubApi, *meanwhile: Callable[[], Awaitable[object]]) -> Any:
    """A list that is read when the request arrives, and sent after all later changes."""

    async def late(request: web.Request) -> web.StreamResponse:
        snapshot = await api.list_page(request)
        for act in meanwhile:
            await act()
        await asyncio.sleep(1)
        return snapshot

    return late


def within(namespaces: Container[str]) -> Callable[[Pod], bool]:
    return lambda obj: obj.metadata.namespace in namespaces


def label(informer: Informer[Pod], name: str) -> str | None:
    found = informer.get("shop", name)
    return found.metadata.labels.get("n") if found else None


async def test_changes_of_the_watch_during_a_refill_are_kept() -> None:
    wanted: set[str] = set()
    async with informing(keep=within(wanted)) as (api, informer):
        for name in ("changed", "deleted", "remade", "same"):
            await api.put(PODS, pod(name, n="old"))
        async with running(informer):
            await api.wait_for_requests(is_watch, 1)
            wanted.add("shop")
            api.fault(
                refills,
                listed_before(
                    api,
                    lambda: api.put(PODS, pod("changed", n="new")),
                    lambda: api.remove(PODS, "deleted", "shop"),
                    lambda: api.remove(PODS, "remade", "shop"),
                    lambda: api.put(PODS, pod("remade", n="new")),
                    lambda: api.put(PODS, pod("made", n="new")),
                ),
            )
            await informer.refill("shop")
            seen = {name: label(informer, name) for name in ("changed", "deleted", "remade", "same", "made")}
            assert seen == {"changed": "new", "deleted": None, "remade": "new", "same": "old", "made": "new"}


async def test_older_watch_events_do_not_replace_refilled_objects() -> None:
    wanted: set[str] = set()
    async with informing(keep=within(wanted)) as (api, informer):
        await api.put(PODS, pod("a", n="1"))
        handled: list[str | None] = []
        informer.add_handler(lambda old, new: handled.append(new.metadata.labels.get("n") if new else None))
        async with running(informer):
            await api.wait_for_requests(is_watch, 1)
            api.silent = True
            await api.put(PODS, pod("a", n="2"))
            await api.remove(PODS, "a", "shop")
            await api.put(PODS, pod("a", n="3"))
            wanted.add("shop")
            await informer.refill("shop")
            assert handled == ["3"]
            api.silent = False
            await api.put(PODS, pod("a", n="4"))
            await until(lambda: handled[-1] == "4")
            assert handled == ["3", "4"]


async def test_complete_list_during_a_refill_replaces_it() -> None:
    wanted: set[str] = set()
    async with (
        informing("deleted", keep=within(wanted)) as (api, informer),
        running(informer),
    ):
        await api.wait_for_requests(is_watch, 1)
        wanted.add("shop")

        async def lose_the_watch_and_the_pod() -> None:
            api.fault(is_watch, answer(410, "Expired"))
            api.cut_watches()
            await api.remove(PODS, "deleted", "shop")
            await api.put(PODS, pod("made"))
            api.forget_history()
            await asyncio.sleep(5)

        api.fault(refills, listed_before(api, lose_the_watch_and_the_pod))
        await informer.refill("shop")
        assert informer.relists == 1
        assert [obj.metadata.name for obj in informer.all()] == ["made"]


async def test_namespace_that_is_kept_during_the_first_list_is_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "_PAGE", 10)
    wanted: set[str] = set()
    async with informing(keep=within(wanted)) as (api, informer):
        for number in range(25):
            await api.put(PODS, pod(f"p{number:02}"))
        waiting: list[asyncio.Task[None]] = []

        async def want(request: web.Request) -> web.StreamResponse:
            wanted.add("shop")
            waiting.append(asyncio.create_task(informer.refill("shop")))
            return await api.answer(request)

        api.fault(lambda request: "continue" in request.query, want)
        async with running(informer):
            await waiting[0]
            assert len(informer) == 25


async def test_failed_refill_raises_and_can_be_repeated() -> None:
    wanted: set[str] = set()
    async with informing("a", keep=within(wanted)) as (api, informer), running(informer):
        wanted.add("shop")
        api.fault(refills, answer(503))
        with pytest.raises(ServerError):
            await informer.refill("shop")
        await informer.refill("shop")
        assert len(informer) == 1


async def test_evicted_objects_call_evicted_and_deleted_objects_the_handler() -> None:
    wanted = {"shop", "depot"}
    async with informing("a", "b", keep=within(wanted)) as (api, informer):
        await api.put(PODS, pod("other", "depot"))
        gone: list[str] = []
        evicted: list[str] = []
        either: list[str] = []

        def noting(names: list[str]) -> Callable[[Pod | None, Pod | None], None]:
            return lambda old, new: names.append(old.metadata.name) if old and not new else None

        informer.add_handler(noting(gone), evicted=lambda old: evicted.append(old.metadata.name))
        informer.add_handler(noting(either))
        informer.add_index("name", lambda obj: [obj.metadata.name])
        async with running(informer):
            await api.remove(PODS, "b", "shop")
            await until(lambda: gone == ["b"])
            wanted.remove("shop")
            await informer.evict("shop")
            assert (gone, evicted, either) == (["b"], ["a"], ["b", "a"])
            assert [obj.metadata.name for obj in informer.all()] == ["other"]
            assert informer.by_index("name", "a") == []
            await api.put(PODS, pod("a", n="later"))
            await api.put(PODS, pod("other", "depot", n="later"))
            await until(lambda: informer.by_index("name", "other")[0].metadata.labels)
            assert len(informer) == 1


async def test_response_of_a_write_into_an_evicted_namespace_is_not_cached() -> None:
    async with serving() as (_, client):
        informer = Informer(client, PODS, Pod, keep=lambda obj: obj.metadata.namespace != "shop")
        async with running(informer):
            informer.observe(await client.create(PODS, pod("a"), "shop", as_=Pod))
            assert len(informer) == 0


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), streaming=st.booleans())
def test_random_concurrent_changes_end_with_the_objects_of_the_cluster(seed: int, streaming: bool) -> None:
    """Concurrent writes, refills, evictions, interrupted watches and relists. No object is replaced by an older
    version."""
    with asyncio.Runner() as runner, simulated_time(runner.get_loop()):  # a loop for each example
        runner.run(_chaos(random.Random(seed), streaming=streaming))  # noqa: S311


class _Acts:
    """Random writes, refills, evictions, interrupted watches and relists of two namespaces."""

    def __init__(self, api: StubApi, client: Client, chance: random.Random) -> None:
        self.wanted: set[str] = set()
        self.informer = Informer(client, PODS, Pod, keep=lambda obj: obj.metadata.namespace in self.wanted)
        self.informer.add_handler(self._note)
        self._api, self._client, self._chance = api, client, chance
        self._latest: dict[tuple[str, str], int] = {}

    def _note(self, old: Pod | None, new: Pod | None) -> None:
        if new is not None:
            key, version = (new.metadata.namespace, new.metadata.name), int(new.metadata.resource_version)
            assert version >= self._latest.get(key, 0), "an older version replaced a newer one"
            self._latest[key] = version

    async def list_late(self, request: web.Request) -> web.StreamResponse:
        snapshot = await self._api.list_page(request)
        await asyncio.sleep(self._chance.random() * 3)
        return snapshot

    async def act(self) -> None:
        do = self._chance.choices((self._write, self._turn_over, self._disturb), (6, 2, 1))[0]
        await do(self._chance.choice(("shop", "depot")))

    async def _write(self, namespace: str) -> None:
        name = f"p{self._chance.randrange(4)}"
        if self._api.get(PODS, name, namespace) is None:
            created = await self._client.create(PODS, pod(name, namespace), namespace, as_=Pod)
            await asyncio.sleep(self._chance.random())
            self.informer.observe(created)
        elif self._chance.random() < 0.5:
            await self._api.remove(PODS, name, namespace)
        else:
            await self._api.put(PODS, pod(name, namespace, n=str(self._chance.random())))

    async def _turn_over(self, namespace: str) -> None:
        if namespace in self.wanted:
            self.wanted.remove(namespace)
            await self.informer.evict(namespace)
        else:
            self.wanted.add(namespace)
            await self.informer.refill(namespace)

    async def _disturb(self, _namespace: str) -> None:
        self._api.cut_watches()
        if self._chance.random() < 0.3:
            self._api.forget_history()


async def _chaos(chance: random.Random, *, streaming: bool) -> None:
    async with serving(streaming_lists=streaming) as (api, client):
        acts = _Acts(api, client, chance)
        api.fault(is_paged_list, acts.list_late, times=10_000)
        under_way: set[asyncio.Task[None]] = set()
        async with running(acts.informer):
            for _ in range(60):
                under_way.add(asyncio.create_task(acts.act()))
                await asyncio.sleep(chance.random())
            done, pending = await asyncio.wait(under_way, timeout=120)
            assert not pending
            for task in done:
                task.result()
            await api.put(PODS, pod("last", "elsewhere"))
            await asyncio.sleep(30)
            there = {
                (obj["metadata"]["namespace"], obj["metadata"]["name"]): obj["metadata"]["resourceVersion"]
                for obj in api.all(PODS)
                if obj["metadata"]["namespace"] in acts.wanted
            }
            cached = {
                (obj.metadata.namespace, obj.metadata.name): obj.metadata.resource_version
                for obj in acts.informer.all()
            }
            assert cached == there


def slow(api: StubApi, seconds: float) -> Any:
    """A list that is read and sent after a delay."""

    async def late(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(seconds)
        return await api.list_page(request)

    return late


async def test_refill_fails_if_the_resource_cannot_be_listed_at_all() -> None:
    """Who waits for it must be able to go on with other namespaces."""
    async with informing() as (api, informer):
        api.fault(lambda request: True, answer(500), times=10**6)
        async with started(informer):
            with pytest.raises(UnreachableError, match="pods could not be listed within 60 s"):
                await informer.refill("shop")


async def test_refill_before_the_first_list_waits_for_it_without_another_list() -> None:
    async with informing("a") as (api, informer):
        waiting = asyncio.create_task(informer.refill("shop"))
        await asyncio.sleep(10)
        assert (waiting.done(), api.requests) == (False, [])
        async with running(informer):
            await asyncio.wait_for(waiting, 10)
            assert len(informer) == 1
            assert [request.path for request in api.requests if is_paged_list(request)] == ["/api/v1/pods"]


@pytest.mark.parametrize("listed", [True, False])
async def test_refill_that_a_complete_list_overtakes_returns_when_that_list_ends(listed: bool) -> None:
    wanted: set[str] = set()
    async with informing(keep=within(wanted)) as (api, informer):
        if listed:
            await api.put(PODS, pod("a"))
        async with running(informer):
            await api.wait_for_requests(is_watch, 1)
            wanted.add("shop")

            async def lose_the_watch() -> None:
                api.fault(is_paged_list, slow(api, 20))
                api.fault(is_watch, answer(410, "Expired"))
                api.cut_watches()
                await asyncio.sleep(5)
                await api.put(PODS, pod("made"))

            api.fault(refills, listed_before(api, lose_the_watch))
            await informer.refill("shop")
            assert informer.get("shop", "made") is not None
            assert informer._cache._refills == []


async def test_evict_removes_only_the_namespace() -> None:
    wanted = {"shop", "depot"}
    async with informing("a", keep=within(wanted), name="own pods") as (api, informer):
        await api.put(PODS, pod("a", "depot"))
        assert informer.name == "own pods"
        async with running(informer):
            wanted.clear()
            await informer.evict("shop")
            assert [obj.metadata.namespace for obj in informer.all()] == ["depot"]
