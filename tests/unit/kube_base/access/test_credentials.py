"""Kubeconfigs and service accounts, read as kubectl reads them."""

import asyncio
import base64
import datetime
import ipaddress
import json
import os
import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from kube_base.access import configuration, credentials
from kube_base.access.client import Client
from kube_base.access.configuration import Configuration
from kube_base.access.errors import UnreachableError
from kube_base.errors import UsageError
from kube_base.resources import PODS

SECRET = "do-not-tell"


def kubeconfig(
    name: str = "one", server: str = "http://127.0.0.1:1", *, current: bool = True, user: Any = None, **cluster: Any
) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": server, **cluster}}],
        "users": [{"name": name, "user": {"token": SECRET} if user is None else user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        **({"current-context": name} if current else {}),
    }


def write(path: Path, config: Any) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(config if isinstance(config, str) else yaml.safe_dump(config))
    return str(path)


@dataclass
class Server:
    """The credentials that an API server received."""

    url: str
    tokens: list[str | None]
    subjects: list[str]
    impersonation: list[tuple[str, str]]
    """The headers of the last request that impersonate a user."""


@asynccontextmanager
async def server(tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    seen = Server("", [], [], [])

    async def handle(request: web.Request) -> web.Response:
        seen.tokens.append(request.headers.get("Authorization"))
        seen.impersonation = [header for header in request.headers.items() if header[0].startswith("Impersonate-")]
        assert request.transport is not None
        peer = request.transport.get_extra_info("peercert")
        if peer:
            seen.subjects.append(dict(pair[0] for pair in peer["subject"])["commonName"])
        return web.json_response({"metadata": {"name": "a"}})

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handle)
    runner = web.AppRunner(app, shutdown_timeout=0, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
    seen.url = f"http{'s' if tls else ''}://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield seen
    finally:
        await runner.cleanup()


async def ask(config: str | None, context: str | None = None) -> None:
    async with await Client.connect(config, context=context) as client:
        await client.get(PODS, "a", "shop")


async def token_of(config: str | None, seen: Server, context: str | None = None) -> str | None:
    await ask(config, context)
    return seen.tokens[-1]


class Authority:
    """A CA without the extensions that strict verification requires, as in old clusters."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "old-cluster")])
        self.certificate = (
            self._builder(self.name, self.key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=False)
            .sign(self.key, hashes.SHA256())
        )
        self.file = directory / "ca.crt"
        self.file.write_bytes(self.pem)

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    def issue(self, common_name: str, *names: x509.GeneralName) -> tuple[Path, Path]:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
        builder = self._builder(subject, key.public_key())
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        certificate, private = self.directory / f"{common_name}.crt", self.directory / f"{common_name}.key"
        certificate.write_bytes(builder.sign(self.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
        private.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return certificate, private

    def server_context(self, *names: x509.GeneralName) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(self.file))
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        context.verify_mode = ssl.CERT_OPTIONAL
        context.load_cert_chain(*self.issue("server", *names))
        return context

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self.name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(minutes=5))
            .not_valid_after(now + datetime.timedelta(hours=1))
        )


LOOPBACK = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture(autouse=True)
def nothing_by_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("KUBECONFIG", raising=False)


async def test_token_of_the_kubeconfig_is_sent(tmp_path: Path) -> None:
    async with server() as seen:
        assert await token_of(write(tmp_path / "c", kubeconfig(server=seen.url)), seen) == f"Bearer {SECRET}"


async def test_as_fields_of_the_user_impersonate_another_user_as_in_kubectl(tmp_path: Path) -> None:
    async with server() as seen:
        user = {"token": SECRET, "as": "jane", "as-uid": "7", "as-groups": ["sre", "dev"]}
        user["as-user-extra"] = {"example.com/scope": ["view", "edit"]}
        assert await token_of(write(tmp_path / "c", kubeconfig(server=seen.url, user=user)), seen) == f"Bearer {SECRET}"
        assert seen.impersonation == [
            ("Impersonate-User", "jane"),
            ("Impersonate-Uid", "7"),
            ("Impersonate-Group", "sre"),
            ("Impersonate-Group", "dev"),
            ("Impersonate-Extra-example.com%2Fscope", "view"),
            ("Impersonate-Extra-example.com%2Fscope", "edit"),
        ]
        await ask(write(tmp_path / "c", kubeconfig(server=seen.url)))
        assert seen.impersonation == []


async def test_impersonated_groups_without_a_user_are_a_usage_error(tmp_path: Path) -> None:
    user = {"token": SECRET, "as-groups": ["sre"]}
    with pytest.raises(UsageError, match="but not the field `as`"):
        await ask(write(tmp_path / "c", kubeconfig(user=user)))


async def test_default_kubeconfig_is_in_the_home_directory(tmp_path: Path) -> None:
    async with server() as seen:
        write(tmp_path / "home" / ".kube" / "config", kubeconfig(server=seen.url))
        assert await token_of(None, seen) == f"Bearer {SECRET}"


@pytest.mark.parametrize("order", [("one", "two"), ("two", "one")])
async def test_first_current_context_of_several_files_counts(
    order: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with server() as seen:
        for name in ("one", "two"):
            write(tmp_path / name, kubeconfig(name, seen.url, user={"token": name}))
        paths = [str(tmp_path / name) for name in (order[0], "missing", order[1])]
        monkeypatch.setenv("KUBECONFIG", ":".join(paths))
        assert await token_of(None, seen) == f"Bearer {order[0]}"
        assert await token_of(None, seen, context=order[1]) == f"Bearer {order[1]}"


async def test_file_without_current_context_leaves_it_to_the_next_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with server() as seen:
        first = write(tmp_path / "one", kubeconfig("one", seen.url, current=False))
        second = write(tmp_path / "two", kubeconfig("two", seen.url, user={"token": "two"}))
        monkeypatch.setenv("KUBECONFIG", f"{first}:{second}")
        assert await token_of(None, seen) == "Bearer two"


async def test_relative_paths_are_relative_to_the_kubeconfig(authority: Authority, tmp_path: Path) -> None:
    authority.issue("jane")
    (tmp_path / "token").write_text("from-a-file\n")
    async with server(authority.server_context(LOOPBACK)) as seen:
        user = {"client-certificate": "jane.crt", "client-key": "jane.key", "tokenFile": "token"}
        config = kubeconfig(server=seen.url, user=user, **{"certificate-authority": "ca.crt"})
        assert await token_of(write(tmp_path / "config", config), seen) == "Bearer from-a-file"
        assert seen.subjects == ["jane"]


async def test_kubeconfig_may_contain_the_certificates_which_are_in_no_temporary_file(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    certificate, key = authority.issue("jane")
    async with server(authority.server_context(LOOPBACK)) as seen:
        user = {
            "client-certificate-data": base64.b64encode(certificate.read_bytes()).decode(),
            "client-key-data": base64.b64encode(key.read_bytes()).decode(),
        }
        data = base64.b64encode(authority.pem).decode()
        config = kubeconfig(server=seen.url, user=user, **{"certificate-authority-data": data})
        path = write(tmp_path / "config", config)
        assert await token_of(path, seen) is None
        assert await token_of(path, seen) is None
        assert seen.subjects == ["jane", "jane"]
    if hasattr(os, "memfd_create"):
        assert list(temporary.iterdir()) == []


async def test_server_is_verified_unless_the_kubeconfig_disables_it(authority: Authority, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    stranger = Authority(other)
    async with server(authority.server_context(x509.DNSName("kubernetes"))) as seen:

        def config(name: str, ca: Authority | None, **cluster: Any) -> str:
            known = {"certificate-authority": str(ca.file)} if ca else {}
            return write(tmp_path / name, kubeconfig(server=seen.url, **known, **cluster))

        for refused in (config("stranger", stranger), config("wrong-name", authority), config("system", None)):
            with pytest.raises(UnreachableError, match=r"(?i)certificate"):
                await ask(refused)
        assert seen.tokens == []
        await ask(config("named", authority, **{"tls-server-name": "kubernetes"}))
        await ask(config("insecure", None, **{"insecure-skip-tls-verify": True}))
        assert len(seen.tokens) == 2


async def test_token_file_is_read_again_after_a_minute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    token = tmp_path / "token"
    token.write_text("first\n")
    async with server() as seen:
        config = write(tmp_path / "config", kubeconfig(server=seen.url, user={"tokenFile": str(token), "token": "old"}))
        async with await Client.connect(config) as client:
            loop = asyncio.get_running_loop()
            late = 0.0
            clock = loop.time
            monkeypatch.setattr(loop, "time", lambda: clock() + late)
            await client.get(PODS, "a")
            token.write_text("second\n")
            await client.get(PODS, "a")
            late = 61.0
            await client.get(PODS, "a")
            token.unlink()
            late = 122.0
            with pytest.raises(UnreachableError, match="cannot be renewed"):
                await client.get(PODS, "a")
    assert seen.tokens == ["Bearer first", "Bearer first", "Bearer second"]


def plugin(path: Path, status: str) -> dict[str, Any]:
    """An exec plugin that counts its runs in a file."""
    script = path / "plugin.py"
    script.write_text(
        "import datetime, json, pathlib\n"
        f"calls = pathlib.Path({str(path / 'calls')!r})\n"
        "calls.write_text(calls.read_text() + 'x' if calls.exists() else 'x')\n"
        "number = len(calls.read_text())\n"
        "soon = (datetime.datetime.now(datetime.UTC) + datetime.timedelta(minutes=1)).isoformat()\n"
        "later = (datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=1)).isoformat()\n"
        f"status = {status}\n"
        "print(json.dumps({'apiVersion': 'client.authentication.k8s.io/v1', 'kind': 'ExecCredential', "
        "'status': status}))\n"
    )
    return {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": sys.executable,
            "args": [str(script)],
            "interactiveMode": "Never",
        }
    }


async def test_exec_plugin_runs_again_before_its_token_expires(tmp_path: Path) -> None:
    user = plugin(tmp_path, "{'token': f'token-{number}', 'expirationTimestamp': soon if number < 3 else later}")
    async with server() as seen:
        async with await Client.connect(write(tmp_path / "c", kubeconfig(server=seen.url, user=user))) as client:
            await asyncio.gather(*(client.get(PODS, "a") for _ in range(8)))
        assert seen.tokens[-1] == "Bearer token-3"
        assert (tmp_path / "calls").read_text() == "xxx"


async def test_exec_plugin_without_expiry_runs_once(tmp_path: Path) -> None:
    user = plugin(tmp_path, "{'token': f'token-{number}'}")
    async with server() as seen:
        async with await Client.connect(write(tmp_path / "c", kubeconfig(server=seen.url, user=user))) as client:
            await client.get(PODS, "a")
            await client.get(PODS, "a")
        assert seen.tokens == ["Bearer token-1"] * 2


async def test_namespace_is_that_of_the_context(tmp_path: Path) -> None:
    config = kubeconfig()
    assert (await credentials.load(write(tmp_path / "c", config), None)).namespace == "default"
    config["contexts"][0]["context"]["namespace"] = "shop"
    config["contexts"].append({"name": "other", "context": {"cluster": "one", "user": "one", "namespace": "warehouse"}})
    path = write(tmp_path / "c", config)
    assert (await credentials.load(path, None)).namespace == "shop"
    assert (await credentials.load(path, "other")).namespace == "warehouse"
    async with await Client.connect(path) as client, client.with_own_connections() as apart:
        assert client.namespace == apart.namespace == "shop"


async def test_in_a_pod_the_namespace_is_the_pods_unless_a_context_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in (("token", "pod-token"), ("namespace", "gate\n"), ("ca.crt", Authority(tmp_path).pem.decode())):
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(configuration, "SERVICE_ACCOUNT", tmp_path)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "1")
    assert (await credentials.load(None, None)).namespace == "gate"
    monkeypatch.setenv("KUBECONFIG", write(tmp_path / "config", kubeconfig()))
    assert (await credentials.load(None, "one")).namespace == "default"


async def test_service_account_is_preferred_to_the_default_kubeconfig(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = tmp_path / "token"
    token.write_text("pod-token\n")
    async with server(authority.server_context(LOOPBACK)) as seen:
        (tmp_path / "ca.crt").write_bytes(authority.file.read_bytes())
        monkeypatch.setattr(configuration, "SERVICE_ACCOUNT", tmp_path)
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", seen.url.rpartition(":")[2])
        assert await token_of(None, seen) == "Bearer pod-token"
        monkeypatch.delenv("KUBERNETES_SERVICE_HOST")
        with pytest.raises(UsageError, match="KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set"):
            await Client.connect()


def broken(**changes: Any) -> dict[str, Any]:
    return {**kubeconfig(), **changes}


@pytest.mark.parametrize(
    "config",
    [
        "",
        "[",
        "- a list",
        "just text",
        "\x00\x01",
        kubeconfig(current=False),
        broken(**{"current-context": "two"}),
        broken(**{"current-context": 7}),
        broken(contexts=None),
        broken(contexts="text"),
        broken(clusters=[]),
        broken(clusters=[{"name": "one"}]),
        broken(clusters=[{"name": "one", "cluster": {"server": 7}}]),
        broken(clusters=[{"name": "one", "cluster": {"server": "https://x", "certificate-authority": "missing"}}]),
        broken(clusters=[{"name": "one", "cluster": {"server": "https://x", "certificate-authority-data": "%"}}]),
        broken(clusters=[{"name": "one", "cluster": {"server": "https://x", "certificate-authority-data": "AAAA"}}]),
        broken(users=[]),
        broken(users=[{"name": "one"}]),
        broken(users=[{"nom": "one", "user": {"token": SECRET}}]),
        kubeconfig(user={"token": SECRET, "exec": {"command": "x"}}),
        kubeconfig(user={"token": SECRET, "exec": {"apiVersion": "client.authentication.k8s.io/v1"}}),
        kubeconfig(
            user={"token": SECRET, "exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "/missing"}}
        ),
        kubeconfig(
            user={"token": SECRET, "exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "false"}}
        ),
        kubeconfig(user={"tokenFile": "missing"}),
        kubeconfig(user={"client-certificate": "missing"}, server="https://127.0.0.1:1"),
        kubeconfig(**{"proxy-url": "socks5://127.0.0.1:1"}),
        json.dumps(kubeconfig())[:-30],
    ],
)
async def test_unusable_kubeconfig_is_reported_in_one_sentence_without_secrets(
    config: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = write(tmp_path / "config", config)
    with pytest.raises(UsageError) as caught:
        await Client.connect(path)
    text = str(caught.value)
    assert SECRET not in text
    assert "\n" not in text
    assert len(text) < 500


async def test_error_for_a_missing_kubeconfig_names_the_option(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(UsageError, match=r"in /missing: there is no such file; name a kubeconfig with --kubeconfig"):
        await Client.connect("/missing")
    assert caplog.messages == []


async def test_error_for_an_unknown_context_names_it(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match='there is no context "elsewhere" in '):
        await Client.connect(write(tmp_path / "c", kubeconfig()), context="elsewhere")


@pytest.mark.parametrize(
    ("server", "environment", "expected"),
    [
        ("https://10.1.2.3", {}, None),
        ("https://10.1.2.3", {"HTTPS_PROXY": "http://proxy:3128"}, "http://proxy:3128"),
        ("https://10.1.2.3", {"https_proxy": "proxy:3128"}, "http://proxy:3128"),
        ("https://10.1.2.3", {"HTTP_PROXY": "http://proxy:3128"}, None),
        ("http://10.1.2.3", {"http_proxy": "http://proxy:3128"}, "http://proxy:3128"),
        ("https://10.1.2.3", {"HTTPS_PROXY": "http://proxy", "NO_PROXY": "x.org, 10.0.0.0/8"}, None),
        ("https://10.1.2.3", {"HTTPS_PROXY": "http://proxy", "NO_PROXY": "10.1.2.3"}, None),
        ("https://11.1.2.3", {"HTTPS_PROXY": "http://proxy", "NO_PROXY": "10.0.0.0/8"}, "http://proxy"),
        ("https://[fd00::1]:6443", {"HTTPS_PROXY": "http://proxy", "NO_PROXY": "fd00::/8"}, None),
        ("https://kube.corp.example", {"HTTPS_PROXY": "http://proxy", "NO_PROXY": ".corp.example"}, None),
        ("https://kube.corp.example", {"HTTPS_PROXY": "http://proxy", "NO_PROXY": "other"}, "http://proxy"),
        ("https://kube.corp.example", {"HTTPS_PROXY": "http://proxy", "NO_PROXY": "*"}, None),
        ("https://127.0.0.1:6443", {"HTTPS_PROXY": "http://proxy"}, None),
        ("https://[::1]:6443", {"HTTPS_PROXY": "http://proxy"}, None),
        ("https://localhost:6443", {"HTTPS_PROXY": "http://proxy"}, None),
    ],
)
def test_proxy_of_the_environment_is_used_as_by_kubectl(
    server: str, environment: dict[str, str], expected: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert credentials.proxy(Configuration(host=server)) == expected


async def test_proxy_of_the_kubeconfig_is_used_even_for_loopback(tmp_path: Path) -> None:
    async with server() as proxy:
        config = kubeconfig(server="http://127.0.0.1:1", **{"proxy-url": proxy.url})
        assert await token_of(write(tmp_path / "c", config), proxy) == f"Bearer {SECRET}"


async def test_netrc_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "netrc").write_text("default login jane password other\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    async with server() as seen:
        assert await token_of(write(tmp_path / "c", kubeconfig(server=seen.url)), seen) == f"Bearer {SECRET}"
