"""Releases that a receiver of the check `http` judges later, by a callback."""

import asyncio
import base64
import contextlib
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from altershield.api import names
from altershield.api.check_specs import CheckSpec, HttpCheck, OnUnknown, Phase, SecretRef
from altershield.api.labels import CREDENTIALS
from altershield.api.resources import CHANGE_PODS
from command.install import rbac
from kube_base.processes import free_ports
from kube_base.resources import LEASES, SECRETS
from reconciler.checks.identity import CALLBACK_PATH
from reconciler.checks.signing import SIGNATURE_HEADER, TIMESTAMP_HEADER, signature
from tests.fault.reconciler_cluster import Cluster, GoOn, Object, is_write, running_cluster, version
from tests.fault.releases import apply_check, batches, condition, until_state

V1 = version("v1")
KEY = b"hook-key"
LATER = {"verdict": "callback"}


class Receiver:
    """A receiver that answers by a callback. `before_answer` runs before each answer."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self.answer: tuple[int, Any] = (200, LATER)
        self.before_answer: Callable[[str], Awaitable[None]] | None = None
        self.requests: list[Object] = []
        self.url = ""
        self.port = free_ports(1)[0]
        """The callback port to which it sends."""
        self._session = session

    async def handle(self, request: web.Request) -> web.Response:
        self.requests.append(await request.json())
        if self.before_answer is not None:
            await self.before_answer(self.runs[-1])
        status, body = self.answer
        return web.json_response(body, status=status)

    @property
    def runs(self) -> list[str]:
        """The runs of all requests."""
        return [each["altershield"]["callback"]["run"] for each in self.requests]

    async def send(
        self, run: str, verdict: str = "pass", message: str = "", *, key: bytes = KEY, port: int = 0, at: float = 0
    ) -> int:
        """Send a callback. Returns the status of the answer; 0 if nobody listens."""
        body = json.dumps({"run": run, "verdict": verdict, "message": message}).encode()
        timestamp = int(at or time.time())
        headers = {TIMESTAMP_HEADER: str(timestamp), SIGNATURE_HEADER: signature(key, timestamp, body)}
        url = f"http://127.0.0.1:{port or self.port}{CALLBACK_PATH}"
        try:
            async with self._session.post(url, data=body, headers=headers) as answer:
                await answer.read()
                return answer.status
        except aiohttp.ClientConnectionError:
            return 0


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with aiohttp.ClientSession() as session:
        found = Receiver(session)
        app = web.Application()
        app.router.add_post("/check", found.handle)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        found.url = f"http://127.0.0.1:{runner.addresses[0][1]}/check"
        yield found
        await runner.cleanup()


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with running_cluster(tmp_path) as cluster:
        await cluster.go_to("shop")
        await allow_secret(cluster, KEY)
        yield cluster


async def allow_secret(cluster: Cluster, key: bytes) -> None:
    """Create the Secret `hook`, and let AlterShield read it."""
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "hook", "labels": {CREDENTIALS: "true"}},
        "data": {"hmac": base64.b64encode(key).decode()},
    }
    await cluster.admin.create(SECRETS, secret, cluster.namespace)
    for obj in rbac.secret_reader(cluster.namespace, "hook", system_namespace=names.SYSTEM_NAMESPACE):
        await cluster.admin.create(rbac.RESOURCES[obj["kind"]], obj, cluster.namespace)


@contextlib.asynccontextmanager
async def checked(
    cluster: Cluster,
    receiver: Receiver,
    *phases: Phase,
    on_unknown: OnUnknown = OnUnknown.FAIL,
    seconds: int = 60,
    secret: bool = True,
) -> AsyncIterator[None]:
    """A reconciler, and a policy with the check."""
    http = HttpCheck(receiver.url, SecretRef("hook") if secret else None)
    check = CheckSpec("smoke", phases or (Phase.POST,), timeout_seconds=seconds, on_unknown=on_unknown, http=http)
    async with cluster.reconciler(callback_port=receiver.port):
        await apply_check(cluster, check)
        yield


async def released(cluster: Cluster, receiver: Receiver) -> str:
    """Release V1 with one pod. The run of the request, once the receiver has it."""

    async def asked() -> bool:
        return bool(receiver.requests)

    await cluster.release(V1, replicas=1)
    await cluster.until(asked, "a request")
    return receiver.runs[-1]


async def handles(cluster: Cluster) -> list[str]:
    """The handles of all checks."""
    found = [batch.get("status", {}).get("checks", []) for batch in await batches(cluster)]
    return [each.get("handle", "") for checks in found for each in checks]


async def until_waiting(cluster: Cluster, count: int = 1) -> None:
    """Wait until so many checks wait for their callback."""

    async def met() -> bool:
        return len([each for each in await handles(cluster) if each.startswith("callback:")]) >= count

    await cluster.until(met, "the handle to be stored")


@pytest.mark.parametrize("answer", [(202, {}), (200, LATER)], ids=["202", "callback"])
@pytest.mark.parametrize(("verdict", "state"), [("pass", "Success"), ("fail", "Suspend"), ("unknown", "Suspend")])
async def test_callback_decides_the_release(
    cluster: Cluster, receiver: Receiver, answer: tuple[int, Any], verdict: str, state: str
) -> None:
    receiver.answer = answer
    async with checked(cluster, receiver):
        run = await released(cluster, receiver)
        assert await receiver.send(run, verdict, "3 of 9 orders") == 200
        await until_state(cluster, V1, state)
        (batch,) = await batches(cluster)
        (check,) = batch["status"]["checks"]
        assert (check["state"], check["reason"]) == (
            {"pass": "Passed", "fail": "Failed", "unknown": "Unknown"}[verdict],
            "3 of 9 orders",
        )


@pytest.mark.parametrize("answer", [(202, {}), (200, LATER), (500, {})], ids=["202", "callback", "500"])
@pytest.mark.parametrize(("verdict", "state"), [("pass", "Success"), ("fail", "Suspend")])
async def test_callback_that_arrives_before_the_answer_to_the_request_counts(
    cluster: Cluster, receiver: Receiver, answer: tuple[int, Any], verdict: str, state: str
) -> None:
    """The reconciler waits for the answer meanwhile. The verdict came first, so an answer after it changes nothing."""
    codes: list[int] = []

    async def send(run: str) -> None:
        codes.append(await receiver.send(run, verdict))

    receiver.answer, receiver.before_answer = answer, send
    async with checked(cluster, receiver, *Phase):
        await cluster.release(V1)
        await until_state(cluster, V1, state)
        assert set(codes) == {200}


async def test_callback_that_is_not_stored_is_sent_again_and_counts(cluster: Cluster, receiver: Receiver) -> None:
    async with checked(cluster, receiver):
        run = await released(cluster, receiver)
        await until_waiting(cluster)

        async def refuse(request: web.Request, go_on: GoOn) -> web.StreamResponse:
            if is_write(request) and "changepods" in request.path:
                return web.json_response({}, status=500)
            return await go_on()

        cluster.set_fault(refuse)
        assert await receiver.send(run, "fail") == 503
        assert (await batches(cluster))[0]["status"]["checks"][0]["state"] == "Running"

        async def pass_on(request: web.Request, go_on: GoOn) -> web.StreamResponse:
            return await go_on()

        cluster.set_fault(pass_on)
        assert await receiver.send(run, "fail") in (200, 409)
        await until_state(cluster, V1, "Suspend")


@pytest.mark.parametrize(("verdict", "state"), [("pass", "Success"), ("fail", "Suspend")])
async def test_check_that_waits_for_a_callback_outlives_the_leader_and_is_not_asked_again(
    cluster: Cluster, receiver: Receiver, verdict: str, state: str
) -> None:
    async with checked(cluster, receiver):
        run = await released(cluster, receiver)
        await until_waiting(cluster)
    assert await receiver.send(run, verdict) == 0, "no reconciler runs"
    async with cluster.reconciler(identity="two", callback_port=receiver.port):

        async def accepted() -> bool:
            return await receiver.send(run, verdict) == 200

        await cluster.until(accepted, "the callback to be accepted")
        await until_state(cluster, V1, state)
    assert len(receiver.requests) == 1


async def test_leader_that_dies_after_a_callback_is_stored_loses_nothing(cluster: Cluster, receiver: Receiver) -> None:
    async with checked(cluster, receiver):
        run = await released(cluster, receiver)
        await until_waiting(cluster)
        assert await receiver.send(run, "fail", "3 orders lost") == 200
    async with cluster.reconciler(identity="two", callback_port=receiver.port):
        found = await until_state(cluster, V1, "Suspend")
        assert {pod["message"] for pod in found["status"]["defenseCheckFailPods"]} == {"smoke: 3 orders lost"}


async def test_replica_that_does_not_lead_takes_callbacks_too(cluster: Cluster, receiver: Receiver) -> None:
    port = free_ports(1)[0]
    async with checked(cluster, receiver):

        async def leads() -> bool:
            lease = await cluster.get(LEASES, names.LEASE, names.SYSTEM_NAMESPACE)
            return lease is not None and lease["spec"].get("holderIdentity") == "one"

        await cluster.until(leads, "the first reconciler leads")
        async with cluster.reconciler(identity="two", callback_port=port):
            run = await released(cluster, receiver)

            async def accepted() -> bool:
                return await receiver.send(run, "fail", port=port) == 200

            await cluster.until(accepted, "the callback to be accepted")
            assert await leads()
            await until_state(cluster, V1, "Suspend")


async def test_failure_after_the_deadline_suspends_a_release_that_had_passed(
    cluster: Cluster, receiver: Receiver
) -> None:
    async with checked(cluster, receiver, on_unknown=OnUnknown.PASS, seconds=2):
        await cluster.release(V1, replicas=1)
        found = await until_state(cluster, V1, "Success")
        assert condition(found, "Checked") == ("False", "NotChecked")
        (batch,) = await batches(cluster)
        assert "has not done so in time" in batch["status"]["checks"][0]["reason"]
        assert len(receiver.requests) == 1
        assert await receiver.send(receiver.runs[0], "fail", "3 orders lost") == 200
        found = await until_state(cluster, V1, "Suspend")
        assert {pod["message"] for pod in found["status"]["defenseCheckFailPods"]} == {"smoke: 3 orders lost"}


async def test_late_pass_ends_a_batch_that_waits_for_a_person(cluster: Cluster, receiver: Receiver) -> None:
    async with checked(cluster, receiver, on_unknown=OnUnknown.HOLD, seconds=2):
        await cluster.release(V1, replicas=1)

        async def held() -> bool:
            return [condition(each, "Verified")[1] for each in await batches(cluster)] == ["Held"]

        await cluster.until(held, "a held batch")
        assert await receiver.send(receiver.runs[0], "pass") == 200
        await until_state(cluster, V1, "Success")


async def test_first_verdict_counts_and_later_ones_change_nothing(cluster: Cluster, receiver: Receiver) -> None:
    async with checked(cluster, receiver):
        run = await released(cluster, receiver)
        at = time.time()
        assert await receiver.send(run, "pass", at=at) == 200
        assert await receiver.send(run, "pass", at=at) == 409
        assert await receiver.send(run, "fail") == 200
        await until_state(cluster, V1, "Success")
        assert await receiver.send(run, "fail") == 200
        await asyncio.sleep(1)
        await until_state(cluster, V1, "Success")


async def test_forged_stale_and_foreign_callbacks_change_nothing(cluster: Cluster, receiver: Receiver) -> None:
    """The holder of the Secret of the namespace `pay` must not decide releases of `shop`."""
    async with checked(cluster, receiver):
        run = await released(cluster, receiver)
        await until_waiting(cluster)
        await cluster.go_to("pay")
        await allow_secret(cluster, b"pay-key")
        cluster.namespace = "shop"
        before = await cluster.all(CHANGE_PODS)
        assert await receiver.send(run, "pass", key=b"pay-key") == 401
        assert await receiver.send(run.replace("shop/", "pay/"), "pass", key=b"pay-key") == 401
        assert await receiver.send(run, "pass", key=b"") == 401
        assert await receiver.send(run, "pass", at=time.time() - 400) == 401
        assert await receiver.send(run.replace("smoke", "other"), "pass") == 401
        assert await cluster.all(CHANGE_PODS) == before


async def test_check_without_a_secret_takes_no_callback_and_says_so(cluster: Cluster, receiver: Receiver) -> None:
    async with checked(cluster, receiver, secret=False):
        await cluster.release(V1, replicas=1)
        await until_state(cluster, V1, "Suspend")
        (batch,) = await batches(cluster)
        (check,) = batch["status"]["checks"]
        assert "none is accepted: the check has no secretRef" in check["reason"]
        assert "callback" not in receiver.requests[0]["altershield"]
        own = batch["metadata"]
        run = f"shop/{own['name']}/{own['uid']}/smoke/post/{check['startTimeUnix']}"
        for key in (KEY, b""):
            assert await receiver.send(run, "pass", key=key) == 401
