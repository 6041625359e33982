"""Requests over HTTP and TLS, as API servers send them. Design rule 6: unreadable reviews get 4xx, bugs give 5xx."""

import asyncio
import contextlib
import gzip
import json
import logging
import ssl
import time
from collections.abc import AsyncIterator, Sequence
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from prometheus_client import generate_latest

from altershield.api.change_workload import WorkloadRef
from gatekeeper.intake import body as intake
from gatekeeper.intake.body import MAX_BODY
from gatekeeper.projection import Release
from tests.support.polling import until

from .malformed import MALFORMED
from .reviews import (
    MUTATING_PATH,
    UID,
    VALIDATING_PATH,
    StaticListers,
    deployment,
    encode,
    patched,
    released,
    review,
    version_of,
)
from .serving import JSON, Served, head, post, raw, serving, session


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async with serving(tmp_path) as served:
        yield served


@pytest.fixture
async def client() -> AsyncIterator[aiohttp.ClientSession]:
    async with session() as client:
        yield client


async def test_a_release_gets_a_version_label_and_is_allowed(served: Served, client: aiohttp.ClientSession) -> None:
    new, old = deployment("busybox:2"), released()
    code, answer = await post(client, served.url(MUTATING_PATH + "?timeout=2s"), encode(review(new, old)))
    assert code == 200
    stamped = patched(new, answer["response"])
    assert stamped["metadata"]["labels"]["admission-webhook-altershield.antgroup.com/version"] == version_of(new)
    code, answer = await post(client, served.url(VALIDATING_PATH), encode(review(stamped, old)))
    assert (code, answer["response"]) == (200, {"uid": UID, "allowed": True})


async def test_a_denial_has_http_status_200(served: Served, client: aiohttp.ClientSession) -> None:
    body = review(released("busybox:2", suspend="1"), released(suspend="1"))
    code, answer = await post(client, served.url(VALIDATING_PATH), encode(body))
    assert code == 200
    assert answer["response"]["status"]["message"] == "deployment sleep is suspended"


async def test_the_answer_has_content_type_json(served: Served, client: aiohttp.ClientSession) -> None:
    async with client.post(served.url(MUTATING_PATH), data=encode(review(deployment())), headers=JSON) as answer:
        assert answer.headers["Content-Type"] == "application/json"


@pytest.mark.parametrize("path", [MUTATING_PATH, VALIDATING_PATH])
async def test_malformed_reviews_get_4xx_and_later_reviews_are_answered(
    served: Served, client: aiohttp.ClientSession, path: str
) -> None:
    for name, (data, _) in MALFORMED.items():
        if path == VALIDATING_PATH and "in the template" in name:
            continue  # reviews that are allowed unread need not be readable
        code, answer = await post(client, served.url(path), data)
        if code == 200:
            assert path == VALIDATING_PATH, name
            continue
        expected = 413 if "deep" in name and code == 413 else 400
        assert (code, answer["code"]) == (expected, expected), name
        assert (answer["kind"], answer["status"]) == ("Status", "Failure"), name
        assert answer["message"], name
    code, _ = await post(client, served.url(path), encode(review(deployment())))
    assert code == 200


@pytest.mark.parametrize("media_type", ["application/json; charset=utf-8", "Application/JSON", "application/json"])
async def test_any_spelling_of_the_media_type_json_is_accepted(
    served: Served, client: aiohttp.ClientSession, media_type: str
) -> None:
    headers = {"Content-Type": media_type}
    assert (await post(client, served.url(MUTATING_PATH), encode(review(deployment())), headers))[0] == 200


@pytest.mark.parametrize(
    "media_type", ["text/plain", "application/yaml", "application/json-patch+json", "application/x-www-form-urlencoded"]
)
async def test_another_content_type_gets_415(served: Served, client: aiohttp.ClientSession, media_type: str) -> None:
    headers = {"Content-Type": media_type}
    code, answer = await post(client, served.url(MUTATING_PATH), encode(review(deployment())), headers)
    assert code == 415
    assert media_type in answer["message"]


