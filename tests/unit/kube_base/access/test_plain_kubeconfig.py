"""A plain kubeconfig is read as kubernetes-asyncio reads it, and without its import."""

import base64
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from kube_base.access import plain_kubeconfig

SERVER = "https://127.0.0.1:6443"
DATA = base64.b64encode(b"-----BEGIN CERTIFICATE-----").decode()


def config(cluster: dict[str, Any], user: dict[str, Any], **context: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "preferences": {},
        "clusters": [{"name": "other", "cluster": {}}, {"name": "one", "cluster": cluster}],
        "users": [{"name": "other", "user": {"exec": {}}}, {"name": "one", "user": user}],
        "contexts": [
            {"name": "other", "context": {"cluster": "other", "user": "other"}},
            {"name": "one", "context": {"cluster": "one", "user": "one", **context}},
            {"name": "one", "context": {"cluster": "other", "user": "other"}},  # the first one counts
        ],
        "current-context": "one",
    }


def write(directory: Path, content: dict[str, Any]) -> str:
    for name in ("ca.crt", "tls.crt", "tls.key"):
        (directory / name).write_text(name)
    path = directory / "config"
    path.write_text(yaml.safe_dump(content))
    return str(path)


PLAIN = {
    "token": config({"server": SERVER}, {"token": "secret"}),
    "slash": config({"server": f"{SERVER}/"}, {"token": "secret"}),
    "http": config({"server": "http://127.0.0.1:8001"}, {"token": "secret"}),
    "namespace": config({"server": SERVER}, {"token": "secret"}, namespace="shop"),
    "authority": config({"server": SERVER, "certificate-authority": "ca.crt"}, {"token": "secret"}),
    "data": config(
        {"server": SERVER, "certificate-authority-data": DATA},
        {"client-certificate-data": DATA, "client-key-data": DATA},
    ),
    "data and file": config(
        {"server": SERVER, "certificate-authority-data": DATA, "certificate-authority": "ca.crt"}, {"token": "secret"}
    ),
    "certificate": config({"server": SERVER}, {"client-certificate": "tls.crt", "client-key": "tls.key"}),
    "certificate and token": config(
        {"server": SERVER}, {"client-certificate": "tls.crt", "client-key": "./tls.key", "token": "secret"}
    ),
    "unverified": config({"server": SERVER, "insecure-skip-tls-verify": True}, {"token": "secret"}),
    "name and proxy": config({"server": SERVER, "tls-server-name": "api", "proxy-url": "http://p:1"}, {"token": "x"}),
}


@pytest.mark.parametrize("name", PLAIN)
async def test_plain_kubeconfig_has_the_same_configuration_as_with_kubernetes_asyncio(
    name: str, tmp_path: Path
) -> None:
    from kube_base.access import kubeconfig  # half a second, which each worker would need to collect the tests

    path = write(tmp_path, PLAIN[name])
    assert plain_kubeconfig.read(path, None) == plain_kubeconfig.read(path, "one") == await kubeconfig.load(path, None)


@pytest.mark.parametrize(
    ("cluster", "user"),
    [
        ({"server": SERVER}, {"tokenFile": "token"}),
        ({"server": SERVER}, {"token": "secret", "as": "alice"}),
        ({"server": SERVER}, {"username": "alice", "password": "secret"}),
        ({"server": SERVER}, {"exec": {"command": "plugin"}}),
        ({"server": SERVER}, {"auth-provider": {"name": "oidc"}}),
        ({"server": SERVER}, {}),
        ({"server": SERVER}, {"token": 12}),
        ({"server": "127.0.0.1:6443"}, {"token": "secret"}),
        ({"server": SERVER, "certificate-authority": "missing"}, {"token": "secret"}),
        ({"server": SERVER, "certificate-authority-data": "A"}, {"token": "secret"}),
        ({"server": "http://127.0.0.1", "certificate-authority": "ca.crt"}, {"token": "secret"}),
        ({}, {"token": "secret"}),
    ],
)
def test_other_kubeconfigs_are_left_to_kubernetes_asyncio(
    cluster: dict[str, Any], user: dict[str, Any], tmp_path: Path
) -> None:
    assert plain_kubeconfig.read(write(tmp_path, config(cluster, user)), None) is None


def test_missing_context_and_several_files_are_left_to_kubernetes_asyncio(tmp_path: Path) -> None:
    path = write(tmp_path, PLAIN["token"])
    assert plain_kubeconfig.read(path, "nowhere") is None
    assert plain_kubeconfig.read(f"{path}:{path}", None) is None
    assert plain_kubeconfig.read(str(tmp_path / "nothing"), None) is None


def test_plain_kubeconfig_is_read_without_an_import_of_kubernetes_asyncio(tmp_path: Path) -> None:
    code = (
        "import asyncio, sys; from kube_base.access import credentials; "
        "asyncio.run(credentials.load(sys.argv[1], None)); print(*sys.modules)"
    )
    command = [sys.executable, "-c", code, write(tmp_path, PLAIN["token"])]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "kubernetes_asyncio" not in done.stdout.split()
