"""The informer with an API server that fails in the ways known from production. Time is simulated."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from kube_base.access import client as client_module
from kube_base.access.informer import Informer
from kube_base.resources import DEPLOYMENTS, PODS
from tests.support.polling import until
from tests.support.projections import Deployment, Pod
from tests.support.stub_api import StubApi, answer, is_list, is_watch, line, serving

pytestmark = pytest.mark.looptime

Object = dict[str, Any]
Calls = list[tuple[str, str | None, str | None]]
"""The calls of a handler: name, old and new resourceVersion."""


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "_PAGE", 500)


def pod(name: str, namespace: str = "shop", **labels: str) -> Object:
    return {"metadata": {"name": name, "namespace": namespace, "labels": labels}}


@asynccontextmanager
async def starting(informer: Informer[Any]) -> AsyncIterator[None]:
    """Run the informer, which need not have listed anything yet."""
    task = asyncio.create_task(informer.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait((task,))
        assert task.cancelled()


@asynccontextmanager
async def running(informer: Informer[Any]) -> AsyncIterator[Calls]:
    """Run the informer. Yields the calls of its handlers."""
    calls: Calls = []

    def note(old: Any, new: Any) -> None:
        versions = [each and each.metadata.resource_version for each in (old, new)]
        calls.append(((new or old).metadata.name, *versions))

    informer.add_handler(note)
    async with starting(informer):
        await asyncio.wait_for(informer.wait_synced(), 60)
        yield calls


@asynccontextmanager
async def watching(*pods: Object, **options: Any) -> AsyncIterator[tuple[StubApi, Informer[Any], Calls]]:
    """An API with these pods, an informer with these options that has listed them, and the calls of its handlers."""
    async with serving() as (api, client):
        for each in pods:
            await api.put(PODS, each)
        informer = Informer(client, PODS, Pod, **options)
        async with running(informer) as calls:
            yield api, informer, calls


def names(informer: Informer[Any]) -> list[str]:
    return sorted(obj.metadata.name for obj in informer.all())


async def test_informer_lists_in_pages_and_then_watches() -> None:
    async with serving() as (api, client):
        for number in range(1200):
            await api.put(PODS, pod(f"p{number:04}"))
        informer = Informer(client, PODS, Pod)
        async with running(informer) as calls:
            assert len(informer) == len(calls) == 1200
            assert sum(map(is_list, api.requests)) == 3
            await api.put(PODS, pod("new"))
            await api.remove(PODS, "p0000", "shop")
            await until(lambda: len(calls) == 1202)
            assert calls[-2:] == [("new", None, "1301"), ("p0000", "101", None)]
            assert informer.get("shop", "new") is not None
            assert informer.get("shop", "p0000") is None


async def test_informer_waits_for_an_api_server_that_is_not_up() -> None:
    async with serving() as (api, client):
        await api.stop()
        informer = Informer(client, PODS, Pod)
        async with starting(informer):
            await asyncio.sleep(60)
            assert not informer.synced
            assert informer.age == pytest.approx(60, abs=1)
            await api.put(PODS, pod("a"))
            await api.start()
            await asyncio.wait_for(informer.wait_synced(), 15)
            assert names(informer) == ["a"]


async def test_changes_during_a_minute_of_outage_arrive_without_a_relist() -> None:
    async with watching(pod("a")) as (api, informer, calls):
        await api.stop()
        await api.put(PODS, pod("b"))
        await api.remove(PODS, "a", "shop")
        await asyncio.sleep(60)
        assert names(informer) == ["a"]  # the cache keeps the last known objects
        assert informer.age >= 59
        before = len(api.requests)
        await api.start()
        await until(lambda: names(informer) == ["b"], seconds=15)
        assert informer.relists == 0
        assert len(api.requests) - before == 1
        assert informer.age < 1
        assert [entry[0] for entry in calls] == ["a", "b", "a"]


async def test_a_watch_cut_within_an_event_resumes_after_the_last_complete_event() -> None:
    async with watching() as (api, informer, calls):
        await api.wait_for_requests(is_watch, 1)
        await api.put(PODS, pod("a"))
        await until(lambda: names(informer) == ["a"])
        await api.send_raw('{"type":"ADDED","object":{"metadata":{"na')
        await asyncio.sleep(1)
        api.cut_watches()
        await api.put(PODS, pod("b"))
        await until(lambda: names(informer) == ["a", "b"])
        watches = await api.wait_for_requests(is_watch, 2)
        assert watches[1].query["resourceVersion"] == "101"
        assert calls == [("a", None, "101"), ("b", None, "102")]
        assert informer.relists == 0


async def test_an_expired_version_causes_a_relist_that_reports_deleted_objects() -> None:
    async with serving() as (api, client):
        for name in ("stays", "goes", "changes"):
            await api.put(PODS, pod(name))
        informer = Informer(client, PODS, Pod)
        async with running(informer) as calls:
            calls.clear()
            await api.stop()
            await api.remove(PODS, "goes", "shop")
            await api.put(PODS, pod("changes", app="x"))
            await api.put(PODS, pod("comes"))
            api.forget_history()
            await api.start()
            await until(lambda: names(informer) == ["changes", "comes", "stays"])
            assert informer.relists == 1
            assert sorted(calls) == [("changes", "103", "105"), ("comes", None, "106"), ("goes", "102", None)]
            await api.put(PODS, pod("later"))
            await until(lambda: "later" in names(informer))


async def test_a_410_in_an_event_or_between_list_pages_is_recovered_from() -> None:
    async with serving() as (api, client):
        for number in range(600):
            await api.put(PODS, pod(f"p{number}"))
        api.fault(lambda request: "continue" in request.query, answer(410, "Expired"))
        informer = Informer(client, PODS, Pod)
        async with running(informer):
            assert len(informer) == 600
            await api.wait_for_requests(is_watch, 1)
            expired = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}
            await api.put(PODS, pod("a"))
            await api.send_raw(line("ERROR", expired).decode())
            await until(lambda: informer.relists == 1)
            await api.put(PODS, pod("b"))
            await until(lambda: informer.get("shop", "b") is not None)
            assert len(informer) == 602


async def test_repeated_relists_are_delayed() -> None:
    async with watching() as (api, informer, _):
        api.fault(is_watch, answer(410, "Expired"), times=1000)
        api.cut_watches()
        await asyncio.sleep(60)
        assert 5 <= informer.relists <= 20


async def test_a_silent_watch_is_closed_and_resumed() -> None:
    async with watching() as (api, informer, _):
        await api.wait_for_requests(is_watch, 1)
        api.silent = True
        await api.put(PODS, pod("a"))
        await asyncio.sleep(80)
        assert names(informer) == []
        assert informer.age == pytest.approx(80, abs=1)
        api.silent = False  # the open watch still gets no events
        await until(lambda: names(informer) == ["a"], seconds=15)
        assert informer.relists == 0


async def test_a_cluster_without_changes_causes_no_lists_and_no_logs(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with watching() as (api, informer, _):
        for _ in range(10):
            await asyncio.sleep(60)
            assert informer.age < 95
        assert not [record for record in caplog.records if record.name.startswith("kube_base")]
        assert sum(map(is_list, api.requests)) == 1


@pytest.mark.parametrize(("code", "reason"), [(500, "InternalError"), (503, ""), (403, "Forbidden"), (504, "Timeout")])
async def test_errors_are_retried_with_growing_pauses(code: int, reason: str) -> None:
    async with serving() as (api, client):
        api.fault(is_list, answer(code, reason), times=8)
        informer = Informer(client, PODS, Pod)
        async with starting(informer):
            await asyncio.sleep(1)
            assert 2 <= len(api.requests) <= 5
            await asyncio.wait_for(informer.wait_synced(), 60)


async def test_retry_delay_is_reset_after_an_outage() -> None:
    async with watching() as (api, informer, _):
        await api.stop()
        await asyncio.sleep(60)
        await api.start()
        await asyncio.sleep(60)
        api.fault(is_watch, answer(500))
        api.cut_watches()
        await api.put(PODS, pod("a"))
        await until(lambda: names(informer) == ["a"], seconds=1)


async def test_retry_after_is_honoured() -> None:
    async with serving() as (api, client):
        api.fault(is_list, answer(429, "TooManyRequests", **{"Retry-After": "20"}))
        informer = Informer(client, PODS, Pod)
        async with starting(informer):
            await asyncio.sleep(19)
            assert len(api.requests) == 1
            await asyncio.wait_for(informer.wait_synced(), 10)


async def test_a_list_without_a_response_is_tried_again() -> None:
    async def never(_request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(3600)
        raise AssertionError

    async with serving() as (api, client):
        api.fault(is_list, never)
        informer = Informer(client, PODS, Pod)
        async with starting(informer):
            await asyncio.wait_for(informer.wait_synced(), 60)
            assert sum(map(is_list, api.requests)) == 2


async def test_an_undecodable_object_is_skipped_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    async with serving() as (api, client):
        await api.put(DEPLOYMENTS, {**pod("bad"), "spec": {"replicas": "many"}})
        await api.put(DEPLOYMENTS, pod("good"))
        informer = Informer(client, DEPLOYMENTS, Deployment)
        async with running(informer) as calls:
            assert names(informer) == ["good"]
            await api.put(DEPLOYMENTS, {**pod("bad"), "spec": {"replicas": "more"}})
            await api.put(DEPLOYMENTS, {**pod("good"), "spec": {"replicas": 2}})
            await until(lambda: len(calls) == 2)
            assert informer.skipped == 2
            assert [record.message for record in caplog.records].count("skipped an object that cannot be read") == 1
            await api.put(DEPLOYMENTS, {**pod("bad"), "spec": {"replicas": 3}})
            await until(lambda: names(informer) == ["bad", "good"])
            await api.put(DEPLOYMENTS, {**pod("bad"), "spec": {"replicas": None}})
            await api.put(DEPLOYMENTS, pod("last"))
            await until(lambda: "last" in names(informer))
            kept = informer.get("shop", "bad")
            assert kept is not None
            assert kept.spec.replicas == 3  # the last decodable version
            await api.remove(DEPLOYMENTS, "bad", "shop")
            await until(lambda: "bad" not in names(informer))


@pytest.mark.parametrize("outage", [False, True])
async def test_an_undecodable_object_that_is_created_again_is_logged_again(
    outage: bool, caplog: pytest.LogCaptureFixture
) -> None:
    bad = {**pod("bad"), "spec": {"replicas": "many"}}
    async with serving() as (api, client):
        await api.put(DEPLOYMENTS, bad)
        informer = Informer(client, DEPLOYMENTS, Deployment)
        async with running(informer):
            if outage:
                await api.stop()
            await api.remove(DEPLOYMENTS, "bad", "shop")
            if outage:
                api.forget_history()
                await api.start()
                await until(lambda: informer.relists == 1)
            await api.put(DEPLOYMENTS, bad)
            await until(lambda: informer.skipped == 2)
            assert [record.message for record in caplog.records].count("skipped an object that cannot be read") == 2


@pytest.mark.parametrize(
    "garbage", ["<html>a proxy</html>\n", "{}\n", '{"type":1,"object":{}}\n', "\xff\n", "[" * 9999 + "\n"]
)
async def test_a_line_that_is_not_an_event_causes_a_relist(garbage: str) -> None:
    async with watching() as (api, informer, _):
        await api.wait_for_requests(is_watch, 1)
        await api.send_raw(garbage)
        await until(lambda: informer.relists == 1)
        await api.put(PODS, pod("a"))
        await until(lambda: names(informer) == ["a"])


async def test_exceptions_in_handlers_and_indexes_do_not_stop_the_informer(caplog: pytest.LogCaptureFixture) -> None:
    def broken(*_: object) -> Any:
        raise ValueError("broken")

    async with serving() as (api, client):
        informer = Informer(client, PODS, Pod)
        informer.add_handler(broken)
        informer.add_index("broken", broken)
        async with running(informer) as calls:
            await api.put(PODS, pod("a"))
            await api.put(PODS, pod("b"))
            await until(lambda: len(calls) == 2)
            assert informer.by_index("broken", "x") == []
            assert "a handler failed" in caplog.messages


async def test_indexes_follow_the_objects() -> None:
    async with serving() as (api, client):
        await api.put(PODS, pod("a", app="x"))
        await api.put(PODS, pod("b", app="x"))
        informer = Informer(client, PODS, Pod)
        informer.add_index("app", lambda obj: obj.metadata.labels.values())

        def found(value: str) -> list[str]:
            return [obj.metadata.name for obj in informer.by_index("app", value)]

        async with running(informer):
            assert found("x") == ["a", "b"]
            await api.put(PODS, pod("a", app="y"))
            await until(lambda: found("y") == ["a"])
            assert found("x") == ["b"]
            await api.remove(PODS, "b", "shop")
            await until(lambda: found("x") == [])


async def test_resync_calls_handlers_for_every_object() -> None:
    async with watching(pod("a"), resync=600) as (_, _, calls):
        await asyncio.sleep(700)
        assert calls[1:] == [("a", "101", "101")]


async def test_an_observed_write_is_in_the_cache_at_once_and_reported_once() -> None:
    async with serving() as (api, client):
        await api.put(PODS, pod("a"))
        informer = Informer(client, PODS, Pod)
        async with running(informer) as calls:
            api.silent = True
            patched = await client.patch(PODS, {"metadata": {"labels": {"app": "x"}}}, "a", "shop", as_=Pod)
            informer.observe(patched)
            assert informer.get("shop", "a") == patched
            api.silent = False
            await api.put(PODS, pod("b"))
            await until(lambda: names(informer) == ["a", "b"])
            assert calls == [("a", None, "101"), ("a", "101", "102"), ("b", None, "103")]


async def test_an_observed_write_older_than_the_list_is_ignored() -> None:
    async with serving() as (api, client):
        await api.put(PODS, pod("a"))
        patched = await client.patch(PODS, {"metadata": {"labels": {"app": "x"}}}, "a", "shop", as_=Pod)
        await api.remove(PODS, "a", "shop")
        informer = Informer(client, PODS, Pod)
        async with running(informer):
            informer.observe(patched)
            assert names(informer) == []


async def test_a_late_response_does_not_restore_a_deleted_object() -> None:
    async with serving() as (api, client):
        await api.put(PODS, pod("a"))
        informer = Informer(client, PODS, Pod)
        async with running(informer):
            patched = await client.patch(PODS, {"metadata": {"labels": {"app": "x"}}}, "a", "shop", as_=Pod)
            await api.remove(PODS, "a", "shop")
            await until(lambda: names(informer) == [])
            informer.observe(patched)
            assert names(informer) == []


async def test_older_events_do_not_undo_an_observed_write() -> None:
    async with serving() as (api, client):
        await api.put(PODS, pod("a"))
        informer = Informer(client, PODS, Pod)
        async with running(informer) as calls:
            await api.wait_for_requests(is_watch, 1)
            api.silent = True
            await api.put(PODS, pod("a", by="somebody"))
            await api.remove(PODS, "a", "shop")
            informer.observe(await client.create(PODS, pod("a", by="us"), "shop", as_=Pod))
            calls.clear()
            api.silent = False
            await api.put(PODS, pod("b"))
            await until(lambda: names(informer) == ["a", "b"])
            assert calls == [("b", None, "105")]


async def test_a_write_during_a_list_stays_in_the_cache() -> None:
    async with serving() as (api, client):
        for number in range(600):
            await api.put(PODS, pod(f"p{number}"))
        informer = Informer(client, PODS, Pod)
        async with running(informer):
            created: list[Pod] = []

            async def write_first(request: web.Request) -> web.StreamResponse:
                snapshot = await api.list_page(request)
                created.append(await client.create(PODS, pod("ours"), "shop", as_=Pod))
                informer.observe(created[0])
                return snapshot

            api.fault(lambda request: "continue" in request.query, write_first)
            api.fault(is_watch, answer(410, "Expired"))
            api.cut_watches()
            await until(lambda: informer.relists == 1 and bool(created))
            await asyncio.sleep(1)
            assert informer.get("shop", "ours") == created[0]


async def test_cache_is_replaced_after_the_storage_is_restored_from_a_backup() -> None:
    async with serving() as (api, client):
        await api.put(PODS, pod("a", from_="now"))
        await api.put(PODS, pod("gone"))
        informer = Informer(client, PODS, Pod)
        async with running(informer):
            api.silent = True
            informer.observe(await client.create(PODS, pod("ours"), "shop", as_=Pod))
            await api.stop()
            api.silent = False
            api.objects.clear()
            api.version = 10
            api.forget_history()
            await api.put(PODS, pod("a", from_="backup"))
            api.fault(is_watch, answer(410, "Expired"))
            await api.start()
            await until(lambda: names(informer) == ["a"])
            restored = informer.get("shop", "a")
            assert restored is not None
            assert restored.metadata.labels == {"from_": "backup"}


async def test_a_watch_resumes_from_the_last_bookmark() -> None:
    async with watching() as (api, _, _):
        await api.wait_for_requests(is_watch, 1)
        await api.send_raw(line("BOOKMARK", {"metadata": {"resourceVersion": "500"}}).decode())
        await api.send_raw(line("BOOKMARK", {"metadata": {"resourceVersion": "not a number"}}).decode())
        await asyncio.sleep(1)
        api.cut_watches()
        watches = await api.wait_for_requests(is_watch, 2)
        assert watches[1].query["resourceVersion"] == "500"


async def test_requests_contain_namespace_and_label_selector() -> None:
    async with watching(namespace="shop", label_selector="app=x,tier in (a,b)") as (api, _, _):
        await api.wait_for_requests(is_watch, 1)
        assert {request.path for request in api.requests} == {"/api/v1/namespaces/shop/pods"}
        assert {request.query["labelSelector"] for request in api.requests} == {"app=x,tier in (a,b)"}


async def test_objects_that_keep_rejects_are_left_out_or_reported_as_deleted() -> None:
    async with watching(pod("a", keep="yes"), pod("b"), keep=lambda obj: "keep" in obj.metadata.labels) as (
        api,
        informer,
        calls,
    ):
        assert names(informer) == ["a"]
        await api.put(PODS, pod("c", keep="yes"))
        await api.put(PODS, pod("d"))
        await api.put(PODS, pod("a"))
        await until(lambda: names(informer) == ["c"])
        assert [(name, new is None) for name, _, new in calls] == [("a", False), ("c", False), ("a", True)]


async def test_refill_adds_objects_that_keep_accepts_now() -> None:
    async with serving() as (api, client):
        wanted = {"shop"}
        informer = Informer(client, PODS, Pod, keep=lambda obj: obj.metadata.namespace in wanted)
        for namespace in ("shop", "depot", "lab"):
            await api.put(PODS, pod("a", namespace))
        async with running(informer) as calls:
            wanted |= {"depot", "lab"}
            await informer.refill("depot")
            await informer.refill("depot")
            await informer.refill("shop")
            assert [obj.metadata.namespace for obj in informer.all()] == ["shop", "depot"]
            assert len(calls) == 2


async def test_metadata_only_requests_partial_object_metadata() -> None:
    async with serving() as (api, client):
        await api.put(PODS, pod("a"))
        async with running(Informer(client, PODS, Pod, metadata_only=True)):
            (watched,) = await api.wait_for_requests(is_watch, 1)
            (listed,) = [request for request in api.requests if is_list(request)]
        asked = [request.headers["Accept"].split(";")[1] for request in (listed, watched)]
        assert asked == ["as=PartialObjectMetadataList", "as=PartialObjectMetadata"]