async def test_a_missing_content_type_gets_415(served: Served, client: aiohttp.ClientSession) -> None:
    async with client.post(served.url(MUTATING_PATH), data=b"{}", skip_auto_headers=["Content-Type"]) as answer:
        assert answer.status == 415


async def test_a_compressed_body_gets_415(served: Served, client: aiohttp.ClientSession) -> None:
    data = gzip.compress(encode(review(deployment())))
    code, _ = await post(client, served.url(MUTATING_PATH), data, {**JSON, "Content-Encoding": "gzip"})
    assert code == 415


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH"])
async def test_other_methods_than_post_get_405(served: Served, client: aiohttp.ClientSession, method: str) -> None:
    async with client.request(method, served.url(MUTATING_PATH), headers=JSON) as answer:
        assert answer.status == 405


async def test_an_unknown_path_gets_404(served: Served, client: aiohttp.ClientSession) -> None:
    async with client.post(served.url("/"), data=b"{}", headers=JSON) as answer:
        assert answer.status == 404


def large(size: int) -> bytes:
    """A review of exactly `size` bytes."""
    obj = deployment()
    obj["metadata"]["annotations"] = {"pad": ""}
    obj["metadata"]["annotations"]["pad"] = "x" * (size - len(encode(review(obj))))
    return encode(review(obj))


async def test_a_review_of_8_mib_is_answered(served: Served, client: aiohttp.ClientSession) -> None:
    assert (await post(client, served.url(MUTATING_PATH), large(MAX_BODY)))[0] == 200


async def test_a_review_above_8_mib_gets_413(served: Served, client: aiohttp.ClientSession) -> None:
    code, answer = await post(client, served.url(MUTATING_PATH), large(MAX_BODY + 1))
    assert code == 413
    assert "8 MiB" in answer["message"]
    assert "failurePolicy is Ignore" in answer["message"]
    assert "records it as ungated and verifies it" in answer["message"]
    assert (await post(client, served.url(MUTATING_PATH), encode(review(deployment()))))[0] == 200


async def test_a_too_large_content_length_gets_413_before_the_body_is_sent(served: Served) -> None:
    reader, writer = await raw(served)
    writer.write(head(f"Content-Length: {MAX_BODY + 1}", "Expect: 100-continue"))
    assert b" 413 " in await reader.readline()
    writer.close()


