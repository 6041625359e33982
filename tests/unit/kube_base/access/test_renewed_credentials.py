"""Credentials that change while a client runs: certificates, tokens, exec plugins, and responses with 401."""

import asyncio
import datetime
import json
import os
import ssl
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web

from kube_base.access import authentication, configuration
from kube_base.access.client import Client
from kube_base.access.errors import UnauthorizedError, UnreachableError
from kube_base.pki import Authority, KeyPair
from kube_base.resources import PODS

LIFETIME = datetime.timedelta(hours=1)


class Server:
    """An API server over TLS that records the clients, and refuses those in a set."""

    def __init__(self, authority: Authority, directory: Path) -> None:
        self.asked: list[str] = []
        """The name in the client's certificate, or its token."""
        self.refuses: Callable[[str], bool] = lambda _: False
        self.hold: asyncio.Event | None = None
        self.url = ""
        self._directory = directory
        self._authority = authority
        self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=authority.pair.certificate.decode())
        self._context.verify_mode = ssl.CERT_OPTIONAL
        self.certify(authority)

    def certify(self, authority: Authority) -> None:
        """Serve new connections with a certificate that `authority` signs."""
        pair = authority.issue("server", hosts=["127.0.0.1"], lifetime=LIFETIME)
        self._context.load_cert_chain(*files(self._directory / "server", pair))

    @asynccontextmanager
    async def run(self) -> AsyncIterator["Server"]:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._handle)
        runner = web.AppRunner(app, shutdown_timeout=0, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=self._context).start()
        self.url = f"https://127.0.0.1:{runner.addresses[0][1]}"
        try:
            yield self
        finally:
            await runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        peer = request.transport.get_extra_info("peercert")
        names = dict(pair[0] for pair in peer["subject"]) if peer else {}
        who = names.get("commonName") or request.headers.get("Authorization", "").removeprefix("Bearer ")
        self.asked.append(who)
        if self.hold is not None and request.path.endswith("/held"):
            await self.hold.wait()
        if self.refuses(who):
            return web.json_response({"kind": "Status", "code": 401, "reason": "Unauthorized"}, status=401)
        return web.json_response({"metadata": {"name": "a"}})


def files(stem: Path, pair: KeyPair) -> tuple[Path, Path]:
    """The pair as files, which are replaced atomically as by the kubelet."""
    places = stem.with_suffix(".crt"), stem.with_suffix(".key")
    for place, data in zip(places, (pair.certificate, pair.key), strict=True):
        put(place, data)
    return places


def put(place: Path, data: bytes) -> None:
    new = place.with_name(place.name + ".new")
    new.write_bytes(data)
    os.replace(new, place)


@pytest.fixture
def authority() -> Authority:
    return Authority.create("one", lifetime=LIFETIME)


@pytest.fixture
async def server(authority: Authority, tmp_path: Path) -> AsyncIterator[Server]:
    put(tmp_path / "ca.crt", authority.pair.certificate)
    async with Server(authority, tmp_path).run() as running:
        yield running


