"""The EventRecorder: fields, aggregation, retries and limits of Events."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from kube_base.access import events
from kube_base.access.events import EventRecorder, ObjectRef
from kube_base.meta import ObjectMeta
from kube_base.resources import DEPLOYMENTS, EVENTS, NAMESPACES
from tests.support.stub_api import Answer, StubApi, answer, serving

pytestmark = pytest.mark.looptime

SLEEP = ObjectRef.of(DEPLOYMENTS, ObjectMeta(name="sleep", namespace="shop", uid="u1"))
NAMESAKE = ObjectRef.of(DEPLOYMENTS, ObjectMeta(name="sleep", namespace="shop", uid="u2"))


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """The wall clock follows the simulated time."""

    class Clock:
        @staticmethod
        def time() -> float:
            return 1_800_000_000 + asyncio.get_running_loop().time()

    monkeypatch.setattr(events, "time", Clock)


@asynccontextmanager
async def recording() -> AsyncIterator[tuple[StubApi, EventRecorder]]:
    async with serving() as (api, client):
        recorder = EventRecorder(client, "altershield")
        task = asyncio.create_task(recorder.run())
        yield api, recorder
        task.cancel()
        await asyncio.wait((task,))
        assert task.cancelled()


def is_post(request: web.Request) -> bool:
    return request.method == "POST"


def verified(recorder: EventRecorder, message: str = "all passed") -> None:
    recorder.event(SLEEP, events.NORMAL, "Verified", message)


def without_a_response(api: StubApi) -> Answer:
    """The request is carried out, and the connection ends before its response."""

    async def lost(request: web.Request) -> web.StreamResponse:
        await api.answer(request)
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    return lost


async def only_event(api: StubApi) -> dict[str, Any]:
    await asyncio.sleep(1)
    (event,) = api.all(EVENTS)
    return event


async def test_event_has_the_fields_that_kubectl_describe_shows() -> None:
    async with recording() as (api, recorder):
        recorder.event(SLEEP, events.WARNING, "RolledBack", "version a never came up")
        event = await only_event(api)
        name = event["metadata"].pop("name")
        assert name.startswith("sleep.")
        event["metadata"].pop("resourceVersion")
        assert event == {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"namespace": "shop"},
            "involvedObject": {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "name": "sleep",
                "namespace": "shop",
                "uid": "u1",
            },
            "type": "Warning",
            "reason": "RolledBack",
            "message": "version a never came up",
            "firstTimestamp": "2027-01-15T08:00:00Z",
            "lastTimestamp": "2027-01-15T08:00:00Z",
            "count": 1,
            "source": {"component": "altershield"},
            "reportingComponent": "altershield",
        }


async def test_repetition_increases_the_count_of_the_event() -> None:
    async with recording() as (api, recorder):
        for _ in range(3):
            verified(recorder)
            await asyncio.sleep(60)
        event = await only_event(api)
        assert event["count"] == 3
        assert event["firstTimestamp"] == "2027-01-15T08:00:00Z"
        assert event["lastTimestamp"] == "2027-01-15T08:02:00Z"
        assert event["message"] == "all passed"


async def test_repetition_after_ten_minutes_is_a_new_event() -> None:
    async with recording() as (api, recorder):
        verified(recorder)
        await asyncio.sleep(601)
        verified(recorder)
        await asyncio.sleep(1)
        assert [event["count"] for event in api.all(EVENTS)] == [1, 1]


@pytest.mark.parametrize(
    "other",
    [
        (SLEEP, events.WARNING, "Verified", "all passed"),
        (SLEEP, events.NORMAL, "Suspended", "all passed"),
        (SLEEP, events.NORMAL, "Verified", "one failed"),
        (
            ObjectRef.of(DEPLOYMENTS, ObjectMeta(name="sleep", namespace="shop", uid="u2")),
            events.NORMAL,
            "Verified",
            "x",
        ),
    ],
)
async def test_different_field_makes_another_event(other: tuple[ObjectRef, str, str, str]) -> None:
    async with recording() as (api, recorder):
        verified(recorder)
        recorder.event(*other)
        await asyncio.sleep(1)
        assert len(api.all(EVENTS)) == 2


async def test_repetition_of_a_deleted_event_creates_a_new_event() -> None:
    async with recording() as (api, recorder):
        verified(recorder)
        event = await only_event(api)
        await api.remove(EVENTS, event["metadata"]["name"], "shop")
        verified(recorder)
        assert (await only_event(api))["count"] == 1


async def test_events_of_cluster_scoped_objects_are_in_the_namespace_default() -> None:
    async with recording() as (api, recorder):
        recorder.event(ObjectRef.of(NAMESPACES, ObjectMeta(name="shop")), events.NORMAL, "Governed", "since now")
        event = await only_event(api)
        assert event["metadata"]["namespace"] == "default"
        assert "namespace" not in event["involvedObject"]


async def test_long_names_and_messages_are_cut() -> None:
    async with recording() as (api, recorder):
        long = ObjectRef.of(DEPLOYMENTS, ObjectMeta(name="a" * 235 + "." + "b" * 17, namespace="shop"))
        recorder.event(long, events.NORMAL, "Verified", "ü" * 3000)
        event = await only_event(api)
        assert len(event["metadata"]["name"]) <= 253
        assert ".." not in event["metadata"]["name"]
        assert 1000 < len(event["message"].encode()) <= 1024
        assert event["message"].endswith("ü…")


async def test_events_of_an_outage_are_written_afterwards_with_their_count() -> None:
    async with recording() as (api, recorder):
        await api.stop()
        for _ in range(5):
            verified(recorder)
            recorder.event(SLEEP, events.NORMAL, "Suspended", "one failed")
            await asyncio.sleep(20)
        await api.start()
        await asyncio.sleep(20)
        assert {event["reason"]: event["count"] for event in api.all(EVENTS)} == {"Verified": 5, "Suspended": 5}
        assert recorder.dropped == 0


async def test_events_above_the_limit_are_dropped_and_counted() -> None:
    async with recording() as (api, recorder):
        await api.stop()
        for number in range(1500):
            verified(recorder, f"number {number}")
        assert recorder.dropped == 500
        await api.start()
        await asyncio.sleep(60)
        assert len(api.all(EVENTS)) == 1000


async def test_create_without_a_response_is_not_repeated_if_it_succeeded() -> None:
    async with recording() as (api, recorder):
        api.fault(is_post, without_a_response(api))
        verified(recorder)
        await asyncio.sleep(5)
        assert len(api.requests) == 2
        verified(recorder)
        assert (await only_event(api))["count"] == 2


async def test_failed_patch_of_the_count_is_retried() -> None:
    async with recording() as (api, recorder):
        verified(recorder)
        await asyncio.sleep(1)
        api.fault(lambda request: request.method == "PATCH", answer(503))
        verified(recorder)
        await asyncio.sleep(5)
        assert (await only_event(api))["count"] == 2


def of(number: int) -> ObjectRef:
    return ObjectRef.of(DEPLOYMENTS, ObjectMeta(name=f"d{number}", namespace="shop", uid=f"u{number}"))


async def test_four_events_are_written_at_the_same_time() -> None:
    async with recording() as (api, recorder):
        at_once = most = 0

        async def slowly(request: web.Request) -> web.StreamResponse:
            nonlocal at_once, most
            at_once += 1
            most = max(most, at_once)
            await asyncio.sleep(1)
            at_once -= 1
            return await api.answer(request)

        api.fault(is_post, slowly, times=1000)
        for number in range(100):
            recorder.event(of(number % 20), events.NORMAL, "Verified", f"number {number}")
        await asyncio.sleep(26)
        assert len(api.all(EVENTS)) == 100
        assert most == 4


async def test_events_of_one_object_are_written_in_order() -> None:
    async with recording() as (api, recorder):
        underway: set[str] = set()

        async def unevenly(request: web.Request) -> web.StreamResponse:
            name = (await request.json())["involvedObject"]["name"]
            assert name not in underway
            underway.add(name)
            await asyncio.sleep(0.1 + len(api.requests) % 3)
            underway.remove(name)
            return await api.answer(request)

        api.fault(is_post, unevenly, times=1000)
        for number in range(60):
            recorder.event(of(number % 6), events.NORMAL, "Verified", f"{number:02}")
        await asyncio.sleep(60)
        for number in range(6):
            written = [event["message"] for event in api.all(EVENTS) if event["involvedObject"]["name"] == f"d{number}"]
            assert written == sorted(written)
            assert len(written) == 10


async def test_event_that_waits_does_not_delay_other_objects() -> None:
    async def never(_request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(3600)
        raise AssertionError

    async with recording() as (api, recorder):
        api.fault(is_post, never)
        for number in range(20):
            recorder.event(of(number), events.NORMAL, "Verified", "all passed")
        await asyncio.sleep(1)
        assert len(api.all(EVENTS)) == 19


@pytest.mark.parametrize("code", [429, 500, 503])
async def test_server_error_is_retried_a_limited_number_of_times(code: int) -> None:
    async with recording() as (api, recorder):
        api.fault(is_post, answer(code), times=3)
        verified(recorder)
        await asyncio.sleep(30)
        assert len(api.all(EVENTS)) == 1
        api.fault(is_post, answer(code), times=5)
        verified(recorder, "refused")
        verified(recorder, "the next one")
        await asyncio.sleep(60)
        assert [event["message"] for event in api.all(EVENTS)] == ["all passed", "the next one"]
        assert recorder.dropped == 1


async def test_refused_event_is_dropped_and_the_next_is_written(caplog: pytest.LogCaptureFixture) -> None:
    async with recording() as (api, recorder):
        api.fault(is_post, answer(422, "Invalid"))
        verified(recorder, "bad")
        verified(recorder, "good")
        assert (await only_event(api))["message"] == "good"
        assert recorder.dropped == 1
        assert caplog.messages == ["could not write an Event"]


async def test_terminating_namespace_causes_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    async def terminating(_request: web.Request) -> web.StreamResponse:
        status = {
            "kind": "Status",
            "code": 403,
            "reason": "Forbidden",
            "message": 'events "x" is forbidden: unable to create new content in namespace shop because it is ...',
            "details": {"causes": [{"reason": "NamespaceTerminating", "field": "metadata.namespace"}]},
        }
        return web.json_response(status, status=403)

    caplog.set_level("INFO")
    async with recording() as (api, recorder):
        api.fault(is_post, terminating)
        api.fault(is_post, answer(404, "NotFound"))
        verified(recorder, "first")
        verified(recorder, "second")
        await asyncio.sleep(5)
        assert recorder.dropped == 2
        assert caplog.messages == []


# announcements


def announce(recorder: EventRecorder, identity: str = "0123456789abcdef", message: str = "never came up") -> None:
    recorder.announce(SLEEP, events.WARNING, "RolledBack", message, identity=identity, at=1_799_999_000)


async def test_announcement_has_its_own_time_and_a_name_with_its_identity() -> None:
    async with recording() as (api, recorder):
        announce(recorder)
        assert not recorder.is_announced("0123456789abcdef")
        event = await only_event(api)
        assert event["metadata"]["name"] == "sleep.0123456789abcdef"
        assert event["firstTimestamp"] == event["lastTimestamp"] == "2027-01-15T07:43:20Z"
        assert event["count"] == 1
        assert recorder.is_announced("0123456789abcdef")


async def test_announcement_is_written_once_however_often_and_by_however_many_processes_it_is_made() -> None:
    async with recording() as (api, recorder):
        other = EventRecorder(recorder._client, "altershield")
        task = asyncio.create_task(other.run())
        for _ in range(3):
            announce(recorder)
            announce(recorder)
            announce(other)
            await asyncio.sleep(30)
        assert (await only_event(api))["count"] == 1
        assert len(api.requests) == 2
        assert other.is_announced("0123456789abcdef")
        assert recorder.dropped == other.dropped == 0
        task.cancel()


async def test_announcements_with_equal_texts_are_events_of_their_own() -> None:
    async with recording() as (api, recorder):
        announce(recorder, "a")
        announce(recorder, "b")
        await asyncio.sleep(1)
        assert [event["count"] for event in api.all(EVENTS)] == [1, 1]


async def test_announcement_without_a_response_is_not_repeated_if_it_succeeded() -> None:
    async with recording() as (api, recorder):
        api.fault(is_post, without_a_response(api))
        announce(recorder)
        await asyncio.sleep(5)
        announce(recorder)
        assert (await only_event(api))["count"] == 1


@pytest.mark.parametrize(("code", "reason", "requests"), [(403, "Forbidden", 1), (503, "ServiceUnavailable", 5)])
async def test_refused_announcement_is_tried_again_after_a_minute(code: int, reason: str, requests: int) -> None:
    """For example because of a quota of Events."""
    async with recording() as (api, recorder):
        api.fault(is_post, answer(code, reason), times=requests)
        announce(recorder)
        await asyncio.sleep(30)
        announce(recorder)
        await asyncio.sleep(1)
        assert len(api.requests) == requests
        assert not recorder.is_announced("0123456789abcdef")
        await asyncio.sleep(60)
        announce(recorder)
        assert (await only_event(api))["message"] == "never came up"


@pytest.mark.parametrize(("code", "reason"), [(404, "NotFound"), (422, "Invalid")])
async def test_announcement_that_can_never_be_written_is_over(code: int, reason: str) -> None:
    async with recording() as (api, recorder):
        api.fault(is_post, answer(code, reason))
        announce(recorder)
        await asyncio.sleep(1)
        assert recorder.is_announced("0123456789abcdef")


async def test_announcement_that_the_api_server_has_deleted_can_be_made_again_after_an_hour() -> None:
    async with recording() as (api, recorder):
        announce(recorder)
        event = await only_event(api)
        await api.remove(EVENTS, event["metadata"]["name"], "shop")
        announce(recorder)
        await asyncio.sleep(1)
        assert api.all(EVENTS) == []
        await asyncio.sleep(3600)
        announce(recorder)
        await only_event(api)
