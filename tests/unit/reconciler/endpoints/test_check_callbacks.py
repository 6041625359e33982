"""Callbacks about checks over HTTP: those that are signed with the key of their check are passed on, and no others."""

import asyncio
import base64
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
from aiohttp import web

from altershield.api import names
from altershield.api.check_specs import CheckSpec, HttpCheck, Phase, SecretRef
from altershield.api.labels import CREDENTIALS
from altershield.api.policy import AppliedPolicy
from kube_base.access.client import Client
from kube_base.meta import OwnerReference
from kube_base.resources import SECRETS
from reconciler.checks.check import Fail, Pass, Unknown
from reconciler.checks.http_check import content
from reconciler.checks.identity import CALLBACK_PATH, CheckRun
from reconciler.checks.signing import SIGNATURE_HEADER, TIMESTAMP_HEADER, signature
from reconciler.cluster import batch
from reconciler.cluster import release as projection
from reconciler.cluster.caches import Caches
from reconciler.endpoints import check_callback_endpoint, check_keys
from reconciler.endpoints.check_callback import CheckCallback
from reconciler.endpoints.endpoint_errors import EndpointError
from reconciler.endpoints.outcome import CallbackOutcome
from reconciler.endpoints.places import Places
from reconciler.endpoints.replays import Replays
from tests.support.polling import until
from tests.support.stub_api import StubApi
from tests.support.stub_api import answer as stub_answer
from tests.support.stub_api import serving as serving_api
from tests.unit.altershield.releases import builders
from tests.unit.reconciler import filled
from tests.unit.reconciler.checks.policy_subjects import subject

from .serving import ACCEPTED, Object, Served, serving
from .serving import signed as signed_by_server

KEY, OTHER = b"shop-key", b"pay-key"
REFUSED = {
    "success": False,
    "retry": False,
    "msg": "the callback is not signed with the key of its check, or there is no such check",
}


@dataclass
class World:
    """A port, and batches in the namespaces `shop` and `pay`, each with a check whose Secret is `hook`."""

    served: Served
    api: StubApi
    caches: Caches

    async def post(self, data: bytes, headers: Any) -> tuple[int, Object]:
        return await self.served.post(data, headers, CALLBACK_PATH)

    def signed(self, data: bytes, key: bytes = KEY, away: float = 0) -> dict[str, str]:
        timestamp = int(self.served.now + away)
        return {TIMESTAMP_HEADER: str(timestamp), SIGNATURE_HEADER: signature(key, timestamp, data)}

    def reads(self) -> int:
        """How many Secrets were read."""
        return len([each for each in self.api.requests if "/secrets/" in each.path])


def checks() -> tuple[CheckSpec, ...]:
    def spec(name: str, secret: str | None, *phases: Phase) -> CheckSpec:
        ref = SecretRef(secret) if secret else None
        return CheckSpec(name, phases or (Phase.POST,), http=HttpCheck("http://a.b.svc", ref))

    return (
        spec("smoke", "hook"),
        spec("open", None),
        spec("both", "hook", *Phase),
        spec("token", "token-only"),
        spec("bare", "unlabelled"),
        spec("gone", "missing"),
        CheckSpec("health"),
    )


def run(namespace: str = "shop", check: str = "smoke", phase: Phase = Phase.POST, **changes: str) -> CheckRun:
    own = builders.change_pod(1).metadata
    made = CheckRun(namespace, own.name, f"{namespace}-uid", check, phase, builders.NOW)
    return made._replace(**changes)


def body(about: CheckRun | str | None = None, verdict: Any = "pass", **more: Any) -> bytes:
    return json.dumps({"run": str(about or run()), "verdict": verdict, **more}).encode()


def secret(namespace: str, name: str, labels: dict[str, str], **data: bytes) -> Object:
    encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
    metadata = {"name": name, "namespace": namespace, "uid": name, "labels": labels}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": encoded}


