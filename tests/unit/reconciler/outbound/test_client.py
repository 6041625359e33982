"""The client for tenants' URLs, with real servers on loopback."""

import asyncio
import contextlib
import datetime
import gzip
import ssl
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path

import pytest
from aiohttp import web

from kube_base.pki import Authority
from reconciler.outbound import outbound_client as module
from reconciler.outbound.credentials import Credentials
from reconciler.outbound.outbound_client import ApiServer, Outbound, Reply, api_servers
from reconciler.outbound.outbound_errors import NoAnswerError, NotDeliveredError, UrlNotAllowedError
from reconciler.outbound.secrets import _context
from reconciler.outbound.urls import allowed_hosts
from tests.support.polling import HANG, until

LOCAL = allowed_hosts(["127.0.0.1", "localhost", "*.svc"])
DAY = datetime.timedelta(days=1)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@contextlib.asynccontextmanager
async def serving(handler: Handler, context: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """The port of a server."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app, shutdown_timeout=0, handler_cancellation=True, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


@contextlib.asynccontextmanager
async def speaking(answer: bytes, *, endless: bytes = b"") -> AsyncIterator[int]:
    """The port of a server that answers each connection with these bytes, and then with `endless` for ever."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(answer)
            while endless:
                writer.write(endless)
                await writer.drain()
            await writer.drain()
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def echo(request: web.Request) -> web.StreamResponse:
    return web.json_response({"headers": dict(request.headers), "body": (await request.read()).decode()})


def resolving(*answers: Sequence[str]) -> tuple[Callable[[str, int], Sequence[str]], list[str]]:
    """A lookup that returns the next of `answers` each time (the last one again and again), and the names it saw."""
    names: list[str] = []
    left = list(answers)

    def lookup(host: str, _port: int) -> Sequence[str]:
        names.append(host)
        return left.pop(0) if len(left) > 1 else left[0]

    return lookup, names


async def test_request_returns_status_headers_and_body() -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        assert request.path_qs == "/verify%2Fx?a=%41&b"
        assert request.headers["X-Phase"] == "Post"
        return web.Response(body=await request.read(), status=503, headers={"X-Seen": "1"})

    async with serving(handler) as port, Outbound(LOCAL) as outbound:
        url = f"http://127.0.0.1:{port}/verify%2Fx?a=%41&b"
        reply = await outbound.request("POST", url, headers={"X-Phase": "Post"}, body=b"{}")
    assert (reply.status, reply.headers["x-seen"], reply.body) == (503, "1", b"{}")


async def test_request_carries_nothing_of_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login us password ours\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    seen: list[web.Request] = []

    async def handler(request: web.Request) -> web.StreamResponse:
        seen.append(request)
        return web.Response(headers={"Set-Cookie": "session=1; Path=/"})

    async with serving(handler) as port, Outbound(LOCAL) as outbound:
        for _ in range(2):
            await outbound.request("GET", f"http://127.0.0.1:{port}/")
    for request in seen:
        assert set(request.headers) == {"Host", "Accept", "Accept-Encoding", "User-Agent", "Connection"}
        assert request.headers["User-Agent"] == "altershield"


async def test_redirect_is_an_answer_and_not_followed() -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        assert request.path == "/"
        raise web.HTTPFound("http://169.254.169.254/latest/meta-data")

    async with serving(handler) as port, Outbound(LOCAL) as outbound:
        assert (await outbound.request("GET", f"http://127.0.0.1:{port}/")).status == 302


async def refused(outbound: Outbound, url: str) -> str:
    with pytest.raises(UrlNotAllowedError) as caught:
        await outbound.request("GET", url)
    return str(caught.value)


@pytest.mark.parametrize(
    "addresses",
    [
        ["169.254.169.254"],
        ["10.0.0.1", "127.0.0.1"],
        ["::ffff:127.0.0.1"],
        ["::1"],
        ["0.0.0.0"],  # noqa: S104
        ["fe80::1"],
        ["64:ff9b::a9fe:a9fe"],
    ],
)
async def test_allowed_name_with_a_forbidden_address_is_refused_before_a_connection(addresses: list[str]) -> None:
    lookup, _ = resolving(addresses)
    async with Outbound(LOCAL, lookup=lookup) as outbound:
        assert "which is not called for a check" in await refused(outbound, "http://hooks.shop.svc/?token=secret")


async def test_name_that_resolves_to_another_address_later_is_looked_up_once_per_request_and_refused() -> None:
    """DNS rebinding. The client connects to the addresses that it has checked. The next request checks again."""
    lookup, names = resolving(["127.0.0.1"], ["169.254.169.254"])
    async with serving(echo) as port, Outbound(allowed_hosts(["localhost"]), lookup=lookup) as outbound:
        url = f"http://localhost:{port}/"
        assert (await outbound.request("GET", url)).status == 200
        assert names == ["localhost"]
        assert "metadata service" in await refused(outbound, url)


async def test_loopback_is_reached_by_no_other_name() -> None:
    lookup, _ = resolving(["127.0.0.1"])
    async with serving(echo) as port, Outbound(LOCAL, lookup=lookup) as outbound:
        assert "a loopback address (127.0.0.1)" in await refused(outbound, f"http://hooks.shop.svc:{port}/")


@pytest.mark.parametrize("url", ["http://[::ffff:127.0.0.1]", "http://[::ffff:169.254.169.254]", "http://0.0.0.0"])
async def test_literal_addresses_in_other_forms_are_refused_even_if_all_are_allowed(url: str) -> None:
    async with Outbound(allowed_hosts(["*", "0.0.0.0/0", "::/0"])) as outbound:
        assert "not called for a check" in await refused(outbound, url)


async def test_api_server_is_refused_by_address_and_by_name() -> None:
    lookup, _ = resolving(["10.96.0.1"])
    api = api_servers("10.96.0.1", url="https://api.example.com:6443")
    async with Outbound(allowed_hosts(["*", "10.0.0.0/8"]), api, lookup) as outbound:
        for url in ("https://10.96.0.1", "https://10.96.0.1:8080", "http://hooks.shop.svc", "https://api.example.com"):
            assert "is the API server" in await refused(outbound, url)


async def test_api_server_on_loopback_is_refused_with_its_port_only() -> None:
    assert api_servers(url="https://127.0.0.1:6443") == {ApiServer("127.0.0.1", 6443)}
    assert api_servers("", url="https://[FD00::1]:6443") == {ApiServer("fd00::1", None)}
    async with (
        serving(echo) as port,
        serving(echo) as api_port,
        Outbound(LOCAL, api_servers(url=f"http://127.0.0.1:{api_port}")) as outbound,
    ):
        assert (await outbound.request("GET", f"http://127.0.0.1:{port}")).status == 200
        for host in ("127.0.0.1", "localhost"):
            assert "is the API server" in await refused(outbound, f"http://{host}:{api_port}")


async def not_delivered(outbound: Outbound, url: str, **options: float) -> str:
    with pytest.raises(NotDeliveredError) as caught:
        await outbound.request("POST", url, **options)  # type: ignore[arg-type]
    return str(caught.value)


async def no_answer(outbound: Outbound, port: int, **options: float) -> str:
    with pytest.raises(NoAnswerError) as caught:
        await outbound.request("POST", f"http://127.0.0.1:{port}/?token=secret", **options)  # type: ignore[arg-type]
    assert "secret" not in str(caught.value)
    assert f"127.0.0.1:{port}" in str(caught.value)
    return str(caught.value)


async def test_name_without_an_address_and_a_closed_port_are_not_delivered() -> None:
    def lookup(_host: str, _port: int) -> Sequence[str]:
        raise OSError("Name or service not known")

    async with speaking(b"") as port:
        pass
    async with Outbound(LOCAL, lookup=lookup) as outbound:
        assert "Name or service not known" in await not_delivered(outbound, "http://hooks.shop.svc/?token=secret")
        message = await not_delivered(outbound, f"http://127.0.0.1:{port}/?token=secret")
    assert f"127.0.0.1:{port}" in message
    assert "secret" not in message


async def test_lookup_that_hangs_ends_with_the_timeout_and_is_not_delivered() -> None:
    release = asyncio.Event()
    loop = asyncio.get_running_loop()

    def lookup(_host: str, _port: int) -> Sequence[str]:
        asyncio.run_coroutine_threadsafe(release.wait(), loop).result()
        return []

    async with Outbound(LOCAL, lookup=lookup) as outbound:
        assert "in time" in await not_delivered(outbound, "http://hooks.shop.svc/", timeout=0.1)
        release.set()


async def test_tls_failure_is_not_delivered() -> None:
    pair = Authority.create("other", lifetime=DAY).issue("x", hosts=["127.0.0.1"], lifetime=DAY)
    async with serving(echo, _server_context(pair.certificate, pair.key)) as port, Outbound(LOCAL) as outbound:
        assert "certificate" in await not_delivered(outbound, f"https://127.0.0.1:{port}/")


@pytest.mark.looptime
async def test_silent_server_has_no_answer_within_the_timeout() -> None:
    async def handler(_request: web.Request) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    async with serving(handler) as port, Outbound(LOCAL) as outbound:
        assert "within 0.2 s" in await no_answer(outbound, port, timeout=0.2)


@pytest.mark.looptime
async def test_answer_that_is_sent_slowly_ends_with_the_timeout() -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b"x")
            await asyncio.sleep(0.01)

    async with serving(handler) as port, Outbound(LOCAL) as outbound:
        assert "within 0.3 s" in await no_answer(outbound, port, timeout=0.3)


