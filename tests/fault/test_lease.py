"""Leader election: at most one candidate leads whatever the API server does, and a successor takes over soon."""

import asyncio
import contextlib
import datetime
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from aiohttp import web

from kube_base.access import lease as lease_module
from kube_base.access.client import Client
from kube_base.access.errors import NotFoundError
from kube_base.access.lease import lead
from kube_base.errors import UsageError
from kube_base.resources import LEASES, PODS
from tests.support.polling import until
from tests.support.stub_api import StubApi, answer, serving

pytestmark = pytest.mark.looptime

DURATION = 15.0
NOBODY = "http://127.0.0.1:1"


class Candidate:
    """A candidate for the Lease. `leading` is true while its work runs; `terms` counts how often it has led."""

    def __init__(self, client: Client, identity: str, duration: float = DURATION) -> None:
        self.client = client
        self.leading = False
        self.terms = 0
        self.began_at = 0.0
        self.ended_at = 0.0
        self.end = asyncio.Event()
        self.error: Exception | None = None
        self.cleaning = 0.0
        self.task = asyncio.create_task(
            lead(
                client,
                name="altershield",
                namespace="system",
                identity=identity,
                lease_duration=duration,
                on_started=self.work,
            )
        )

    async def work(self) -> None:
        self.leading = True
        self.terms += 1
        self.began_at = now()
        try:
            await self.end.wait()
            if self.error is not None:
                raise self.error
        finally:
            if self.cleaning:
                await asyncio.sleep(self.cleaning)
            self.leading = False
            self.ended_at = now()

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.wait((self.task,))


def now() -> float:
    return asyncio.get_running_loop().time()


@contextlib.asynccontextmanager
async def cluster() -> AsyncIterator[tuple[StubApi, Callable[..., Candidate]]]:
    """A stub API, and a function that starts candidates, each with its own client."""
    async with serving() as (api, _), contextlib.AsyncExitStack() as stack:

        def start(identity: str, duration: float = DURATION) -> Candidate:
            client = Client(api.configuration)
            stack.push_async_callback(client.close)
            candidate = Candidate(client, identity, duration)
            stack.push_async_callback(candidate.stop)
            return candidate

        yield api, start


async def leader(candidate: Candidate) -> Candidate:
    """The candidate, once it leads."""
    await until(lambda: candidate.leading)
    return candidate


def spec(api: StubApi) -> dict[str, Any]:
    lease = api.get(LEASES, "altershield", "system")
    assert lease is not None
    return dict(lease["spec"])


def put_lease(api: StubApi, **spec: Any) -> Any:
    return api.put(LEASES, {"metadata": {"name": "altershield", "namespace": "system"}, "spec": spec})


def is_get(request: web.Request) -> bool:
    return request.method == "GET"


def is_put(request: web.Request) -> bool:
    return request.method == "PUT"


async def test_one_of_two_candidates_leads_and_the_lease_names_it() -> None:
    async with cluster() as (api, start):
        first = start("a")
        await until(lambda: first.leading, seconds=1)
        second = start("b")
        await asyncio.sleep(120)
        assert (first.leading, first.terms, second.terms) == (True, 1, 0)
        assert spec(api)["holderIdentity"] == "a"
        assert spec(api)["leaseDurationSeconds"] == 15
        assert spec(api)["leaseTransitions"] == 0
        assert spec(api)["acquireTime"] < spec(api)["renewTime"]
        renewed = datetime.datetime.fromisoformat(spec(api)["renewTime"])
        assert abs(renewed - datetime.datetime.now(datetime.UTC)) < datetime.timedelta(minutes=1)


async def test_a_leader_that_stops_hands_over_at_once() -> None:
    async with cluster() as (api, start):
        first = await leader(start("a"))
        second = start("b")
        await asyncio.sleep(30)
        await first.stop()
        assert not first.leading
        assert spec(api)["holderIdentity"] == ""
        await until(lambda: second.leading, seconds=2.5)
        assert spec(api)["holderIdentity"] == "b"
        assert spec(api)["leaseTransitions"] == 1


