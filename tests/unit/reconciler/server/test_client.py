"""The client with each answer that a server or a proxy can give. Time is simulated."""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from aiohttp import web

from kube_base.errors import ReportedError
from reconciler.server.answers import MAX_ANSWER, Polled, ServerVerdict
from reconciler.server.messages import FinishState, Stage
from reconciler.server.server_client import ServerClient
from reconciler.server.server_errors import NotAllowedError, RejectedError, UnavailableError
from reconciler.server.server_settings import Settings
from tests.unit.reconciler.server.fake_server import (
    FINISH,
    ORDER,
    START,
    Answer,
    FakeServer,
    calling,
    failure,
    raw,
    success,
)

pytestmark = pytest.mark.looptime

CALLS: dict[str, Callable[[ServerClient], Awaitable[object]]] = {
    "create_order": lambda client: client.create_order(ORDER),
    "start_batch": lambda client: client.start_batch(START),
    "finish_batch": lambda client: client.finish_batch(FINISH),
    "poll": lambda client: client.poll("shop/web/1", "n1", Stage.POST),
    "close_order": lambda client: client.close_order("shop/web/1", FinishState.SUCCESS, ""),
    "resubmit": lambda client: client.resubmit("shop/web/1", "n1"),
    "skip": lambda client: client.skip("shop/web/1", "n1", Stage.PRE, ["r1"], "jane", "false alarm"),
    "enabled": lambda client: client.enabled(),
}
every_call = pytest.mark.parametrize("name", CALLS)

UNSUPPORTED = "402:unsupported operation in "


@contextlib.asynccontextmanager
async def calling_for(name: str) -> AsyncIterator[tuple[FakeServer, ServerClient]]:
    """A new server and a new client. An error names the call."""
    async with calling() as both:
        try:
            yield both
        except BaseException as error:
            error.add_note(f"the call is {name}")
            raise


async def unavailable(call: Awaitable[object]) -> UnavailableError:
    with pytest.raises(UnavailableError) as caught:
        await call
    return caught.value


async def rejected(call: Awaitable[object]) -> RejectedError:
    with pytest.raises(RejectedError) as caught:
        await call
    return caught.value


@pytest.mark.parametrize("code", ["101", "102", "104", "998x", "000", "", None])
async def test_any_call_refused_with_a_code_raises_rejected_error(code: str | None) -> None:
    for name in CALLS:
        async with calling_for(name) as (server, client):
            server.answers = [failure(code, "tenantCode must\nnot be blank")]
            error = await rejected(CALLS[name](client))
            assert (error.code, error.text) == (code or "", "tenantCode must not be blank")
            assert f"the AlterShield server at {server.url} refused" in str(error)
            assert "(tenantCode must not be blank)" in str(error)
            assert len(server.requests) == 1
            assert client.calls == {(name, "rejected"): 1}
            assert client.available


async def test_advice_of_a_refusal_names_the_options_to_check() -> None:
    async with calling() as (server, client):
        server.answers = [failure("102"), failure("101"), raw(status=403)]
        assert "--server-token-file" in str(await rejected(client.create_order(ORDER)))
        assert "--server-tenant" in str(await rejected(client.create_order(ORDER)))
        assert "--server-url" in str(await rejected(client.create_order(ORDER)))


@every_call
@pytest.mark.parametrize("code", ["901", "998"])
async def test_server_error_code_raises_unavailable_error(name: str, code: str) -> None:
    async with calling() as (server, client):
        server.answers = [failure(code)]
        error = await unavailable(CALLS[name](client))
        assert error.delivered
        assert code in str(error)
        assert len(server.requests) == 1


async def test_create_order_of_an_existing_order_succeeds() -> None:
    async with calling() as (server, client):
        server.answers = [failure("106", "duplicate")]
        await client.create_order(ORDER)
        assert client.available


@pytest.mark.parametrize("name", [name for name in CALLS if name != "create_order"])
async def test_code_106_is_no_success_for_other_calls(name: str) -> None:
    async with calling() as (server, client):
        server.answers = [failure("106")]
        assert (await rejected(CALLS[name](client))).code == "106"


@pytest.mark.parametrize(
    ("msg", "state"),
    [
        (f"{UNSUPPORTED}PRE_AOP_FINISH", "PRE_AOP_FINISH"),
        (f"{UNSUPPORTED}POST_AOP_IGNORE, sorry", "POST_AOP_IGNORE"),
        ("node not found", ""),
        (f"{UNSUPPORTED}{'A' * 100}", ""),
        (None, ""),
    ],
)
async def test_code_103_raises_not_allowed_error_with_the_state(msg: str | None, state: str) -> None:
    for name in CALLS:
        async with calling_for(name) as (server, client):
            server.answers = [failure("103", msg)]
            with pytest.raises(NotAllowedError) as caught:
                await CALLS[name](client)
            assert caught.value.state == state
            assert state in str(caught.value)
            assert client.calls == {(name, "not_allowed"): 1}


