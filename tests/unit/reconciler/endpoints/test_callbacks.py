"""Callbacks over HTTP: valid ones are passed on, and no others are."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kube_base.access.errors import ServerError, UnreachableError
from kube_base.errors import UsageError
from kube_base.pki import Authority
from reconciler.endpoints import callback_endpoint, intake
from reconciler.endpoints.callback import Callback, CheckType
from reconciler.endpoints.endpoint_errors import EndpointError
from reconciler.endpoints.outcome import CallbackOutcome
from reconciler.server import signature
from reconciler.server.answers import ServerVerdict
from reconciler.server.messages import Stage
from tests.unit.gatekeeper.serving import HOUR

from .serving import ACCEPTED, CALLBACK, LIVE_TEST, PLATFORM, UNSIGNED, Served, body, rule, serving, signed


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    async with serving() as served:
        yield served


@pytest.mark.parametrize("check", CheckType)
@pytest.mark.parametrize("stage", Stage)
async def test_signed_callback_of_each_check_type_and_stage_is_passed_on(
    served: Served, check: CheckType, stage: Stage
) -> None:
    data = body("fail", rule(), check=check, stage=stage)
    assert await served.post(data, signed(data, at=served.now)) == (200, ACCEPTED)
    (callback,) = served.received
    assert (callback.check_type, callback.stage, callback.verdict) == (check, stage, ServerVerdict.FAIL)
    assert (callback.order, callback.node) == ("prod/web/42", "0" * 36)
    assert callback.message == "errors (jane): 5 % errors"
    assert callback.sent == pytest.approx(served.now, abs=0.001)
    assert served.outcomes() == {"accepted": 1}


async def test_signature_covers_the_body_without_line_breaks(served: Served) -> None:
    data = json.dumps(json.loads(body()), indent=1).replace("\n", "\r\n").encode()
    assert (await served.post(data, signed(data)))[0] == 200


async def test_content_that_was_verified_is_decoded_not_the_body(served: Served) -> None:
    """Somebody between the server and us can add line breaks without the token. They must not change the meaning."""
    data = body("pass")
    headers = signed(data)
    assert (await served.post(data.replace(b'"pass"', b'"pa\nss"'), headers))[0] == 200
    assert served.received[0].verdict is ServerVerdict.PASS


async def test_header_names_and_content_type_are_taken_leniently(served: Served) -> None:
    data = body()
    headers = {name.lower(): value for name, value in signed(data).items()} | {"content-type": "text/plain"}
    assert (await served.post(data, headers))[0] == 200


@pytest.mark.parametrize(
    "changed",
    [
        {signature.SIGN_HEADER: "A" * 44},
        {signature.SIGN_HEADER: ""},
        {signature.SIGN_HEADER: "ä" * 44},
        {signature.PLATFORM_HEADER: "other"},
        {signature.PLATFORM_HEADER: ""},
        {signature.TIMESTAMP_HEADER: "now"},
        {signature.TIMESTAMP_HEADER: "1" * 30},
        {signature.TIMESTAMP_HEADER: "1700000000000"},
    ],
)
async def test_forged_callback_gets_the_same_answer_whatever_is_wrong(served: Served, changed: dict[str, str]) -> None:
    data = body("fail")
    assert await served.post(data, signed(data) | changed) == (401, UNSIGNED)
    assert served.received == []
    assert served.outcomes() == {"unsigned": 1}


async def test_forged_callbacks_with_another_token_or_body_are_refused(served: Served) -> None:
    data = body("fail")
    assert await served.post(data, signed(data, key="other")) == (401, UNSIGNED)
    assert await served.post(body("pass"), signed(data)) == (401, UNSIGNED)
    assert await served.post(b"", signed(b"")) == (401, UNSIGNED)
    lower = signed(data)
    lower[signature.SIGN_HEADER] = lower[signature.SIGN_HEADER].lower()
    assert await served.post(data, lower) == (401, UNSIGNED)
    assert await served.post(data, {}) == (401, UNSIGNED)
    assert served.outcomes() == {"unsigned": 5}


async def test_header_that_occurs_twice_is_refused(served: Served) -> None:
    data = body()
    headers = signed(data)
    twice = [*headers.items(), (signature.SIGN_HEADER, "A" * 44)]
    async with served.client.post(served.url(CALLBACK), data=data, headers=twice) as answer:
        assert answer.status == 401


@pytest.mark.parametrize("away", [-301, 301])
async def test_stale_callback_is_refused_and_the_answer_says_by_how_much(served: Served, away: int) -> None:
    data = body()
    code, answer = await served.post(data, signed(data, at=served.now + away))
    assert (code, served.received, served.outcomes()) == (401, [], {"stale": 1})
    assert "301 s" in answer["msg"]
    assert (await served.post(data, signed(data, at=served.now + away * 0.99)))[0] == 200


async def test_timestamp_in_seconds_is_stale(served: Served) -> None:
    """The published Go operator counts in seconds."""
    data = body()
    assert (await served.post(data, signed(data, at=served.now / 1000)))[0] == 401
    assert served.outcomes() == {"stale": 1}


async def test_replayed_callback_is_refused(served: Served) -> None:
    data = body()
    headers = signed(data)
    answers = await asyncio.gather(*(served.post(data, headers) for _ in range(5)))
    assert sorted(code for code, _ in answers) == [200, 409, 409, 409, 409]
    assert len(served.received) == 1
    assert served.outcomes() == {"accepted": 1, "replayed": 4}
    headers[signature.TIMESTAMP_HEADER] = "+0" + headers[signature.TIMESTAMP_HEADER]  # the same number
    assert (await served.post(b"\n" + data, headers))[0] == 409


async def test_forged_callback_does_not_use_up_a_signature(served: Served) -> None:
    data = body()
    headers = signed(data)
    assert (await served.post(body("fail"), headers))[0] == 401
    assert (await served.post(data, headers))[0] == 200


async def test_callback_that_could_not_be_stored_may_be_sent_again(served: Served) -> None:
    async def fail(callback: Callback) -> None:
        raise ValueError("secret detail")

    data = body()
    headers = signed(data)
    served.receive = fail
    code, answer = await served.post(data, headers)
    assert (code, answer) == (500, {"success": False, "retry": True, "msg": "the callback could not be stored"})
    served.receive = None
    assert (await served.post(data, headers))[0] == 200
    assert served.outcomes() == {"accepted": 1, "failed": 1}


@pytest.mark.parametrize(("code", "outcome"), [(404, CallbackOutcome.UNKNOWN), (409, CallbackOutcome.LATE)])
async def test_callback_that_does_not_count_is_refused_counted_and_logged_with_both_ids(
    served: Served, caplog: pytest.LogCaptureFixture, code: int, outcome: CallbackOutcome
) -> None:
    async def refuse(callback: Callback) -> None:
        raise EndpointError("not opened", code, outcome)

    served.receive = refuse
    data = body("fail")
    expected = {"success": False, "retry": False, "msg": "not opened"}
    assert await served.post(data, signed(data)) == (code, expected)
    assert served.outcomes() == {outcome.value: 1}
    (line,) = [each for each in caplog.records if each.message == "callback refused"]
    assert (vars(line)["order"], vars(line)["node"]) == ("prod/web/42", "0" * 36)


async def test_callback_is_stored_although_the_api_server_is_unavailable_for_a_while(served: Served) -> None:
    """The server sends no callback twice."""
    failures = iter([UnreachableError("no response"), ServerError("etcd has no leader", code=500)])

    async def fail_twice(callback: Callback) -> None:
        for error in failures:
            raise error

    served.receive = fail_twice
    data = body()
    assert (await served.post(data, signed(data)))[0] == 200
    assert len(served.received) == 1
    assert served.outcomes() == {"accepted": 1}


async def test_callback_that_takes_long_is_answered_first_and_stored_later(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on, stored = asyncio.Event(), asyncio.Event()

    async def wait(callback: Callback) -> None:
        await go_on.wait()
        stored.set()

    monkeypatch.setattr(callback_endpoint, "_RECEIVE_SECONDS", 0.1)
    served.receive = wait
    data = body()
    assert (await served.post(data, signed(data)))[0] == 200
    assert not stored.is_set()
    go_on.set()
    await stored.wait()


async def test_callbacks_that_are_stored_at_a_time_are_bounded(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    async def wait(callback: Callback) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(callback_endpoint, "_RECEIVE_SECONDS", 0.1)
    monkeypatch.setattr(callback_endpoint, "_STORING", 1)
    served.receive = wait
    first, second = body(), body(node="another-node")
    assert (await served.post(first, signed(first)))[0] == 200
    assert (await served.post(second, signed(second)))[0] == 503


@pytest.mark.parametrize("token", [None, "", " \n"])
async def test_without_a_token_all_signed_requests_are_refused(token: str | None) -> None:
    async def empty() -> str:
        return token or ""

    async with serving(token=None if token is None else empty) as served:
        data = body()
        for path in (CALLBACK, LIVE_TEST):
            for headers in (signed(data), signed(data, key=""), signed(data, key=token or "x"), {}):
                code, answer = await served.post(data, headers, path)
                assert (code, answer["success"]) == (503, False)
                assert "no token" in answer["msg"]
        assert served.received == []
        assert served.outcomes() == {"unsigned": 4}


async def test_token_file_that_cannot_be_read_refuses_callbacks() -> None:
    async def missing() -> str:
        raise UsageError("cannot read /etc/token")

    async with serving(token=missing) as served:
        data = body()
        code, answer = await served.post(data, signed(data))
        assert code == 503
        assert "/etc/token" not in answer["msg"]


async def test_token_is_asked_for_at_each_request() -> None:
    tokens = iter(["old", "new"])

    async def current() -> str:
        return next(tokens)

    async with serving(token=current) as served:
        data = body()
        assert (await served.post(data, signed(data, key="old")))[0] == 200
        assert (await served.post(data, signed(data, key="new")))[0] == 200


@pytest.mark.parametrize(
    "data",
    [
        b"{}",
        b"null",
        b"[]",
        b"not json",
        b"\xff\xfe{}",
        body(check="CHANGE_X"),
        body(check="change_batch"),
        body(stage="MIDDLE"),
        body(nodeId=5),
        body(nodeId=""),
        body(nodeId="x" * 65),
        body(nodeId="a\x1bb"),
        body(nodeId="a\n"),
        body(bizExecOrderId=None),
        body(bizExecOrderId="x" * 129),
        body(verdict=None),
        body(verdict={"verdict": True}),
        body(verdict={"verdict": "pass", "rules": {}}),
        body("fail", {"name": 5}),
        body("fail", rule(message="half")).replace(b"half", b"\\ud83d"),
        body().replace(b'"rules":[]', b'"rules":' + b"[" * 100_000 + b"]" * 100_000),
        b'{"callbackRequest":' * 50_000 + b"1" + b"}" * 50_000,
        body().replace(b'"changeSceneKey":', b'"x":' + b"[" * 100_000 + b"]" * 100_000 + b',"changeSceneKey":'),
    ],
    ids=lambda data: str(data[:30]),
)
async def test_signed_body_that_is_no_callback_is_malformed(served: Served, data: bytes) -> None:
    code, answer = await served.post(data, signed(data))
    assert (code, answer["success"], answer["retry"]) == (400, False, False)
    assert answer["msg"].startswith("the body is not a callback: ")
    assert len(answer["msg"]) < 512
    assert (served.received, served.outcomes()) == ([], {"malformed": 1})


async def test_unknown_fields_are_ignored(served: Served) -> None:
    data = body(tldcTenantCode="x", new={"a": [1]})
    assert (await served.post(data, signed(data)))[0] == 200


async def test_callback_larger_than_1_mib_is_refused_before_it_is_read(served: Served) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", served.endpoints.port)
    headers = "".join(f"{name}: {value}\r\n" for name, value in signed(b"x").items())
    writer.write(f"POST {CALLBACK} HTTP/1.1\r\nHost: x\r\n{headers}Content-Length: 1048577\r\n\r\n".encode())
    assert b" 413 " in await reader.readline()
    writer.close()
    assert served.outcomes() == {"too_large": 1}


async def test_chunked_callback_larger_than_1_mib_is_refused(served: Served) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(40):
            yield b"x" * 65_536

    assert (await served.post(endless(), signed(b"x")))[0] == 413
    assert served.outcomes() == {"too_large": 1}


async def test_callback_of_just_1_mib_is_accepted(served: Served) -> None:
    data = body("fail", *(rule(f"rule-{number}") for number in range(500)))
    data += b" " * (1024 * 1024 - len(data))
    assert (await served.post(data, signed(data)))[0] == 200
    assert len(served.received[0].rules) == 100
    assert len(served.received[0].message.encode()) <= 1024


async def test_slow_body_is_refused(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "_BODY_SECONDS", 0.2)
    reader, writer = await asyncio.open_connection("127.0.0.1", served.endpoints.port)
    headers = "".join(f"{name}: {value}\r\n" for name, value in signed(b"x").items())
    writer.write(f"POST {CALLBACK} HTTP/1.1\r\nHost: x\r\n{headers}Content-Length: 10\r\n\r\n{{".encode())
    assert b" 408 " in await reader.readline()
    writer.close()
    assert served.outcomes() == {"malformed": 1}


async def test_slow_large_bodies_do_not_hold_up_small_callbacks(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "_BODY_SECONDS", 3600.0)
    headers = "".join(f"{name}: {value}\r\n" for name, value in signed(b"x").items())
    start = f"POST {CALLBACK} HTTP/1.1\r\nHost: x\r\n{headers}Content-Length: 1000000\r\n\r\n".encode()
    writers = []
    for _ in range(intake.PLACES + 4):
        _, writer = await asyncio.open_connection("127.0.0.1", served.endpoints.port)
        writer.write(start + b" " * (intake.SMALL + 1))
        await writer.drain()
        writers.append(writer)
    data = body()
    assert (await served.post(data, signed(data)))[0] == 200
    for writer in writers:
        writer.transport.abort()


async def test_caller_that_expects_100_continue_gets_it(served: Served) -> None:
    data = body()
    reader, writer = await asyncio.open_connection("127.0.0.1", served.endpoints.port)
    headers = "".join(f"{name}: {value}\r\n" for name, value in signed(data).items())
    start = (
        f"POST {CALLBACK} HTTP/1.1\r\nHost: x\r\n{headers}Content-Length: {len(data)}\r\nExpect: 100-continue\r\n\r\n"
    )
    writer.write(start.encode())
    assert b" 100 " in await reader.readline()
    await reader.readline()
    writer.write(data)
    assert b" 200 " in await reader.readline()
    writer.close()


async def test_other_paths_and_methods_are_refused(served: Served) -> None:
    data = body()
    for path in ("/", "/metrics", "/openapi/altershield", CALLBACK + "/", "/openapi/v1/exe/x", "//openapi/x"):
        assert (await served.post(data, signed(data), path))[0] == 404
    for method in ("GET", "PUT", "DELETE", "OPTIONS"):
        async with served.client.request(method, served.url(CALLBACK), data=data, headers=signed(data)) as answer:
            assert (answer.status, answer.headers["Allow"]) == (405, "POST")
            assert "Access-Control-Allow-Origin" not in answer.headers
    assert served.received == []


async def test_live_test_is_signed_too(served: Served) -> None:
    data = b'{"any":1}'
    assert await served.post(data, {}, LIVE_TEST) == (401, UNSIGNED)
    assert await served.post(data, signed(data, key="other"), LIVE_TEST) == (401, UNSIGNED)
    assert await served.post(data, signed(data), LIVE_TEST) == (200, ACCEPTED)
    assert served.received == []
    assert served.outcomes() == {}


async def test_refusals_of_anybody_do_not_fill_the_log(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(20):
        await served.post(b"{}", {})
    lines = [each for each in caplog.records if each.message == "request refused"]
    assert len(lines) == 1


async def test_port_speaks_tls_with_a_context(tmp_path: Path) -> None:
    authority = Authority.create("tests", lifetime=HOUR)
    pair = authority.issue("callbacks", hosts=["127.0.0.1"], lifetime=HOUR)
    files = tmp_path / "tls.crt", tmp_path / "tls.key"
    files[0].write_bytes(pair.certificate)
    files[1].write_bytes(pair.key)
    own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    own.load_cert_chain(*files)
    trusting = ssl.create_default_context(cadata=authority.pair.certificate.decode())
    async with serving(tls=(own, trusting)) as served:
        data = body()
        assert await served.post(data, signed(data)) == (200, ACCEPTED)


async def test_port_that_is_taken_is_a_usage_error(served: Served) -> None:
    with pytest.raises(UsageError, match="--callback-port"):
        async with serving(port=served.endpoints.port):
            pass


async def test_platform_is_the_configured_one() -> None:
    async with serving(platform="k8s-east") as served:
        data = body()
        assert (await served.post(data, signed(data, platform=PLATFORM)))[0] == 401
        assert (await served.post(data, signed(data, platform="k8s-east")))[0] == 200