async def test_answer_is_bounded_in_bytes() -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        return web.Response(body=b"x" * int(request.query["n"]))

    async with serving(handler) as port, Outbound(LOCAL) as outbound:
        url = f"http://127.0.0.1:{port}/?n="
        assert len((await outbound.request("GET", f"{url}65536")).body) == 65536
        with pytest.raises(NoAnswerError, match="longer than 65536 bytes"):
            await outbound.request("GET", f"{url}65537")
        assert len((await outbound.request("GET", f"{url}100000", limit=2**20)).body) == 100_000


async def test_endless_answer_is_cut() -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    async with speaking(head, endless=b"1000\r\n" + b"x" * 4096 + b"\r\n") as port, Outbound(LOCAL) as outbound:
        assert "longer than" in await no_answer(outbound, port)


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nX-Long: " + b"x" * 9000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"".join(b"X-%d: 1\r\n" % number for number in range(2000)) + b"\r\n",
        b"HTTP/1.1 200 " + b"x" * 9000 + b"\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ],
)
async def test_answer_that_is_no_http_or_has_too_many_headers_is_no_answer(answer: bytes) -> None:
    async with speaking(answer) as port, Outbound(LOCAL) as outbound:
        assert len(await no_answer(outbound, port)) < 600


async def test_endless_headers_end_with_an_error() -> None:
    async with speaking(b"HTTP/1.1 200 OK\r\n", endless=b"X-A: 1\r\n" * 64) as port, Outbound(LOCAL) as outbound:
        await no_answer(outbound, port)