@pytest.mark.parametrize("state", ["POST_AOP_SUBMIT", "POST_AOP"])
async def test_finish_batch_succeeds_while_the_check_after_the_batch_runs(state: str) -> None:
    async with calling() as (server, client):
        server.answers = [failure("103", UNSUPPORTED + state)]
        await client.finish_batch(FINISH)


@pytest.mark.parametrize("state", ["PRE_AOP_SUBMIT", "PRE_AOP"])
async def test_finish_batch_is_not_allowed_while_the_check_before_the_batch_runs(state: str) -> None:
    async with calling() as (server, client):
        server.answers = [failure("103", UNSUPPORTED + state), success({"nodeId": "n1", "skipCheck": True})]
        with pytest.raises(NotAllowedError) as caught:
            await client.finish_batch(FINISH)
        assert caught.value.state == state
        await client.finish_batch(FINISH)


@pytest.mark.parametrize("state", ["PRE_AOP_SUBMIT", "PRE_AOP"])
async def test_resubmit_succeeds_while_the_check_runs(state: str) -> None:
    async with calling() as (server, client):
        server.answers = [failure("103", UNSUPPORTED + state)]
        await client.resubmit("shop/web/1", "n1")


async def test_skip_of_a_skipped_node_succeeds() -> None:
    async with calling() as (server, client):
        server.answers = [failure("101", "exeNodeStateMachine is null by state PRE_AOP_IGNORE")]
        await CALLS["skip"](client)
        assert (await rejected(CALLS["poll"](client))).code == "101"


@pytest.mark.parametrize(
    "answer",
    [
        raw(b""),
        raw(b" \n"),
        raw(b"", 500),
        raw(b'{"success":true}', 500),
        raw(b"", 503),
        raw(b"", 404),
        raw(b"", 429),
        raw(b"", 204),
        raw(b"<html>login</html>"),
        raw(b"null"),
        raw(b"[]"),
        raw(b"{}"),
        raw(b'{"success":"true"}'),
        raw(b'{"success":1}'),
        raw(b'{"success":null}'),
        raw(b'{"success":true,"resultCode":0}'),
        raw(b'{"success":true,"msg":{}}'),
        raw(b'{"success":true,"domain":'),
        raw(b'{"success":true,"msg":"\xff"}'),
        raw(b"[" * 100_000),
        raw(b'{"success":true,"domain":' + b"[" * 100_000),
        raw(b"\x1f\x8b\x08\x00", 200, **{"Content-Encoding": "gzip"}),
    ],
    ids=range(22),
)
async def test_unusable_answer_raises_unavailable_error_and_counts_as_delivered(answer: Answer) -> None:
    for name in CALLS:
        async with calling_for(name) as (server, client):
            server.answers = [answer]
            error = await unavailable(CALLS[name](client))
            assert error.delivered
            assert f"the AlterShield server at {server.url} is unavailable" in str(error)
            assert len(server.requests) == 1
            assert client.calls == {(name, "unavailable"): 1}


@pytest.mark.parametrize("name", ["start_batch", "poll", "enabled"])
@pytest.mark.parametrize("domain", [None, [], "x", {"nodeId": None, "finished": None}, {"nodeId": 1, "finished": "x"}])
async def test_content_of_a_wrong_type_raises_unavailable_error(name: str, domain: object) -> None:
    async with calling() as (server, client):
        server.answers = [success(domain)]
        if name == "enabled" and isinstance(domain, dict):
            assert await CALLS[name](client)
        else:
            assert (await unavailable(CALLS[name](client))).delivered


@pytest.mark.parametrize("node", ["", " ", "a b", "a\n", "ü", "n" * 65])
async def test_node_id_of_a_strange_form_raises_unavailable_error(node: str) -> None:
    async with calling() as (server, client):
        server.answers = [success({"nodeId": node})]
        assert (await unavailable(client.start_batch(START))).delivered


@pytest.mark.parametrize("name", ["create_order", "finish_batch", "close_order", "resubmit", "skip"])
@pytest.mark.parametrize("domain", [None, {"x": 1}, [], "x"])
async def test_success_decides_and_unread_content_may_have_any_type(name: str, domain: object) -> None:
    async with calling() as (server, client):
        server.answers = [success(domain, code=None)]
        await CALLS[name](client)
        assert client.calls == {(name, "ok"): 1}


