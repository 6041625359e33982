"""The check `http`, with a real receiver on loopback."""

import asyncio
import contextlib
import hashlib
import hmac
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import msgspec
import pytest
from aiohttp import web

from altershield.api.check_specs import CheckSpec, HttpCheck, Phase, SecretRef
from reconciler.checks.check import Availability, Fail, Lost, NotStarted, Pass, Pending, Started, Subject, Unknown
from reconciler.checks.http_check import ID_HEADER, ByCallback, HttpCheckRunner, content, verdict
from reconciler.checks.identity import CALLBACK_PATH, parsed, run_of
from reconciler.checks.signing import SIGNATURE_HEADER, TIMESTAMP_HEADER, signature
from reconciler.outbound.credentials import Credentials
from reconciler.outbound.outbound_client import Outbound, Reply
from reconciler.outbound.outbound_errors import CredentialsError, OutboundError, SecretUnreadableError
from reconciler.outbound.secrets import Secrets
from reconciler.outbound.urls import allowed_hosts
from tests.unit.altershield.releases.builders import NOW, V1
from tests.unit.reconciler.checks.policy_subjects import subject

KEY = b"hook-key"
JSON = {"Content-Type": "application/json; charset=utf-8"}
UNUSED = "http://127.0.0.1:1/"


class FakeSecrets(Secrets):
    """One Secret of the namespace `default`, or an error."""

    def __init__(self, found: Credentials | OutboundError) -> None:
        self.found = found
        self.read_of: list[tuple[str, str]] = []

    async def read(self, namespace: str, name: str) -> Credentials:
        self.read_of.append((namespace, name))
        if isinstance(self.found, OutboundError):
            raise self.found
        return self.found


class Receiver:
    """It answers with the next of `answers`; the last one is repeated. None: it never answers."""

    def __init__(self, *answers: web.Response | None) -> None:
        self.answers = list(answers)
        self.received: list[tuple[Mapping[str, str], bytes]] = []
        self.url = ""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.received.append((request.headers.copy(), await request.read()))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer is None:
            await asyncio.Event().wait()
        assert answer is not None
        return web.Response(status=answer.status, body=answer.body, headers=answer.headers)


@contextlib.asynccontextmanager
async def receiving(
    *answers: web.Response | None,
    found: Credentials | OutboundError | None = None,
    callback_url: str | None = "https://altershield.example",
) -> AsyncIterator[tuple[Receiver, HttpCheckRunner]]:
    receiver = Receiver(*answers)
    app = web.Application()
    app.router.add_post("/{path:.*}", receiver.handle)
    runner = web.AppRunner(app, shutdown_timeout=0, handler_cancellation=True, access_log=None)
    await runner.setup()
    secrets = FakeSecrets(found or Credentials(hmac=KEY))
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        receiver.url = "http://{}:{}/hook?team=a".format(*runner.addresses[0])
        async with Outbound(allowed_hosts(["127.0.0.1"])) as outbound:
            yield receiver, HttpCheckRunner(outbound, secrets, lambda: NOW + 5.5, callback_url)
    finally:
        await runner.cleanup()


def about(url: str, *, secret: bool = False, phase: Phase = Phase.POST, deadline: float = NOW + 120) -> Subject:
    ref = SecretRef("hook") if secret else None
    spec = CheckSpec("smoke", http=HttpCheck(url, ref, {"team": "a"}))
    return subject(spec, phase, deadline=deadline)


async def test_batch_is_sent_as_flagger_sends_a_canary_with_the_batch_beside_it() -> None:
    async with receiving(web.Response()) as (receiver, check):
        assert await check.start(about(receiver.url)) == Pass()
    ((headers, body),) = receiver.received
    sent: dict[str, Any] = json.loads(body)
    ours = sent.pop("altershield")
    assert sent == {
        "name": "sleep",
        "namespace": "default",
        "phase": "Progressing",
        "checksum": V1,
        "metadata": {"team": "a"},
    }
    assert ours["id"] == "batch-2/smoke/post"
    assert (ours["check"], ours["phase"], ours["batch"], ours["policy"]) == ("smoke", "Post", 2, "rules")
    assert ours["workload"]["kind"] == "Deployment"
    assert ours["pods"] == [{"name": name, "uid": f"{name}-uid", "ip": ""} for name in ("sleep-a", "sleep-b")]
    assert headers["Content-Type"] == "application/json"
    assert headers[ID_HEADER] == "batch-2/smoke/post"
    assert headers[TIMESTAMP_HEADER] == str(NOW + 5)
    assert SIGNATURE_HEADER not in headers
    assert "Authorization" not in headers