def fill(caches: Caches, namespace: str) -> None:
    """Put a release with its policy, and one batch, into the caches."""
    release = builders.release(uid=f"{namespace}-release")
    policy = AppliedPolicy(namespace=namespace, name="rules", generation=1, checks=checks())
    spec = msgspec.structs.replace(release.spec, policy=policy)
    metadata = msgspec.structs.replace(release.metadata, namespace=namespace)
    release = msgspec.structs.replace(release, metadata=metadata, spec=spec)
    caches.releases.observe(projection.read(msgspec.json.encode(release)))
    made = builders.change_pod(1, "sleep-a")
    owner = OwnerReference("ChangeWorkload", metadata.name, metadata.uid, "v1", controller=True)
    own = msgspec.structs.replace(
        made.metadata,
        namespace=namespace,
        uid=f"{namespace}-uid",
        resource_version="1",
        owner_references=(owner,),
    )
    caches.batches.observe(batch.read(msgspec.json.encode(msgspec.structs.replace(made, metadata=own))))


@contextlib.asynccontextmanager
async def opened(*, synced: bool = True) -> AsyncIterator[World]:
    async with serving_api() as (api, client), _world(api, client, synced=synced) as world:
        yield world


@contextlib.asynccontextmanager
async def _world(api: StubApi, client: Client, *, synced: bool) -> AsyncIterator[World]:
    caches = Caches(client, names.SYSTEM_NAMESPACE)
    filled.put(caches, filled.namespace("shop"), filled.namespace("pay"))
    for namespace, key in (("shop", KEY), ("pay", OTHER)):
        fill(caches, namespace)
        labelled = {CREDENTIALS: "true"}
        await api.put(SECRETS, secret(namespace, "hook", labelled, hmac=key))
        await api.put(SECRETS, secret(namespace, "token-only", labelled, token=b"t"))
        await api.put(SECRETS, secret(namespace, "unlabelled", {}, hmac=key))
    if synced:
        for informer in caches.required:
            informer._reflector.synced.set()
    async with serving(caches, client) as served:
        yield World(served, api, caches)


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Callbacks about unknown runs do not wait."""
    monkeypatch.setattr(check_keys, "_PAUSES", ())


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with opened() as world:
        yield world


@pytest.mark.parametrize(
    ("verdict", "message", "result"),
    [
        ("pass", "all good", Pass("all good")),
        ("pass", None, Pass()),
        ("fail", "12 %\nof requests", Fail("12 % of requests")),
        ("fail", "", Fail("the callback says fail")),
        ("unknown", "no data", Unknown("no data")),
        ("unknown", None, Unknown("the callback says unknown")),
    ],
)
async def test_signed_callback_is_passed_on(world: World, verdict: str, message: str | None, result: object) -> None:
    data = body(verdict=verdict, message=message, more={"of": "theirs"})
    assert await world.post(data, world.signed(data)) == (200, ACCEPTED)
    assert world.served.results == [CheckCallback(run=run(), result=result)]  # type: ignore[arg-type]
    assert world.served.check_outcomes() == {"accepted": 1}
    assert world.served.outcomes() == {}, "callbacks of an AlterShield server are counted on their own"


async def test_key_is_the_one_of_the_namespace_of_the_batch(world: World) -> None:
    data = body(run("pay"))
    assert await world.post(data, world.signed(data, KEY)) == (401, REFUSED)
    assert world.served.results == []
    assert (await world.post(data, world.signed(data, OTHER)))[0] == 200
    assert [each.run.namespace for each in world.served.results] == ["pay"]


@pytest.mark.parametrize(
    "about",
    [
        run(check="other"),
        run(check="open"),
        run(check="token"),
        run(check="bare"),
        run(check="gone"),
        run(check="health"),
        run(phase=Phase.PRE),
        run(uid="pay-uid"),
        run(uid="old-uid"),
        run("kube-system"),
        run(change_pod="sleep"),
    ],
    ids=str,
)
async def test_callback_about_no_run_with_a_key_gets_the_answer_of_a_wrong_signature(
    world: World, about: CheckRun
) -> None:
    """No such check, no Secret, a Secret without the key or the label, another phase, another ChangePod."""
    data = body(about)
    for key in (KEY, b"", b"wrong"):
        assert await world.post(data, world.signed(data, key)) == (401, REFUSED)
    assert await world.post(body(), world.signed(body(), b"wrong")) == (401, REFUSED)
    assert world.served.results == []
    assert world.served.check_outcomes() == {"unsigned": 4}


async def test_check_of_both_phases_takes_a_callback_for_each(world: World) -> None:
    for phase in Phase:
        data = body(run(check="both", phase=phase))
        assert (await world.post(data, world.signed(data)))[0] == 200


async def test_release_that_is_not_the_owner_of_the_batch_has_no_key_for_it(world: World) -> None:
    """A release of the same name was deleted and created again, perhaps with another policy."""
    known = world.caches.releases.all()
    for each in known:
        world.caches.releases.observe(filled.newer(each, 9))
    data = body()
    assert (await world.post(data, world.signed(data)))[0] == 200
    for each in known:
        metadata = msgspec.structs.replace(each.metadata, uid="new", resource_version="10")
        world.caches.releases.observe(msgspec.structs.replace(each, metadata=metadata))
    data = body(verdict="fail")
    assert await world.post(data, world.signed(data)) == (401, REFUSED)


@pytest.mark.parametrize(
    "changed",
    [
        {SIGNATURE_HEADER: "sha256=" + "0" * 64},
        {SIGNATURE_HEADER: ""},
        {SIGNATURE_HEADER: "ä" * 64},
        {TIMESTAMP_HEADER: "now"},
        {TIMESTAMP_HEADER: "-1"},
        {TIMESTAMP_HEADER: "9" * 30},
    ],
)
async def test_forged_callback_gets_the_same_answer_whatever_is_wrong(world: World, changed: dict[str, str]) -> None:
    data = body("pass")
    assert await world.post(body(), world.signed(body()) | changed) == (401, REFUSED)
    assert await world.post(data, {}) == (401, REFUSED)
    assert (world.served.results, world.served.check_outcomes()) == ([], {"unsigned": 2})


async def test_signature_covers_the_body_and_the_timestamp(world: World) -> None:
    data = body(verdict="fail")
    headers = world.signed(data)
    assert (await world.post(body(verdict="pass"), headers))[0] == 401
    later = headers | {TIMESTAMP_HEADER: str(int(headers[TIMESTAMP_HEADER]) + 1)}
    assert (await world.post(data, later))[0] == 401
    assert (await world.post(body(run(check="both"), "fail"), headers))[0] == 401
    upper = headers | {SIGNATURE_HEADER: headers[SIGNATURE_HEADER].upper()}
    assert (await world.post(data, upper))[0] == 401
    assert (await world.post(data, headers))[0] == 200


async def test_header_that_occurs_twice_is_refused(world: World) -> None:
    data = body()
    headers = world.signed(data)
    for name in headers:
        twice = [*headers.items(), (name, headers[name])]
        async with world.served.client.post(world.served.url(CALLBACK_PATH), data=data, headers=twice) as answer:
            assert answer.status == 401
    assert world.reads() == 0


@pytest.mark.parametrize("away", [-302, 302])
async def test_stale_callback_is_refused_before_its_body_and_any_secret_are_read(world: World, away: int) -> None:
    data = body()
    code, answer = await world.post(data, world.signed(data, away=away))
    assert (code, world.served.results, world.served.check_outcomes()) == (401, [], {"stale": 1})
    assert "300 s are allowed" in answer["msg"]
    assert world.reads() == 0
    assert (await world.post(data, world.signed(data, away=away * 0.99)))[0] == 200


async def test_replayed_callback_is_refused(world: World) -> None:
    data = body()
    headers = world.signed(data)
    answers = await asyncio.gather(*(world.post(data, headers) for _ in range(5)))
    assert sorted(code for code, _ in answers) == [200, 409, 409, 409, 409]
    assert len(world.served.results) == 1
    assert world.served.check_outcomes() == {"accepted": 1, "replayed": 4}


async def test_request_of_the_reconciler_that_is_sent_back_is_no_callback(world: World) -> None:
    """It is signed with the same key."""
    spec = checks()[0]
    assert spec.http is not None
    data = content(subject(spec), spec.http, {"run": str(run()), "verdict": "pass"})
    assert (await world.post(data, world.signed(data)))[0] == 400


async def test_callback_of_an_altershield_server_is_no_callback_about_a_check(world: World) -> None:
    data = body()
    assert await world.post(data, signed_by_server(data)) == (401, REFUSED)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"null",
        b"not json",
        b"\xff\xfe{}",
        body(verdict="PASS"),
        body(verdict="pending"),
        body(verdict=None),
        body(verdict=True),
        body(message=5),
        body("shop/../pay"),
        body("x" * 600),
        b'{"run":' * 2_000 + b"1" + b"}" * 2_000,
    ],
)
async def test_body_that_is_no_callback_is_malformed_and_reads_no_secret(world: World, data: bytes) -> None:
    code, answer = await world.post(data, world.signed(data))
    assert (code, answer["success"], answer["retry"]) == (400, False, False)
    assert len(answer["msg"]) < 512
    assert (world.served.results, world.served.check_outcomes()) == ([], {"malformed": 1})
    assert world.reads() == 0


async def test_body_that_is_too_large_is_refused(world: World) -> None:
    data = body(message="x" * 17_000)
    assert (await world.post(data, world.signed(data)))[0] == 413
    assert world.served.check_outcomes() == {"too_large": 1}
    data = body(message="é" * 2_000)
    assert (await world.post(data, world.signed(data)))[0] == 200
    (callback,) = world.served.results
    assert isinstance(callback.result, Pass)
    assert len(callback.result.message.encode()) <= 900


async def test_other_methods_are_refused(world: World) -> None:
    assert (await world.served.request("GET", CALLBACK_PATH))[0] == 405


async def test_callbacks_about_unknown_runs_read_no_secret(world: World) -> None:
    for number in range(20):
        data = body(run(uid=f"uid-{number}"))
        assert (await world.post(data, world.signed(data)))[0] == 401
    data = body(run(check="open"))
    assert (await world.post(data, world.signed(data)))[0] == 401
    assert world.reads() == 0


@pytest.mark.parametrize("missing", ["batch", "release"])
async def test_callback_that_is_faster_than_the_caches_of_the_replica_is_accepted(
    world: World, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    monkeypatch.setattr(check_keys, "_PAUSES", (0.01,) * 1000)
    informer: Any = world.caches.batches if missing == "batch" else world.caches.releases
    (known,) = [each for each in informer.all() if each.metadata.namespace == "shop"]
    filled.remove(world.caches, known)
    data = body()
    early = asyncio.create_task(world.post(data, world.signed(data)))
    done, _ = await asyncio.wait({early}, timeout=0.3)
    assert not done
    informer.observe(filled.newer(known, 100))
    assert (await early)[0] == 200


class Pauses:
    """Short pauses until `end` is set."""

    def __init__(self, end: asyncio.Event) -> None:
        self._end = end

    def __iter__(self) -> Iterator[float]:
        while not self._end.is_set():
            yield 0.01


async def test_callbacks_about_unknown_runs_that_wait_are_bounded(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check_keys, "_EARLY", 4)
    data = body(run(uid="unknown"))
    for _ in range(2):
        end = asyncio.Event()
        monkeypatch.setattr(check_keys, "_PAUSES", Pauses(end))
        posts = [asyncio.create_task(world.post(data, world.signed(data))) for _ in range(20)]
        await until(lambda tasks=posts: sum(each.done() for each in tasks) == 16, "the answers to all but four")  # type: ignore[misc]
        end.set()
        assert {answer for answer, _ in await asyncio.gather(*posts)} == {401}
    assert world.reads() == 0


async def test_flood_of_forged_callbacks_about_a_known_run_reads_few_secrets_at_a_time(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = world.served.endpoints._check_callbacks._keys
    assert keys is not None
    monkeypatch.setattr(keys, "_places", Places(8, "busy; send it again"))
    monkeypatch.setattr(check_keys, "_SECONDS", 3600.0)
    go_on, reading = asyncio.Event(), 0
    most = 0

    async def slow(request: web.Request) -> web.StreamResponse:
        nonlocal reading, most
        reading += 1
        most = max(most, reading)
        await go_on.wait()
        reading -= 1
        return web.json_response({}, status=404)

    world.api.fault(lambda request: "/secrets/" in request.path, slow, times=1000)
    data = body()
    posts = [asyncio.create_task(world.post(data, world.signed(data, b"wrong"))) for _ in range(40)]
    await until(lambda: sum(each.done() for each in posts) == 32, "the answers to all but eight")
    assert {each.result()[0] for each in posts if each.done()} == {503}
    go_on.set()
    answers = await asyncio.gather(*posts)
    assert sorted({code for code, _ in answers}) == [401, 503]
    assert most <= 4
    assert world.served.results == []
    assert (await world.post(data, world.signed(data, b"wrong")))[0] == 401, "there is place again"


async def test_secret_that_the_api_server_does_not_return_is_asked_for_again(world: World) -> None:
    world.api.fault(lambda request: "/secrets/" in request.path, stub_answer(500), times=1000)
    data = body()
    code, answer = await world.post(data, world.signed(data))
    assert (code, answer["retry"]) == (503, True)
    assert "hook" not in answer["msg"]


async def test_key_is_read_for_each_callback(world: World) -> None:
    data = body()
    assert (await world.post(data, world.signed(data)))[0] == 200
    await world.api.put(SECRETS, secret("shop", "hook", {CREDENTIALS: "true"}, hmac=b"new"))
    data = body(verdict="fail")
    assert (await world.post(data, world.signed(data)))[0] == 401
    assert (await world.post(data, world.signed(data, b"new")))[0] == 200


async def test_log_says_why_a_secret_is_not_used_and_the_answer_does_not(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    data = body(run(check="bare"))
    with caplog.at_level(logging.WARNING):
        assert await world.post(data, world.signed(data)) == (401, REFUSED)
    (record,) = [each for each in caplog.records if each.message == "request refused"]
    assert "shop/unlabelled" in record.__dict__["cause"]


async def test_callback_that_could_not_be_stored_may_be_sent_again(world: World) -> None:
    async def fail(callback: CheckCallback) -> bool:
        raise ValueError("secret detail")

    data = body()
    headers = world.signed(data)
    world.served.receive_result = fail
    code, answer = await world.post(data, headers)
    assert (code, answer["retry"]) == (503, True)
    assert "detail" not in answer["msg"]
    world.served.receive_result = None
    assert (await world.post(data, headers))[0] == 200
    assert world.served.check_outcomes() == {"accepted": 1, "failed": 1}


async def test_callback_that_takes_too_long_to_store_is_answered_with_an_error(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def wait(callback: CheckCallback) -> bool:
        await asyncio.Event().wait()
        return True

    monkeypatch.setattr(check_callback_endpoint, "_RESULT_SECONDS", 0.1)
    world.served.receive_result = wait
    data = body()
    assert (await world.post(data, world.signed(data)))[0] == 503


async def test_callbacks_that_are_stored_at_a_time_are_bounded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    began, go_on = asyncio.Event(), asyncio.Event()

    async def wait(callback: CheckCallback) -> bool:
        began.set()
        await go_on.wait()
        return True

    monkeypatch.setattr(world.served.endpoints._check_callbacks, "_results", Places(1, "busy; send it again"))
    world.served.receive_result = wait
    first, second = body(), body(verdict="fail")
    storing = asyncio.create_task(world.post(first, world.signed(first)))
    await began.wait()
    assert (await world.post(second, world.signed(second)))[0] == 503
    go_on.set()
    assert (await storing)[0] == 200
    assert (await world.post(second, world.signed(second)))[0] == 200


async def test_only_callbacks_that_change_something_are_remembered(world: World) -> None:
    """Otherwise a tenant with a key could fill the memory, and all tenants' callbacks would be refused."""

    async def nothing(callback: CheckCallback) -> bool:
        return False

    world.served.receive_result = nothing
    replays: Replays = world.served.endpoints._check_callbacks._signatures._replays
    for message in ("a", "b", "c"):
        data = body(message=message)
        code, answer = await world.post(data, world.signed(data))
        assert (code, answer["success"]) == (200, True)
        assert "nothing has changed" in answer["msg"]
    assert len(replays._used) == 0


async def test_callback_about_a_run_that_has_not_begun_is_refused_counted_and_logged(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    async def refuse(callback: CheckCallback) -> bool:
        raise EndpointError("not begun", 409, CallbackOutcome.UNKNOWN)

    world.served.receive_result = refuse
    data = body()
    code, answer = await world.post(data, world.signed(data))
    assert (code, answer["success"], answer["retry"]) == (409, False, False)
    assert world.served.check_outcomes() == {"unknown": 1}
    (line,) = [each for each in caplog.records if each.message == "callback about a check refused"]
    assert vars(line)["run"] in data.decode()


async def test_replica_whose_caches_are_not_filled_asks_for_the_callback_again() -> None:
    async with opened(synced=False) as world:
        data = body()
        code, answer = await world.post(data, world.signed(data))
        assert (code, answer["retry"]) == (503, True)
        assert world.reads() == 0


async def test_without_an_altershield_server_only_callbacks_about_checks_are_accepted() -> None:
    async with serving(token=None) as served:
        data = body()
        assert (await served.post(data, signed_by_server(data)))[0] == 503
        assert (await served.post(data, {}, CALLBACK_PATH))[0] == 401