@pytest.mark.parametrize("status", [400, 401, 403, 405, 413])
async def test_http_4xx_raises_rejected_error_with_the_status(status: int) -> None:
    for name in CALLS:
        async with calling_for(name) as (server, client):
            server.answers = [raw(b'{"error":\n"Bad Request"}', status)]
            error = await rejected(CALLS[name](client))
            assert (error.code, error.text) == (f"HTTP {status}", '{"error": "Bad Request"}')


@every_call
async def test_redirect_is_not_followed(name: str) -> None:
    async with calling() as (server, client), calling() as (elsewhere, _):
        server.answers = [raw(status=307, Location=elsewhere.url)]
        assert (await unavailable(CALLS[name](client))).delivered
        assert elsewhere.requests == []


async def test_answer_of_one_mebibyte_is_read_and_a_longer_one_is_not() -> None:
    async with calling() as (server, client):
        exact = b'{"success":true}'.ljust(MAX_ANSWER)
        server.answers = [raw(exact), raw(exact + b" ")]
        await client.create_order(ORDER)
        error = await unavailable(client.create_order(ORDER))
        assert error.delivered
        assert "longer than" in str(error)


async def test_endless_answer_raises_unavailable_error() -> None:
    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        with contextlib.suppress(ConnectionError):
            while True:
                await response.write(b" " * 65536)
        return response

    async with calling() as (server, client):
        server.answers = [endless]
        assert "longer than" in str(await unavailable(client.create_order(ORDER)))