async def test_compressed_answer_is_not_expanded() -> None:
    content = gzip.compress(b"\0" * 10_000_000)

    async def handler(request: web.Request) -> web.StreamResponse:
        assert request.headers["Accept-Encoding"] == "identity"
        return web.Response(body=content, headers={"Content-Encoding": "gzip"})

    async with serving(handler) as port, Outbound(LOCAL) as outbound:
        assert (await outbound.request("GET", f"http://127.0.0.1:{port}/")).body == content


async def test_requests_are_bounded_per_host_and_in_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_AT_ONCE_PER_HOST", 2)
    monkeypatch.setattr(module, "_AT_ONCE", 3)
    open_, most = 0, 0
    free = asyncio.Event()

    async def handler(_request: web.Request) -> web.StreamResponse:
        nonlocal open_, most
        open_ += 1
        most = max(most, open_)
        await free.wait()
        open_ -= 1
        return web.Response()

    async with serving(handler) as port, Outbound(LOCAL) as outbound:
        calls: list[asyncio.Task[Reply]] = []
        for host, wanted in (("127.0.0.1", 2), ("localhost", 3)):
            url = f"http://{host}:{port}/"
            calls += [asyncio.create_task(outbound.request("GET", url, timeout=HANG)) for _ in range(4)]
            await until(lambda number=wanted: open_ == number, f"{wanted} requests")  # type: ignore[misc]
        assert "in time" in await not_delivered(outbound, f"http://127.0.0.1:{port}/", timeout=0.1)
        free.set()
        await asyncio.gather(*calls)
        assert most == 3
        assert outbound._hosts == {}


async def test_authorization_and_client_certificate_are_those_of_the_credentials() -> None:
    authority = Authority.create("tenant", lifetime=DAY)
    server = authority.issue("server", hosts=["127.0.0.1"], lifetime=DAY)
    person = authority.issue("client", hosts=["client"], lifetime=DAY)
    context = _server_context(server.certificate, server.key)
    context.load_verify_locations(cadata=authority.pair.certificate.decode())
    context.verify_mode = ssl.CERT_REQUIRED
    authorities = {"ca.crt": authority.pair.certificate}
    with_pair = _context("x", {**authorities, "tls.crt": person.certificate, "tls.key": person.key})
    async with serving(echo, context) as port, Outbound(LOCAL) as outbound:
        url = f"https://127.0.0.1:{port}/"
        reply = await outbound.request("GET", url, credentials=Credentials("Bearer x", context=with_pair))
        assert b'"Authorization": "Bearer x"' in reply.body
        with pytest.raises((NotDeliveredError, NoAnswerError)):  # TLS 1.3 refuses a client after its request
            await outbound.request("GET", url, credentials=Credentials(context=_context("x", authorities)))
    assert "Bearer" not in repr(Credentials("Bearer x", b"key"))


async def test_reply_is_not_changed_by_a_status_that_is_unusual() -> None:
    async with speaking(b"HTTP/1.1 299 Odd\r\nContent-Length: 2\r\n\r\nok") as port, Outbound(LOCAL) as outbound:
        reply = await outbound.request("GET", f"http://127.0.0.1:{port}/")
    assert isinstance(reply, Reply)
    assert (reply.status, reply.body) == (299, b"ok")


def _server_context(certificate: bytes, key: bytes) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    with tempfile.NamedTemporaryFile() as file:
        file.write(certificate + key)
        file.flush()
        context.load_cert_chain(file.name)
    return context