async def test_request_is_signed_with_the_key_of_the_secret_in_the_namespace_of_the_policy() -> None:
    async with receiving(web.Response(), found=Credentials("Bearer t", KEY)) as (receiver, check):
        assert await check.start(about(receiver.url, secret=True)) == Pass()
        assert isinstance(check._secrets, FakeSecrets)
        assert check._secrets.read_of == [("default", "hook")]
    ((headers, body),) = receiver.received
    wanted = hmac.new(KEY, headers[TIMESTAMP_HEADER].encode() + b"." + body, hashlib.sha256).hexdigest()
    assert headers[SIGNATURE_HEADER] == f"sha256={wanted}"
    assert headers["Authorization"] == "Bearer t"


async def test_request_is_not_signed_if_the_secret_has_no_key_for_it() -> None:
    async with receiving(web.Response(), found=Credentials("Bearer t")) as (receiver, check):
        assert await check.start(about(receiver.url, secret=True)) == Pass()
    ((headers, _),) = receiver.received
    assert SIGNATURE_HEADER not in headers


def test_signature_vector_of_the_documentation() -> None:
    assert (
        signature(b"hook-key", 1700000000, b'{"name":"web"}')
        == "sha256=ce2c03a9e08e0dc0f9f03bc2c60a7b807b67ec040360b39816f74563075476df"
    )


@pytest.mark.parametrize(
    ("status", "body", "headers", "wanted"),
    [
        (200, b"", {}, Pass()),
        (200, b"OK", {}, Pass()),
        (204, b"", {}, Pass()),
        (200, b"true", JSON, Pass()),
        (200, b"", JSON, Pass()),
        (200, b'{"other": 1}', JSON, Pass()),
        (200, b'{"verdict": "pass", "message": "all\\ngood"}', {}, Pass("all good")),
        (200, b'{"verdict": "fail", "message": "12 errors"}', JSON, Fail("12 errors")),
        (200, b'{"verdict": "fail"}', JSON, Fail("the server answered HTTP 200 with the verdict fail")),
        (202, b'{"verdict": "fail", "message": "no"}', JSON, Fail("no")),
        (200, b'{"verdict": "unknown", "message": "no data"}', JSON, Unknown("no data")),
        (200, b'{"verdict": "pending", "message": "3 of 5"}', JSON, Pending("3 of 5")),
        (200, b'{"verdict": "callback", "message": "in an hour"}', JSON, ByCallback("in an hour")),
        (202, b"", {}, Pending("the server answered HTTP 202")),
        (202, b'{"message": "running"}', JSON, Pending("running")),
        (400, b"bad\r\nbatch", {}, Fail("the server answered HTTP 400: bad batch")),
        (403, b"", {}, Fail("the server answered HTTP 403")),
        (404, b"", {}, Fail("the server answered HTTP 404")),
        (500, b'{"verdict": "pass", "message": "broken"}', JSON, Fail("the server answered HTTP 500: broken")),
        (500, b'{"verdict": 1}', JSON, Fail('the server answered HTTP 500: {"verdict": 1}')),
        (500, b"{", JSON, Fail("the server answered HTTP 500: {")),
        (408, b"", {}, Pending("the server answered HTTP 408")),
        (425, b"", {}, Pending("the server answered HTTP 425")),
        (429, b"", {}, Pending("the server answered HTTP 429")),
        (502, b"", {}, Pending("the server answered HTTP 502")),
        (503, b'{"verdict": "fail"}', JSON, Pending("the server answered HTTP 503")),
        (504, b"", {}, Pending("the server answered HTTP 504")),
    ],
)
def test_answer_is_read_as_flagger_does_unless_it_says_nothing_about_the_batch(
    status: int, body: bytes, headers: dict[str, str], wanted: object
) -> None:
    assert verdict(Reply(status, headers, body)) == wanted