@every_call
async def test_hung_server_raises_unavailable_error_after_10_seconds(name: str) -> None:
    async def never(_request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(3600)
        raise AssertionError

    async with calling() as (server, client):
        server.answers = [never]
        began = asyncio.get_running_loop().time()
        assert (await unavailable(CALLS[name](client))).delivered
        assert asyncio.get_running_loop().time() - began == pytest.approx(10, abs=1)


@every_call
async def test_refused_connection_was_not_delivered(name: str) -> None:
    async with calling() as (server, client):
        await server.stop()
        error = await unavailable(CALLS[name](client))
        assert not error.delivered
        assert "no connection" in str(error)


async def test_hung_name_resolution_was_not_delivered(monkeypatch: pytest.MonkeyPatch) -> None:
    async def resolve(*_: object, **__: object) -> list[object]:
        await asyncio.sleep(3600)
        raise AssertionError

    monkeypatch.setattr("aiohttp.TCPConnector._resolve_host", resolve)
    async with calling() as (_, client):
        assert not (await unavailable(client.start_batch(START))).delivered


async def test_hung_connection_attempt_was_not_delivered_and_ends_after_3_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def connect(*_: object, **__: object) -> None:
        await asyncio.sleep(3600)

    monkeypatch.setattr("aiohttp.connector.aiohappyeyeballs.start_connection", connect)
    async with calling() as (_, client):
        began = asyncio.get_running_loop().time()
        assert not (await unavailable(client.start_batch(START))).delivered
        assert asyncio.get_running_loop().time() - began == pytest.approx(3, abs=1)


async def test_failed_tls_handshake_was_not_delivered() -> None:
    async with calling() as (server, _):
        settings = Settings(url=server.url.replace("http:", "https:"))
        async with ServerClient(settings) as client:
            assert not (await unavailable(client.start_batch(START))).delivered
        assert server.requests == []


async def test_path_of_the_url_precedes_the_path_of_the_call() -> None:
    async with calling() as (server, _), ServerClient(Settings(url=f"{server.url}/base")) as client:
        await client.create_order(ORDER)
        assert server.requests[0].path_qs == "/base/openapi/v1/exe/submitChangeExecOrder"


@every_call
async def test_cut_connection_counts_as_delivered(name: str) -> None:
    async def cut(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    async with calling() as (server, client):
        server.answers = [cut]
        assert (await unavailable(CALLS[name](client))).delivered
        assert len(server.requests) == 1 or name == "enabled"  # aiohttp repeats a GET request


async def test_proxy_variables_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    async with calling() as (_, client):
        await client.create_order(ORDER)


async def test_cookies_are_not_sent_back() -> None:
    async with calling() as (server, client):
        server.answers = [raw(b'{"success":true}', 200, **{"Set-Cookie": "a=b; Path=/"})]
        await client.create_order(ORDER)
        await client.create_order(ORDER)
        assert "Cookie" not in server.requests[1].headers


@pytest.mark.parametrize(
    ("domain", "polled"),
    [
        ({"finished": False, "verdict": None}, Polled(False, ServerVerdict.OTHER)),
        ({"finished": True}, Polled(True, ServerVerdict.OTHER)),
        ({"finished": True, "verdict": {"verdict": "pass"}}, Polled(True, ServerVerdict.PASS)),
        ({"finished": True, "verdict": {"verdict": "none", "msg": None}}, Polled(True, ServerVerdict.NONE)),
        ({"finished": True, "verdict": {"verdict": "inconc"}}, Polled(True, ServerVerdict.INCONC)),
        ({"finished": True, "verdict": {"verdict": "fail", "msg": "a\nb"}}, Polled(True, ServerVerdict.FAIL, "a b")),
        ({"finished": True, "verdict": {"verdict": "PASS"}}, Polled(True, ServerVerdict.OTHER)),
        ({"finished": True, "verdict": {"verdict": "other"}}, Polled(True, ServerVerdict.OTHER)),
        ({"finished": True, "verdict": {"verdict": None, "checkPass": True}}, Polled(True, ServerVerdict.OTHER)),
    ],
)
async def test_poll_returns_the_verdict(domain: object, polled: Polled) -> None:
    async with calling() as (server, client):
        server.answers = [success(domain)]
        assert await client.poll("shop/web/1", "n1", Stage.POST) == polled


def test_only_pass_and_none_pass() -> None:
    assert [verdict for verdict in ServerVerdict if verdict.passed] == [ServerVerdict.PASS, ServerVerdict.NONE]


@pytest.mark.parametrize(
    ("check", "scenes", "enabled"),
    [
        (None, None, True),
        ("true", "", True),
        (True, "a, b", True),
        ("false", "", False),
        ("False", None, False),
        (False, None, False),
        ("true", "*", False),
        ("true", "a, com.alipay.altershield.kubernetes.rollingupdate ,b", False),
        ("true", "com.alipay.altershield.kubernetes.rollingupdate.x", True),
    ],
)
async def test_heartbeat_says_whether_our_scene_is_checked(
    check: str | bool | None, scenes: str | None, enabled: bool
) -> None:
    async with calling() as (server, client):
        server.answers = [
            success(
                {
                    "OPSCLOUD_CLIENT_SWITCH_CHG_SRV_CHECK": check,
                    "OPSCLOUD_CLIENT_SWITCH_OFF_CHANGE_SCENE_KEYS": scenes,
                }
            )
        ]
        assert await client.enabled() is enabled


async def test_after_five_failures_calls_fail_at_once_until_the_server_answers() -> None:
    async with calling() as (server, client):
        server.answers = [raw(status=503)]
        for _ in range(5):
            assert (await unavailable(client.start_batch(START))).delivered
        assert not client.available
        assert "503" in client.cause
        error = await unavailable(client.start_batch(START))
        assert not error.delivered
        assert error.retry_after == pytest.approx(10, abs=1)
        assert len(server.requests) == 5
        await asyncio.sleep(10)
        server.answers = [failure("101")]
        await rejected(client.create_order(ORDER))
        assert client.available
        assert client.cause == ""


async def test_many_calls_to_a_hung_server_end_together_when_the_breaker_opens() -> None:
    async def never(_request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(3600)
        raise AssertionError

    async with calling() as (server, client):
        server.answers = [never]
        began = asyncio.get_running_loop().time()
        found = await asyncio.gather(*(client.start_batch(START) for _ in range(300)), return_exceptions=True)
        assert all(isinstance(each, UnavailableError) for each in found)
        assert asyncio.get_running_loop().time() - began == pytest.approx(10, abs=2)
        assert len(server.requests) == 100


async def test_polls_do_not_delay_other_calls() -> None:
    async def slow(_request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(5)
        return web.Response(body=b'{"success":true,"domain":{"finished":false}}')

    async with calling() as (server, client):
        server.answers = [slow]
        polls = [asyncio.create_task(client.poll("o", "n", Stage.PRE)) for _ in range(100)]
        await asyncio.sleep(3)
        assert len(server.requests) == 50
        server.answers = [success(), slow]
        async with asyncio.timeout(1):
            await client.create_order(ORDER)
        await asyncio.gather(*polls)


async def test_cancelled_call_is_counted_as_cancelled() -> None:
    async def never(_request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(3600)
        raise AssertionError

    async with calling() as (server, client):
        server.answers = [never]
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await client.start_batch(START)
        assert client.calls == {("start_batch", "cancelled"): 1}


@pytest.mark.parametrize(
    "answer",
    [failure("101", "x" * 10**5), failure("103", "x" * 10**5), failure("901", "\x1b[31m\r\n"), raw(status=503)],
)
async def test_messages_are_short_sentences_on_one_line(answer: Answer) -> None:
    for name in CALLS:
        async with calling_for(name) as (server, client):
            server.answers = [answer]
            with pytest.raises(ReportedError, match=r"^cannot ") as caught:
                await CALLS[name](client)
            assert len(str(caught.value).encode()) < 2048
            assert not re.search(r"[\x00-\x1f]", str(caught.value))