async def test_a_dead_leader_is_replaced_within_the_lease_duration_and_one_retry() -> None:
    async with cluster() as (api, start):
        await api.put(
            LEASES,
            {
                "metadata": {"name": "altershield", "namespace": "system", "labels": {"kept": "yes"}},
                "spec": {"holderIdentity": "dead", "leaseDurationSeconds": 15, "leaseTransitions": 4},
            },
        )
        began = now()
        second = start("b")
        await until(lambda: second.leading)
        assert 15 <= now() - began <= 18
        assert spec(api)["leaseTransitions"] == 5
        lease = api.get(LEASES, "altershield", "system")
        assert lease is not None
        assert lease["metadata"]["labels"] == {"kept": "yes"}


async def test_a_lease_that_is_deleted_while_another_candidate_holds_it_is_not_taken_before_its_end() -> None:
    async with cluster() as (api, start):
        await put_lease(api, holderIdentity="other", leaseDurationSeconds=60)
        candidate = start("a")
        await asyncio.sleep(10)
        await api.remove(LEASES, "altershield", "system")
        await asyncio.sleep(48)
        assert not candidate.leading
        await until(lambda: candidate.leading, seconds=5)
        assert spec(api)["holderIdentity"] == "a"


async def test_the_longer_lease_of_another_is_respected() -> None:
    async with cluster() as (api, start):
        await put_lease(api, holderIdentity="other", leaseDurationSeconds=60)
        candidate = start("a")
        await asyncio.sleep(58)
        assert not candidate.leading
        await until(lambda: candidate.leading, seconds=5)