async def test_a_chunked_body_that_becomes_too_large_gets_413_before_its_end(served: Served) -> None:
    reader, writer = await raw(served)
    writer.write(head("Transfer-Encoding: chunked"))
    answer = asyncio.ensure_future(reader.readline())
    sent = 0
    with contextlib.suppress(ConnectionError):
        while not answer.done() and sent < 4 * MAX_BODY:
            writer.write(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")
            await writer.drain()
            sent += 0x10000
    assert b" 413 " in await answer
    writer.transport.abort()


async def test_a_chunked_body_is_accepted(served: Served, client: aiohttp.ClientSession) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        data = encode(review(deployment()))
        for start in range(0, len(data), 100):
            yield data[start : start + 100]

    assert (await post(client, served.url(MUTATING_PATH), chunks()))[0] == 200


async def test_a_body_that_does_not_arrive_in_time_gets_408(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "_BODY_SECONDS", 0.05)
    reader, writer = await raw(served)
    writer.write(head("Content-Length: 100") + b"{")
    assert b" 408 " in await reader.readline()
    writer.close()


async def test_reviews_are_answered_after_a_caller_disconnected_before_its_body_ended(
    served: Served, client: aiohttp.ClientSession
) -> None:
    for part in (b"", b"{"):
        _, writer = await raw(served)
        writer.write(head("Content-Length: 100") + part)
        await writer.drain()
        writer.transport.abort()
    assert (await post(client, served.url(MUTATING_PATH), encode(review(deployment()))))[0] == 200


class BrokenListers(StaticListers):
    def rolled_back(self, namespace: str, workload: WorkloadRef) -> Sequence[Release]:
        raise ZeroDivisionError("a bug in a handler")


async def test_an_exception_in_a_handler_gives_500_with_a_review_and_is_counted_and_logged(
    tmp_path: Path, client: aiohttp.ClientSession, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(tmp_path, BrokenListers()) as served:
        body = encode(review(released("busybox:2"), released()))
        code, answer = await post(client, served.url(VALIDATING_PATH), body)
        assert code == 500  # the cluster's failurePolicy decides
        response = answer["response"]
        assert (answer["apiVersion"], answer["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
        assert (response["uid"], response["allowed"], response["status"]["code"]) == (UID, False, 500)
        assert "ZeroDivisionError" not in response["status"]["message"]
        exposition = generate_latest(served.metrics.registry).decode()
        assert 'altershield_admission_errors_total{code="500",webhook="vdeployment.kb.io"} 1.0' in exposition
        (logged,) = [record for record in caplog.records if record.levelno == logging.ERROR]
        assert logged.exc_info is not None
        assert (await post(client, served.url(MUTATING_PATH), body))[0] == 200


async def test_each_of_many_concurrent_reviews_gets_its_own_answer(
    served: Served, client: aiohttp.ClientSession
) -> None:
    async def one(number: int) -> None:
        body = review(deployment(f"busybox:{number}"), uid=f"uid-{number}")
        _, answer = await post(client, served.url(MUTATING_PATH), encode(body))
        assert answer["response"]["uid"] == f"uid-{number}"
        assert answer["response"]["auditAnnotations"]["version"] == version_of(deployment(f"busybox:{number}"))

    await asyncio.gather(*map(one, range(200)))


@pytest.mark.parametrize("port", ["tls", "plain"])
async def test_both_ports_serve_health_and_readiness(served: Served, client: aiohttp.ClientSession, port: str) -> None:
    url = served.url if port == "tls" else served.plain_url

    async def get(path: str) -> tuple[int, str]:
        async with client.get(url(path)) as answer:
            return answer.status, await answer.text()

    assert await get("/healthz") == (200, "ok\n")
    assert await get("/readyz") == (200, "ok\n")
    served.unready.append("the cache of changeworkloads is not filled yet")
    assert await get("/readyz") == (503, "the cache of changeworkloads is not filled yet\n")
    assert (await get("/healthz"))[0] == 200
    served.unready.clear()
    served.gatekeeper.drain()
    assert await get("/readyz") == (503, "shutting down\n")


async def test_every_decision_and_refusal_is_counted(served: Served, client: aiohttp.ClientSession) -> None:
    async def metrics() -> str:
        async with client.get(served.plain_url("/metrics")) as answer:
            return await answer.text()

    before = await metrics()
    for series in (
        'requests_total{decision="denied",dry_run="false",operation="UPDATE",reason="suspended",'
        'webhook="vdeployment.kb.io"} 0.0',
        'requests_total{decision="patched",dry_run="true",operation="CREATE",reason="new-version",'
        'webhook="mdeployment.kb.io"} 0.0',
        'errors_total{code="413",webhook="mdeployment.kb.io"} 0.0',
        'duration_seconds_count{webhook="vdeployment.kb.io"} 0.0',
        "in_flight 0.0",
    ):
        assert f"altershield_admission_{series}" in before
    assert "altershield_certificate_expiry_timestamp_seconds 1." in before
    body = review(released("busybox:2", suspend="1"), released(suspend="1"))
    await post(client, served.url(VALIDATING_PATH), encode(body))
    await post(client, served.url(MUTATING_PATH), b"x")
    after = await metrics()
    assert (
        'altershield_admission_requests_total{decision="denied",dry_run="false",operation="UPDATE",reason="suspended",'
        'webhook="vdeployment.kb.io"} 1.0' in after
    )
    assert 'altershield_admission_errors_total{code="400",webhook="mdeployment.kb.io"} 1.0' in after
    assert 'altershield_admission_duration_seconds_count{webhook="vdeployment.kb.io"} 1.0' in after
    assert before.count("\n") == after.count("\n")  # no series comes into being by use


async def test_every_decision_is_logged_in_one_line_without_the_object(
    served: Served, client: aiohttp.ClientSession, capfdbinary: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    body = review(deployment(own={"note": "from-the-object"}), user="jane\n" + "x" * 1000)
    await post(client, served.url(MUTATING_PATH), encode(body))
    served.journal.flush()
    (line,) = capfdbinary.readouterr().err.splitlines()
    logged = json.loads(line)
    assert logged["message"] == "patched"
    assert logged["reason"] == "new-version"
    assert (logged["namespace"], logged["workload"]) == ("default", "deployment/sleep")
    assert logged["version"] == version_of(deployment())
    assert logged["user"].startswith("jane\nx")
    assert len(line) < 1000
    assert b"from-the-object" not in line


@pytest.mark.parametrize(
    ("version", "sent", "connection"),
    [("1.1", "keep-alive", ""), ("1.1", "close", "close"), ("1.0", "keep-alive", "keep-alive"), ("1.0", "close", "")],
)
async def test_response_has_the_header_that_its_connection_needs(
    served: Served, version: str, sent: str, connection: str
) -> None:
    data = encode(review(deployment()))
    asked = head(f"Content-Length: {len(data)}", f"Connection: {sent}").replace(
        b"HTTP/1.1", b"HTTP/" + version.encode()
    )
    reader, writer = await raw(served)
    for _ in range(2 if sent == "keep-alive" else 1):
        writer.write(asked + data)
        status, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().splitlines()
        found = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines if line)}
        answer = json.loads(await reader.readexactly(int(found["content-length"])))
        assert answer["response"]["uid"] == UID
        assert (status, found["content-type"]) == (f"HTTP/{version} 200 OK", "application/json")
        assert abs(parsedate_to_datetime(found["date"]).timestamp() - time.time()) < 5
        assert "server" in found
        assert found.get("connection", "") == connection
    if sent == "close":
        assert await reader.read() == b""
    writer.close()


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1 is deprecated")
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_1, ssl.TLSVersion.TLSv1_2])
async def test_handshakes_with_tls_before_1_3_fail(served: Served, version: ssl.TLSVersion) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = context.maximum_version = version
    with pytest.raises((ssl.SSLError, ConnectionError)):
        await asyncio.open_connection("127.0.0.1", served.tls.port, ssl=context)


async def test_finish_waits_for_requests_in_flight(served: Served) -> None:
    data = encode(review(deployment()))
    reader, writer = await raw(served)
    writer.write(head(f"Content-Length: {len(data)}") + data[:100])
    await writer.drain()

    async def in_flight() -> bool:
        return served.metrics.in_flight > 0

    await until(in_flight)
    port = served.tls.port
    served.gatekeeper.drain()
    await served.tls.refuse_connections()
    finished = asyncio.ensure_future(served.gatekeeper.finish())
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", port)
    assert not finished.done()
    writer.write(data[100:])
    answer = await reader.read()  # to the end: the connection is closed
    assert answer.startswith(b"HTTP/1.1 200")
    assert b"connection: close" in answer.lower()
    await finished


async def test_finish_does_not_wait_for_callers_that_have_disconnected(served: Served) -> None:
    _, writer = await raw(served)
    writer.write(head("Content-Length: 100") + b"{")

    async def in_flight() -> bool:
        return served.metrics.in_flight > 0

    await until(in_flight)
    served.gatekeeper.drain()
    finished = asyncio.ensure_future(served.gatekeeper.finish())
    writer.transport.abort()
    await finished


@pytest.mark.parametrize("chunks", [b"zz\r\n{}\r\n0\r\n\r\n", b"2\r\n{}x\r\n0\r\n\r\n"])
async def test_a_broken_chunk_gets_400(served: Served, chunks: bytes) -> None:
    reader, writer = await raw(served)
    writer.write(head("Transfer-Encoding: chunked") + chunks)
    assert b" 400 " in await reader.readline()
    writer.close()
