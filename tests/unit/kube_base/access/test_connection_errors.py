"""What an error says if the API server does not answer."""

import asyncio
import errno
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import aiohttp
import pytest
import yaml

from kube_base.access.client import Client
from kube_base.access.configuration import Configuration
from kube_base.access.connection_errors import unreachable
from kube_base.access.errors import UnreachableError
from kube_base.pki import Authority
from kube_base.resources import PODS

Connected = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def said(configuration: Configuration) -> str:
    async with Client(configuration) as client:
        with pytest.raises(UnreachableError) as raised:
            await client.get(PODS, "web-1", "shop")
    return str(raised.value)


@asynccontextmanager
async def listening(connected: Connected, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def closes(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.close()


async def test_refused_connection_names_the_server_and_the_context() -> None:
    assert await said(Configuration("http://127.0.0.1:1", context="prod")) == (
        "cannot reach the API server at http://127.0.0.1:1: connection refused; check the kubeconfig's context prod"
    )


async def test_without_a_kubeconfig_the_error_names_no_context() -> None:
    assert await said(Configuration("http://127.0.0.1:1")) == (
        "cannot reach the API server at http://127.0.0.1:1: connection refused"
    )


async def test_unknown_name_of_a_server_is_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    assert await said(Configuration("https://api.example.com:6443", context="prod")) == (
        "cannot reach the API server at https://api.example.com:6443: name api.example.com not found; "
        "check the kubeconfig's context prod"
    )


async def test_certificate_of_an_unknown_authority_is_not_accepted(tmp_path: Path) -> None:
    pair = Authority.create("other", lifetime=timedelta(days=1)).issue(
        "server", hosts=["127.0.0.1"], lifetime=timedelta(days=1)
    )
    (file := tmp_path / "pair.pem").write_bytes(pair.certificate + pair.key)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(file)
    async with listening(closes, tls) as port:
        server = f"https://127.0.0.1:{port}"
        assert await said(Configuration(server, context="prod")) == (
            f"cannot reach the API server at {server}: certificate not accepted: unable to get local issuer "
            "certificate; check the kubeconfig's context prod"
        )


async def test_server_without_tls_is_a_failure_of_tls() -> None:
    async def answers(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with listening(answers) as port:
        found = await said(Configuration(f"https://127.0.0.1:{port}"))
        assert found.startswith(f"cannot reach the API server at https://127.0.0.1:{port}: TLS failed: ")


async def test_closed_connection_names_the_request() -> None:
    async def reads(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.close()

    async with listening(reads) as port:
        assert await said(Configuration(f"http://127.0.0.1:{port}", context="prod")) == (
            f"no response from the API server at http://127.0.0.1:{port} to GET /api/v1/namespaces/shop/pods/web-1: "
            "the connection was closed"
        )


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (aiohttp.ConnectionTimeoutError("Connection timeout to host https://a"), "cannot reach {}: timeout"),
        (TimeoutError(), "no response from {} to GET /x: timeout"),
        (aiohttp.SocketTimeoutError("Timeout on reading data from socket"), "no response from {} to GET /x: timeout"),
        (aiohttp.ClientOSError(errno.ECONNRESET, "x"), "no response from {} to GET /x: connection reset by peer"),
        (aiohttp.ClientPayloadError("not completed"), "no response from {} to GET /x: the connection was closed"),
    ],
)  # fmt: skip
def test_error_without_words_of_python(error: Exception, expected: str) -> None:
    found = unreachable(error, Configuration("https://a"), "GET", "/x")
    assert str(found) == expected.format("the API server at https://a")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (OSError("Multiple exceptions: [Errno 111] Connect call failed ('::1', 1, 0, 0), [Errno 111] Connect call "
                 "failed ('127.0.0.1', 1)"), "connection refused"),
        (OSError("Multiple exceptions: [Errno 111] Connect call failed ('::1', 1, 0, 0), [Errno 113] Connect call "
                 "failed ('10.0.0.1', 1)"), "connection refused or no route to host"),
        (OSError(errno.EHOSTUNREACH, "Connect call failed ('10.0.0.1', 1)"), "no route to host"),
    ],
)  # fmt: skip
def test_server_with_several_addresses_gives_each_reason_once(error: OSError, expected: str) -> None:
    key = aiohttp.client_reqrep.ConnectionKey("a", 1, False, True, None, None, None)
    found = unreachable(aiohttp.ClientConnectorError(key, error), Configuration("https://a"), "GET", "/x")
    assert str(found) == f"cannot reach the API server at https://a: {expected}"


@pytest.mark.parametrize("more", [{}, {"as": "ann"}], ids=["plain", "library"])
@pytest.mark.parametrize("context", [None, "two"])
async def test_context_is_that_of_the_kubeconfig_or_of_the_option(
    tmp_path: Path, context: str | None, more: dict[str, str]
) -> None:
    config = {
        "apiVersion": "v1", "kind": "Config", "current-context": "one",
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {"token": "t", **more}}],
        "contexts": [{"name": name, "context": {"cluster": "c", "user": "u"}} for name in ("one", "two")],
    }  # fmt: skip
    (file := tmp_path / "kubeconfig").write_text(yaml.safe_dump(config))
    async with await Client.connect(str(file), context=context) as client:
        assert client.configuration.context == (context or "one")
