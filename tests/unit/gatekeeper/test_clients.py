"""Client certificates: the CA and the common name that clients must have."""

import asyncio
import contextlib
import ssl
from pathlib import Path

import aiohttp
import pytest
from prometheus_client import generate_latest

from altershield.process import listener
from kube_base.pki import Authority

from .reviews import VALIDATING_PATH, deployment, encode, review
from .serving import HOUR, Served, serving, trust

API_SERVERS = Authority.create("api servers", lifetime=HOUR)
HEADERS = {"Content-Type": "application/json"}
OTHERS = Authority.create("others", lifetime=HOUR)


async def ask(served: Served, directory: Path, authority: Authority | None, name: str = "") -> tuple[int, str]:
    """The HTTP status and the body of the answer to a client with a certificate of `authority`, or without one."""
    context = trust()
    if authority is not None:
        pair = authority.issue(name, lifetime=HOUR)
        certificate, key = directory / "client.crt", directory / "client.key"
        certificate.write_bytes(pair.certificate)
        key.write_bytes(pair.key)
        context.load_cert_chain(certificate, key)
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as client,
        client.post(served.url(VALIDATING_PATH), data=encode(review(deployment())), headers=HEADERS) as answer,
    ):
        return answer.status, await answer.text()


def write(file: Path, content: bytes) -> Path:
    file.write_bytes(content)
    return file


@pytest.fixture
def ca_file(tmp_path: Path) -> Path:
    return write(tmp_path / "client-ca.crt", API_SERVERS.pair.certificate)


async def test_any_client_gets_an_answer_without_a_client_ca(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        assert (await ask(served, tmp_path, None))[0] == 200


async def test_only_clients_with_a_certificate_of_the_ca_get_an_answer(tmp_path: Path, ca_file: Path) -> None:
    async with serving(tmp_path, client_ca_file=ca_file) as served:
        assert (await ask(served, tmp_path, API_SERVERS, "anybody"))[0] == 200
        for stranger, alert in ((OTHERS, "ALERT_UNKNOWN_CA"), (None, "ALERT_CERTIFICATE_REQUIRED")):
            with pytest.raises(aiohttp.ClientError, match=alert):
                await ask(served, tmp_path, stranger, "kube-apiserver")


async def test_client_with_another_common_name_is_refused(tmp_path: Path, ca_file: Path) -> None:
    async with serving(tmp_path, client_ca_file=ca_file, client="kube-apiserver") as served:
        assert (await ask(served, tmp_path, API_SERVERS, "kube-apiserver"))[0] == 200
        status, body = await ask(served, tmp_path, API_SERVERS, "kubelet")
        assert status == 403
        assert "reviews are taken from kube-apiserver alone" in body
        assert b'code="403",webhook="vdeployment.kb.io"} 1.0' in generate_latest(served.metrics.registry)


async def test_new_client_ca_is_used_without_a_restart(tmp_path: Path, ca_file: Path) -> None:
    async with serving(tmp_path, client_ca_file=ca_file) as served:
        write(ca_file, OTHERS.pair.certificate)
        served.certificate.reload()
        assert (await ask(served, tmp_path, OTHERS, "kube-apiserver"))[0] == 200
        with pytest.raises(aiohttp.ClientError):
            await ask(served, tmp_path, API_SERVERS, "kube-apiserver")


async def test_invalid_client_ca_leaves_the_previous_ca_in_use(tmp_path: Path, ca_file: Path) -> None:
    async with serving(tmp_path, client_ca_file=ca_file) as served:
        write(ca_file, b"nonsense")
        served.certificate.reload()
        assert (await ask(served, tmp_path, API_SERVERS, "kube-apiserver"))[0] == 200


async def test_no_client_gets_an_answer_before_the_ca_exists(tmp_path: Path) -> None:
    async with serving(tmp_path, client_ca_file=tmp_path / "missing") as served:
        assert served.certificate.unusable
        for authority in (API_SERVERS, None):
            with pytest.raises(aiohttp.ClientError):
                await ask(served, tmp_path, authority, "kube-apiserver")


async def refused_client(served: Served) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection without a client certificate after the alert, which this client ignores."""
    reader, writer = await asyncio.open_connection("127.0.0.1", served.tls.port)
    received, sent = ssl.MemoryBIO(), ssl.MemoryBIO()
    connection = trust().wrap_bio(received, sent, server_hostname="127.0.0.1")
    while True:
        try:
            connection.do_handshake()
            connection.read()
        except ssl.SSLWantReadError:
            writer.write(sent.read())
            received.write(await reader.readexactly(1))
        except ssl.SSLError:
            return reader, writer


async def closed(reader: asyncio.StreamReader) -> None:
    with contextlib.suppress(ConnectionResetError):
        assert await reader.read() == b""


async def test_refused_client_that_stays_is_disconnected(
    tmp_path: Path, ca_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "_HANDSHAKE_SECONDS", 0.5)
    async with serving(tmp_path, client_ca_file=ca_file) as served:
        reader, writer = await refused_client(served)
        await closed(reader)
        writer.close()
        assert served.tls.open == 0


async def test_refused_client_that_sends_more_is_disconnected_at_once(
    tmp_path: Path, ca_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "_HANDSHAKE_SECONDS", 3600.0)
    async with serving(tmp_path, client_ca_file=ca_file) as served:
        reader, writer = await refused_client(served)
        writer.write(b"more")
        await closed(reader)
        writer.close()