class Later:
    """Advances the loop's clock, so that files are checked again and the interval after a 401 is over."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._loop = asyncio.get_running_loop()
        self._ahead = 0.0
        clock = self._loop.time
        monkeypatch.setattr(self._loop, "time", lambda: clock() + self._ahead)

    def by(self, seconds: float) -> None:
        self._ahead += seconds


@pytest.fixture
async def later(monkeypatch: pytest.MonkeyPatch) -> Later:
    return Later(monkeypatch)


def config(server: Server, directory: Path, user: dict[str, Any]) -> str:
    path, cluster = directory / "config", {"server": server.url, "certificate-authority": str(directory / "ca.crt")}
    path.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "one", "cluster": cluster}],
                "users": [{"name": "one", "user": user}],
                "contexts": [{"name": "one", "context": {"cluster": "one", "user": "one"}}],
                "current-context": "one",
            }
        )
    )
    return str(path)


def certified(directory: Path) -> dict[str, str]:
    return {"client-certificate": str(directory / "client.crt"), "client-key": str(directory / "client.key")}


async def ask(client: Client, name: str = "a") -> None:
    await client.get(PODS, name, "shop")


async def test_new_client_certificate_is_used_and_requests_in_flight_end_with_the_old_one(
    server: Server, authority: Authority, tmp_path: Path, later: Later
) -> None:
    files(tmp_path / "client", authority.issue("first", lifetime=LIFETIME))
    server.hold = asyncio.Event()
    async with await Client.connect(config(server, tmp_path, certified(tmp_path))) as client:
        waiting = asyncio.create_task(ask(client, "held"))
        await ask(client)
        files(tmp_path / "client", authority.issue("second", lifetime=LIFETIME))
        await ask(client)
        later.by(6)
        await ask(client)
        await ask(client)
        server.hold.set()
        await waiting
    assert server.asked == ["first", "first", "first", "second", "second"]


async def test_new_ca_is_trusted_when_it_is_in_the_file(
    server: Server, tmp_path: Path, later: Later, authority: Authority
) -> None:
    path = config(server, tmp_path, {"token": "t"})
    async with await Client.connect(path) as client:
        await ask(client)
    other = Authority.create("two", lifetime=LIFETIME)
    async with await Client.connect(path) as client, client.with_own_connections() as apart:
        server.certify(other)
        with pytest.raises(UnreachableError, match="certificate"):
            await ask(client)
        put(tmp_path / "ca.crt", authority.pair.certificate + other.pair.certificate)
        later.by(6)
        await ask(client)
        await ask(apart)


async def test_certificate_that_does_not_match_its_key_is_read_again_later(
    server: Server, authority: Authority, tmp_path: Path, later: Later, caplog: pytest.LogCaptureFixture
) -> None:
    files(tmp_path / "client", authority.issue("first", lifetime=LIFETIME))
    async with await Client.connect(config(server, tmp_path, certified(tmp_path))) as client:
        second = authority.issue("second", lifetime=LIFETIME)
        put(tmp_path / "client.crt", second.certificate)
        later.by(6)
        await ask(client)
        assert "changed certificates cannot be used yet" in caplog.messages
        put(tmp_path / "client.key", second.key)
        later.by(6)
        await ask(client)
    assert server.asked == ["first", "second"]


async def test_files_are_not_checked_for_every_request(
    server: Server, authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0
    stamp = authentication._stamp

    def counted(paths: list[str]) -> Any:
        nonlocal looks
        looks += 1
        return stamp(paths)

    files(tmp_path / "client", authority.issue("first", lifetime=LIFETIME))
    async with await Client.connect(config(server, tmp_path, certified(tmp_path))) as client:
        monkeypatch.setattr(authentication, "_stamp", counted)
        for _ in range(5):
            await asyncio.gather(*(ask(client) for _ in range(20)))
        assert looks <= 2


async def test_refused_token_is_read_again_and_the_request_is_sent_once_more(server: Server, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("old")
    async with await Client.connect(config(server, tmp_path, {"tokenFile": str(token)})) as client:
        token.write_text("new")
        server.refuses = lambda who: who == "old"
        await client.create(PODS, {"metadata": {"name": "a"}}, "shop")
        assert server.asked == ["old", "new"]
        assert client.errors["401"] == 0


async def test_refused_token_of_a_service_account_is_read_again(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = tmp_path / "token"
    token.write_text("old")
    monkeypatch.setattr(configuration, "SERVICE_ACCOUNT", tmp_path)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", server.url.rpartition(":")[2])
    async with await Client.connect() as client:
        await ask(client)
        token.write_text("new")
        server.refuses = lambda who: who == "old"
        await ask(client)
    assert server.asked == ["old", "old", "new"]


async def test_many_refused_requests_read_the_credentials_once(server: Server, tmp_path: Path) -> None:
    calls, user = plugin(tmp_path, lambda number: {"token": f"token-{number}"})
    async with await Client.connect(config(server, tmp_path, user)) as client:
        server.refuses = lambda who: who == "token-1"
        await asyncio.gather(*(ask(client) for _ in range(50)))
    assert calls() == 2


@pytest.mark.parametrize("changing", [False, True])
async def test_continuous_refusals_run_the_exec_plugin_rarely(
    server: Server, tmp_path: Path, changing: bool, later: Later
) -> None:
    calls, user = plugin(tmp_path, lambda number: {"token": f"token-{number if changing else 0}"})
    server.refuses = lambda _: True
    async with await Client.connect(config(server, tmp_path, user)) as client:
        for _ in range(30):
            with pytest.raises(UnauthorizedError):
                await ask(client)
        assert calls() == 2
        for _ in range(30):
            later.by(20)
            with pytest.raises(UnauthorizedError):
                await ask(client)
        assert 3 <= calls() <= 7
    assert len(server.asked) <= 60 + 7  # one retry for each renewal


def plugin(
    directory: Path, statuses: Callable[[int], dict[str, Any]], most: int = 12
) -> tuple[Callable[[], int], dict[str, Any]]:
    """An exec plugin and how often it was called; the n-th call (from 1) answers with the n-th status."""
    answers = directory / "answers.json"
    answers.write_text(json.dumps([statuses(number) for number in range(1, most + 1)]))
    calls = directory / "calls"
    script = directory / "plugin.py"
    script.write_text(
        "import json, pathlib\n"
        f"calls = pathlib.Path({str(calls)!r})\n"
        "calls.write_text(calls.read_text() + 'x' if calls.exists() else 'x')\n"
        f"status = json.loads(pathlib.Path({str(answers)!r}).read_text())[len(calls.read_text()) - 1]\n"
        "print(json.dumps({'apiVersion': 'client.authentication.k8s.io/v1', 'kind': 'ExecCredential', "
        "'status': status}))\n"
    )
    user = {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": sys.executable,
            "args": [str(script)],
            "interactiveMode": "Never",
        }
    }
    return (lambda: len(calls.read_text())), user


def expiring(pair: KeyPair, seconds: float, **more: str) -> dict[str, str]:
    expiry = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=seconds)
    return {
        "clientCertificateData": pair.certificate.decode(),
        "clientKeyData": pair.key.decode(),
        "expirationTimestamp": expiry.strftime("%Y-%m-%dT%H:%M:%SZ"),
        **more,
    }


async def test_certificate_of_an_exec_plugin_is_renewed_before_it_expires(
    server: Server, authority: Authority, tmp_path: Path
) -> None:
    calls, user = plugin(
        tmp_path,
        lambda number: expiring(authority.issue(f"client-{number}", lifetime=LIFETIME), 60 if number < 2 else 3600),
        most=3,
    )
    async with await Client.connect(config(server, tmp_path, user)) as client:
        await ask(client)
        await ask(client)
    assert server.asked == ["client-2"] * 2
    assert calls() == 2


async def test_certificate_of_an_exec_plugin_is_renewed_when_it_is_refused(
    server: Server, authority: Authority, tmp_path: Path
) -> None:
    _, user = plugin(
        tmp_path, lambda number: expiring(authority.issue(f"client-{number}", lifetime=LIFETIME), 3600), most=3
    )
    async with await Client.connect(config(server, tmp_path, user)) as client:
        server.refuses = lambda who: who == "client-1"
        await ask(client)
    assert server.asked == ["client-1", "client-2"]


async def test_keys_of_an_exec_plugin_leave_no_files(
    server: Server, authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "tmp"
    place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    _, user = plugin(tmp_path, lambda _: expiring(authority.issue("client", lifetime=LIFETIME), 3600), most=1)
    async with await Client.connect(config(server, tmp_path, user)) as client:
        await ask(client)
        assert list(place.iterdir()) == []


async def test_failed_renewal_by_an_exec_plugin_raises_the_401(server: Server, tmp_path: Path) -> None:
    _, user = plugin(tmp_path, lambda _: {"token": "only"}, most=1)
    async with await Client.connect(config(server, tmp_path, user)) as client:
        server.refuses = lambda _: True
        with pytest.raises(UnauthorizedError):
            await ask(client)