class WallClock:
    """A wall clock that follows the simulated time. A test can change its offset."""

    offset = 0.0

    def time(self) -> float:
        return 1_800_000_000 + now() + self.offset

    def timestamp(self) -> str:
        return datetime.datetime.fromtimestamp(self.time(), datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@pytest.fixture
def wall_clock(monkeypatch: pytest.MonkeyPatch) -> WallClock:
    clock = WallClock()
    monkeypatch.setattr(time, "time", clock.time)
    monkeypatch.setattr(lease_module, "_timestamp", clock.timestamp)
    return clock


@pytest.mark.parametrize("step", [86_400, -86_400])
async def test_a_wall_clock_change_does_not_affect_leader_or_successor(step: float, wall_clock: WallClock) -> None:
    async with cluster() as (_, start):
        first = await leader(start("a"))
        second = start("b")
        await asyncio.sleep(10)
        wall_clock.offset = step
        await asyncio.sleep(60)
        assert first.leading
        assert second.terms == 0
        await first.stop()
        await until(lambda: second.leading, seconds=2.5)


@pytest.mark.parametrize("step", [86_400, -86_400])
async def test_a_wall_clock_change_does_not_change_the_lease_duration(step: float, wall_clock: WallClock) -> None:
    async with cluster() as (api, start):
        await put_lease(api, holderIdentity="silent", leaseDurationSeconds=15)
        candidate = start("a")
        await asyncio.sleep(5)
        wall_clock.offset = step
        await asyncio.sleep(9.5)
        assert not candidate.leading
        await until(lambda: candidate.leading, seconds=3)


async def test_an_outage_ends_the_term_within_the_renew_deadline() -> None:
    async with cluster() as (api, start):
        first = await leader(start("a"))
        await asyncio.sleep(9)
        await api.stop()
        began = now()
        await until(lambda: not first.leading)
        assert now() - began <= 10
        await asyncio.sleep(120)
        assert not first.task.done()
        await api.start()
        await until(lambda: first.leading, seconds=5)
        assert first.terms == 2


async def test_a_disconnected_leader_has_stopped_when_the_other_starts() -> None:
    async with cluster() as (api, start):
        first = start("a")
        first.cleaning = 3
        await until(lambda: first.leading)
        second = start("b")
        await asyncio.sleep(20)
        first.client.configuration.host = NOBODY
        await until(lambda: second.leading)
        assert 0 < first.ended_at < second.began_at
        first.client.configuration.host = api.configuration.host
        await asyncio.sleep(120)
        assert second.leading
        assert first.terms == 1


async def test_renew_deadline_counts_from_the_sending_of_the_last_renewal() -> None:
    async with cluster() as (api, start):
        first = await leader(start("a"))
        sent = 0.0

        async def late(request: web.Request) -> web.StreamResponse:
            nonlocal sent
            sent = now()
            response = await api.answer(request)
            await asyncio.sleep(4)
            first.client.configuration.host = NOBODY
            return response

        api.fault(is_put, late)
        await until(lambda: not first.leading)
        assert first.ended_at - sent <= 10.1


async def test_slow_responses_do_not_end_the_term() -> None:
    async def slowly(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(1.5)
        return await api.answer(request)

    async with cluster() as (api, start):
        first = await leader(start("a"))
        api.fault(lambda _: True, slowly, times=1000)
        await asyncio.sleep(300)
        assert first.terms == 1
        assert first.leading


async def test_hanging_requests_in_every_slot_do_not_end_the_term() -> None:
    async def hang(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(20)
        return await api.answer(request)

    async with cluster() as (api, start):
        first = await leader(start("a"))
        api.fault(lambda request: "/pods/" in request.path, hang, times=10_000)

        async def ask_again() -> None:
            while True:
                with contextlib.suppress(NotFoundError):
                    await first.client.get(PODS, "a", "shop")

        asking = [asyncio.create_task(ask_again()) for _ in range(200)]
        await asyncio.sleep(300)
        assert first.leading
        assert first.terms == 1
        renewed = datetime.datetime.fromisoformat(spec(api)["renewTime"])
        assert renewed > datetime.datetime.fromisoformat(spec(api)["acquireTime"])
        for task in asking:
            task.cancel()
        await asyncio.wait(asking)


@pytest.mark.parametrize("code", [409, 429, 500, 503])
async def test_single_failures_do_not_end_the_term(code: int) -> None:
    async with cluster() as (api, start):
        first = await leader(start("a"))
        for _ in range(10):
            api.fault(is_put, answer(code), times=2)
            await asyncio.sleep(30)
        assert first.terms == 1
        assert first.leading


async def test_a_lease_taken_by_another_holder_ends_the_term() -> None:
    async with cluster() as (api, start):
        first = await leader(start("a"))
        lease = api.get(LEASES, "altershield", "system")
        assert lease is not None
        await api.put(LEASES, {**lease, "spec": {**lease["spec"], "holderIdentity": "thief"}})
        await until(lambda: not first.leading, seconds=10.5)
        assert spec(api)["holderIdentity"] == "thief"


async def test_a_deleted_lease_is_created_again() -> None:
    async with cluster() as (api, start):
        first = await leader(start("a"))
        await api.remove(LEASES, "altershield", "system")
        await asyncio.sleep(60)
        assert first.terms == 1
        assert first.leading
        assert spec(api)["holderIdentity"] == "a"


async def test_an_error_of_the_work_is_raised_and_releases_the_lease() -> None:
    async with cluster() as (api, start):
        first = start("a")
        first.error = ValueError("broken")
        await until(lambda: first.leading)
        first.end.set()
        with pytest.raises(ValueError, match="broken"):
            await first.task
        assert spec(api)["holderIdentity"] == ""


async def test_lead_returns_and_releases_the_lease_when_the_work_ends() -> None:
    async with cluster() as (api, start):
        first = await leader(start("a"))
        first.end.set()
        await first.task
        assert spec(api)["holderIdentity"] == ""


async def test_stopping_without_an_api_server_does_not_hang() -> None:
    async with cluster() as (api, start):
        first = await leader(start("a"))
        await api.stop()
        began = now()
        await first.stop()
        assert now() - began < 12


async def test_lease_is_renewed_until_the_cleanup_has_ended() -> None:
    async with cluster() as (_, start):
        first = start("a")
        first.cleaning = 40
        await until(lambda: first.leading)
        second = start("b")
        await asyncio.sleep(5)
        stopping = asyncio.create_task(first.stop())
        await asyncio.sleep(35)
        assert first.leading
        assert not second.leading
        await stopping
        await until(lambda: second.leading, seconds=2.5)


async def test_a_follower_that_stops_does_not_change_the_lease() -> None:
    async with cluster() as (api, start):
        first = await leader(start("a"))
        second = start("b")
        await asyncio.sleep(5)
        await second.stop()
        assert spec(api)["holderIdentity"] == "a"
        assert first.leading


async def test_a_missing_permission_is_logged_once_and_retried(caplog: pytest.LogCaptureFixture) -> None:
    async with cluster() as (api, start):
        api.fault(lambda _: True, answer(403, "Forbidden"), times=20)
        await leader(start("a"))
        assert caplog.messages.count("cannot read the lease") == 1


@pytest.mark.parametrize("duration", [2.0, 2.5, 60.0])
async def test_leadership_and_handover_work_with_other_lease_durations(duration: float) -> None:
    async with cluster() as (api, start):
        first = await leader(start("a", duration))
        second = start("b", duration)
        await asyncio.sleep(duration * 5)
        assert first.terms == 1
        await first.stop()
        await until(lambda: second.leading, seconds=max(1.0, duration * 0.14) + 0.5)
        assert spec(api)["leaseDurationSeconds"] >= duration


async def test_a_lease_duration_that_is_too_short_is_rejected() -> None:
    async with cluster() as (_, start):
        with pytest.raises(UsageError, match="too short"):
            await start("a", 1.0).task


# content of the Lease


async def test_an_undecodable_lease_is_logged_once_and_taken_once_it_can_be_decoded(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with cluster() as (api, start):
        await put_lease(api, holderIdentity=5)
        candidate = start("a")
        await asyncio.sleep(60)
        assert not candidate.leading
        assert not candidate.task.done()
        assert caplog.messages.count("cannot read the lease") == 1
        await put_lease(api, holderIdentity="")
        await until(lambda: candidate.leading, seconds=5)


async def test_a_lease_that_becomes_undecodable_ends_the_term() -> None:
    async with cluster() as (api, start):
        first = await leader(start("a"))
        await put_lease(api, holderIdentity=5)
        await until(lambda: not first.leading, seconds=10.5)
        assert not first.task.done()


async def test_a_lease_without_a_holder_is_taken_at_once() -> None:
    async with cluster() as (api, start):
        await put_lease(api, holderIdentity="", leaseDurationSeconds=60)
        candidate = start("a")
        await until(lambda: candidate.leading, seconds=1)


async def test_a_lease_without_a_duration_counts_with_our_own_duration() -> None:
    async with cluster() as (api, start):
        await put_lease(api, holderIdentity="other")
        candidate = start("a")
        await asyncio.sleep(14.5)
        assert not candidate.leading
        await until(lambda: candidate.leading, seconds=4)


async def test_taking_over_a_lease_keeps_unknown_fields_and_sets_acquire_time() -> None:
    async with cluster() as (api, start):
        before = "2020-01-01T00:00:00.000000Z"
        await put_lease(
            api, holderIdentity="dead", leaseDurationSeconds=15, acquireTime=before, renewTime=before, strategy="Oldest"
        )
        candidate = start("a")
        await until(lambda: candidate.leading)
        acquired = spec(api)["acquireTime"]
        assert acquired > before
        assert spec(api)["strategy"] == "Oldest"
        await asyncio.sleep(60)
        assert spec(api)["acquireTime"] == acquired


# number of requests, and logs


async def test_renew_interval_grows_with_the_lease_duration() -> None:
    async with cluster() as (api, start):
        await leader(start("a", 60.0))
        before = len(api.requests)
        await asyncio.sleep(80)
        assert 0 < sum(map(is_put, api.requests[before:])) <= 11


async def test_a_leader_logs_each_failure_to_renew_once(caplog: pytest.LogCaptureFixture) -> None:
    async with cluster() as (api, start):
        await leader(start("a"))
        for count in (1, 2):
            api.fault(is_put, answer(500), times=2)
            await asyncio.sleep(30)
            assert caplog.messages.count("cannot renew the lease") == count


async def test_a_follower_logs_each_failure_to_read_the_lease_once(caplog: pytest.LogCaptureFixture) -> None:
    async with cluster() as (api, start):
        await put_lease(api, holderIdentity="other", leaseDurationSeconds=600)
        start("b")
        for count in (1, 2):
            await asyncio.sleep(10)
            api.fault(is_get, answer(500), times=2)
            await asyncio.sleep(20)
            assert caplog.messages.count("cannot read the lease") == count


async def test_a_failure_to_create_the_lease_is_logged_and_a_missing_lease_is_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with cluster() as (api, start):
        api.fault(lambda request: request.method == "POST", answer(403, "Forbidden"), times=2)
        await leader(start("a"))
        assert caplog.messages.count("cannot take the lease") == 1
        assert "cannot read the lease" not in caplog.messages


async def test_a_lease_that_cannot_be_read_is_not_created() -> None:
    async with cluster() as (api, start):
        api.fault(is_get, answer(403, "Forbidden"), times=5)
        first = start("a")
        await asyncio.sleep(3)
        assert not first.leading
        assert all(map(is_get, api.requests))


# release of the Lease


async def test_a_released_lease_has_a_duration_of_one_second() -> None:
    async with cluster() as (api, start):
        first = await leader(start("a"))
        await first.stop()
        assert spec(api)["leaseDurationSeconds"] == 1


async def test_a_lease_is_released_even_during_a_renewal() -> None:
    async with cluster() as (api, start):
        first = await leader(start("a"))

        async def answer_late(request: web.Request) -> web.StreamResponse:
            response = await api.answer(request)
            await asyncio.sleep(3)
            return response

        before = sum(map(is_put, api.requests))
        api.fault(is_put, answer_late)
        await api.wait_for_requests(is_put, before + 1)
        await asyncio.sleep(1)
        await first.stop()
        assert spec(api)["holderIdentity"] == ""


async def test_a_follower_that_stops_sends_no_requests() -> None:
    async with cluster() as (api, start):
        await put_lease(api, holderIdentity="other", leaseDurationSeconds=60)
        follower = start("b")
        await asyncio.sleep(5)
        before = len(api.requests)
        await follower.stop()
        assert len(api.requests) == before


# troubles that the election itself does not survive


async def test_a_renewal_that_hangs_is_tried_again_and_does_not_cost_the_lease(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def hang(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(20)
        return await api.answer(request)

    async with cluster() as (api, start):
        first = await leader(start("a"))
        await asyncio.sleep(10)
        api.fault(is_put, hang)
        await asyncio.sleep(30)
        assert (first.leading, first.terms) == (True, 1)
        assert caplog.messages.count("cannot renew the lease") == 1


async def test_an_error_of_the_election_ends_the_work_and_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    elect = lease_module._elect

    async def failing(lock: lease_module._Lock) -> None:
        running = asyncio.create_task(elect(lock))
        await asyncio.sleep(21)
        running.cancel()
        raise RuntimeError("broken")

    monkeypatch.setattr(lease_module, "_elect", failing)
    async with cluster() as (_, start):
        first = await leader(start("a"))
        with pytest.raises(RuntimeError, match="broken"):
            await first.task
        assert not first.leading
        assert first.ended_at - first.began_at < 22