@pytest.mark.parametrize(
    ("status", "body", "headers", "why"),
    [
        (301, b"", {"Location": "http://169.254.169.254/"}, "redirect"),
        (302, b"", {}, "redirect"),
        (200, b'{"verdict": "FAILED"}', JSON, "'FAILED'"),
        (200, b'{"verdict": true}', JSON, "not a text"),
        (200, b'{"verdict": "fail"', JSON, "not JSON"),
        (200, b"\xff\xfe", JSON, "not JSON"),
        pytest.param(200, b"[" * 60_000, JSON, "not JSON", id="deep"),
    ],
)
def test_answer_that_cannot_be_understood_is_unknown(
    status: int, body: bytes, headers: dict[str, str], why: str
) -> None:
    found = verdict(Reply(status, headers, body))
    assert isinstance(found, Unknown)
    assert why in found.reason


def test_reason_of_a_long_answer_fits_into_a_status() -> None:
    found = verdict(Reply(500, {}, ("é" * 30_000).encode()))
    assert isinstance(found, Fail)
    assert len(found.reason) <= 1024


async def test_pending_check_is_asked_again_with_the_same_id_and_body_until_it_has_a_result() -> None:
    answers = web.Response(status=202), web.Response(status=503), web.json_response({"verdict": "fail"})
    async with receiving(*answers) as (receiver, check):
        batch = about(receiver.url)
        assert await check.start(batch) == Started("batch-2/smoke/post")
        assert await check.poll(batch, "batch-2/smoke/post", last=False) == Pending("the server answered HTTP 503")
        assert isinstance(await check.poll(batch, "batch-2/smoke/post", last=False), Fail)
    assert len({(headers[ID_HEADER], body) for headers, body in receiver.received}) == 1


async def test_each_phase_and_batch_has_an_id_of_its_own() -> None:
    async with receiving(web.Response()) as (receiver, check):
        await check.start(about(receiver.url, phase=Phase.PRE))
        await check.start(about(receiver.url, phase=Phase.POST))
    assert [headers[ID_HEADER] for headers, _ in receiver.received] == ["batch-2/smoke/pre", "batch-2/smoke/post"]


async def test_check_that_is_pending_at_the_deadline_is_unknown_and_not_failed() -> None:
    async with receiving(web.Response(status=202), web.Response(status=503), None) as (receiver, check):
        batch = about(receiver.url, deadline=NOW + 5)
        for _ in range(3):
            assert isinstance(await check.poll(batch, "h", last=True), Unknown)


async def test_receiver_that_cannot_be_reached_is_not_started_and_a_silent_one_is_lost() -> None:
    async with receiving(None) as (receiver, check):
        assert isinstance(await check.start(about(UNUSED)), NotStarted)
        assert isinstance(await check.start(about(receiver.url, deadline=NOW)), Lost)
        assert isinstance(await check.poll(about(UNUSED), "h", last=False), Pending)
    assert check.repeatable == {Phase.PRE, Phase.POST}, "the id tells the receiver that it has seen the request"
    assert check.availability is Availability.AVAILABLE


async def test_url_that_is_not_allowed_is_unknown_and_says_why_without_its_query() -> None:
    async with receiving(web.Response()) as (_, check):
        for found in (
            await check.start(about("http://example.com/?token=secret")),
            await check.poll(about("http://example.com/?token=secret"), "h", last=False),
        ):
            assert isinstance(found, Unknown)
            assert "--checks-allowed-hosts" in found.reason
            assert "secret" not in found.reason


async def test_secret_that_cannot_be_used_is_unknown_and_an_error_of_the_api_server_is_repeated() -> None:
    async with receiving(web.Response(), found=CredentialsError("no label")) as (receiver, check):
        assert await check.start(about(receiver.url, secret=True)) == Unknown("no label")
        assert receiver.received == []
    async with receiving(web.Response(), found=SecretUnreadableError("500")) as (receiver, check):
        assert await check.start(about(receiver.url, secret=True)) == NotStarted("500")
        assert await check.poll(about(receiver.url, secret=True), "h", last=False) == Pending("500")
        assert receiver.received == []


async def test_check_of_another_kind_is_unknown() -> None:
    async with receiving(web.Response()) as (_, check):
        assert isinstance(await check.start(subject(CheckSpec("x"))), Unknown)
        await check.end(subject(CheckSpec("x")), "h")


