"""Metrics of failed requests, of watches and of dropped Events."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from altershield.process.metrics import ProcessMetrics
from kube_base.access.client import Client
from kube_base.access.errors import CODES, KubernetesError, UnreachableError, UnreadableError, code_of, from_status
from kube_base.access.events import WARNING, EventRecorder, ObjectRef
from kube_base.access.informer import Informer
from kube_base.resources import PODS
from tests.support.polling import until
from tests.support.projections import Pod
from tests.support.stub_api import answer, is_list, is_watch, line, serving

POD = {"metadata": {"name": "a", "namespace": "shop"}}


@given(st.integers(-(2**70), 2**70) | st.integers(100, 700), st.text())
def test_code_of_returns_only_the_values_of_codes(code: int, reason: str) -> None:
    assert code_of(from_status(code, {"reason": reason})) in CODES


@pytest.mark.parametrize(
    ("code", "counted"),
    [
        (400, "400"),
        (403, "403"),
        (413, "413"),
        (418, "other"),
        (429, "429"),
        (500, "5xx"),
        (504, "5xx"),
        (302, "other"),
    ],
)
def test_code_of_an_http_status(code: int, counted: str) -> None:
    assert code_of(from_status(code, {})) == counted


@pytest.mark.parametrize("error", [UnreachableError("refused"), UnreadableError("no JSON"), KubernetesError("other")])
def test_code_of_an_error_without_a_response_is_unreachable(error: KubernetesError) -> None:
    assert code_of(error) == "unreachable"


@pytest.mark.looptime
async def test_errors_counts_only_failed_requests() -> None:
    async with serving() as (api, client):
        await api.put(PODS, POD)
        await client.get(PODS, "a", "shop")
        assert not any(client.errors.values())
        for code in (403, 503, 500):
            api.fault(lambda _: True, answer(code))
            with pytest.raises(KubernetesError):
                await client.get(PODS, "a", "shop")
        await api.stop()
        with pytest.raises(UnreachableError):
            await client.get(PODS, "a", "shop")
        assert counted(client) == {"403": 1, "5xx": 2, "unreachable": 1}


@pytest.mark.looptime
async def test_errors_counts_credentials_that_cannot_be_renewed() -> None:
    async with serving() as (_, client):

        async def fail(_identifier: str) -> str:
            raise OSError("there is no token")

        client.configuration.get_api_key_with_prefix = fail
        with pytest.raises(UnreachableError):
            await client.get(PODS, "a", "shop")
        assert counted(client) == {"unreachable": 1}


@pytest.mark.looptime
async def test_watch_metrics_show_age_skipped_objects_and_relists() -> None:
    async with serving() as (api, client):
        await api.put(PODS, POD)
        informer = Informer(client, PODS, Pod)
        registry = CollectorRegistry()
        registry.register(ProcessMetrics("reconciler", client, [informer]))

        def value(name: str, **more: str) -> float | None:
            return registry.get_sample_value(f"altershield_{name}", {"component": "reconciler", **more})

        assert value("watch_age_seconds", resource="pods") == 0
        running = asyncio.create_task(informer.run())
        await until(lambda: value("cached_objects", resource="pods") == 1)
        await api.wait_for_requests(is_watch, 1)
        await asyncio.sleep(30)
        assert value("watch_age_seconds", resource="pods") == pytest.approx(30, abs=1)

        await api.send_raw('{"type": "ADDED", "object": {"metadata": {"name": 1}}}\n')
        await until(lambda: value("watch_skipped_total", resource="pods") == 1)
        api.forget_history()
        await api.send_raw(line("ERROR", {"code": 410, "reason": "Expired"}).decode())
        await until(lambda: value("watch_relists_total", resource="pods") == 1)
        assert value("api_errors_total", code="410") == 1
        assert value("api_errors_total", code="unreachable") == 0
        running.cancel()
        await asyncio.wait((running,))


@pytest.mark.looptime
async def test_age_counts_from_the_start_if_the_api_server_never_sends_a_list() -> None:
    async with serving() as (api, client):
        api.fault(is_list, answer(403, "Forbidden"), times=1000)
        informer = Informer(client, PODS, Pod)
        running = asyncio.create_task(informer.run())
        await asyncio.sleep(300)
        assert informer.age == pytest.approx(300, abs=1)
        assert set(counted(client)) == {"403"}
        running.cancel()
        await asyncio.wait((running,))


@pytest.mark.looptime
async def test_metric_counts_dropped_events() -> None:
    async with serving() as (_, client):
        recorder = EventRecorder(client, "altershield")
        registry = CollectorRegistry()
        registry.register(ProcessMetrics("reconciler", client, [], recorder))
        for number in range(1005):
            recorder.event(ObjectRef("v1", "Pod", f"p{number}"), WARNING, "Failed", "it failed")
        assert registry.get_sample_value("altershield_events_dropped_total", {"component": "reconciler"}) == 5


def counted(client: Client) -> dict[str, int]:
    return {code: count for code, count in client.errors.items() if count}