def test_body_names_at_most_a_thousand_pods() -> None:
    batch = about(UNUSED)
    pods = batch.change_pod.spec.pod_infos * 1000
    change_pod = msgspec.structs.replace(
        batch.change_pod, spec=msgspec.structs.replace(batch.change_pod.spec, pod_infos=pods)
    )
    large = Subject(change_pod, batch.release, batch.check, batch.phase, batch.started, batch.deadline)
    assert batch.check.http is not None
    sent = json.loads(content(large, batch.check.http, {}))["altershield"]
    assert (sent["podCount"], len(sent["pods"])) == (2000, 1000)


RUN = f"default/sleep--x--{V1}--x--2/batch-2/smoke/post/{NOW}"
CALLBACK = web.json_response({"verdict": "callback"})


def offer(receiver: Receiver) -> Any:
    """What the last request says about callbacks; None if it offers none."""
    return json.loads(receiver.received[-1][1])["altershield"].get("callback")


@pytest.mark.parametrize("phase", Phase)
async def test_signed_request_names_the_run_and_where_a_callback_is_accepted(phase: Phase) -> None:
    run = RUN.replace("post", phase.lower())
    async with receiving(web.Response()) as (receiver, check):
        await check.start(about(receiver.url, secret=True, phase=phase))
        url = f"https://altershield.example{CALLBACK_PATH}"
        assert offer(receiver) == {"run": run, "path": CALLBACK_PATH, "url": url}
    found = parsed(run)
    assert found == run_of(about(UNUSED, phase=phase))
    assert found is not None
    assert (str(found), found.check, found.phase) == (run, "smoke", phase)


async def test_request_names_the_path_only_if_the_url_of_the_port_is_not_known() -> None:
    async with receiving(web.Response(), callback_url="") as (receiver, check):
        await check.start(about(receiver.url, secret=True))
        assert offer(receiver) == {"run": RUN, "path": CALLBACK_PATH}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a/b/c/d",
        f"{RUN}/",
        RUN.rpartition("/")[0],
        RUN + "0" * 12,
        RUN.upper(),
        RUN.replace("post", "POST"),
        RUN.replace("post", "mid"),
        RUN.replace("default", "a" * 64),
        RUN.replace("default", "../kube-system"),
        RUN + chr(10),
        RUN.replace("smoke", "smo ke"),
    ],
)
def test_text_that_is_no_run_is_not_parsed(text: str) -> None:
    assert parsed(text) is None


async def test_request_is_not_repeated_if_the_receiver_sends_a_callback() -> None:
    async with receiving(CALLBACK) as (receiver, check):
        batch = about(receiver.url, secret=True)
        started = await check.start(batch)
        assert isinstance(started, Started)
        assert started.unique, "the handle is stored at once; without it, the start is repeated"
        assert isinstance(await check.poll(batch, started.handle, last=False), Pending)
        end = await check.poll(batch, started.handle, last=True)
        assert isinstance(end, Unknown)
        assert "callback port" in end.reason
        assert len(receiver.received) == 1


async def test_later_answer_that_a_callback_comes_ends_the_repetition_too() -> None:
    async with receiving(web.Response(status=202), CALLBACK) as (receiver, check):
        batch = about(receiver.url, secret=True)
        assert await check.start(batch) == Started("batch-2/smoke/post")
        answer = await check.poll(batch, "batch-2/smoke/post", last=False)
        assert isinstance(answer, Pending)
        assert isinstance(await check.poll(batch, answer.handle, last=False), Pending)
        assert len(receiver.received) == 2


async def test_request_without_a_key_for_callbacks_offers_none_and_a_receiver_that_wants_one_is_told_why() -> None:
    async def reasons(found: Credentials | None, url: str | None, *, secret: bool) -> list[str]:
        async with receiving(CALLBACK, web.Response(status=202), found=found, callback_url=url) as (receiver, check):
            batch = about(receiver.url, secret=secret)
            ends = [await check.start(batch), await check.poll(batch, "h", last=True)]
            assert offer(receiver) is None
        return [end.reason for end in ends if isinstance(end, Unknown)]

    for reason in await reasons(None, "", secret=False):
        assert "the check has no secretRef" in reason
    for reason in await reasons(Credentials("Bearer t"), "", secret=True):
        assert "the Secret hook has no key hmac" in reason
    for reason in await reasons(None, None, secret=True):
        assert "server.callbacks.enabled" in reason
    assert len(await reasons(None, None, secret=True)) == 2
