"""Which kubeconfigs the client can use, and what it says about others."""

from pathlib import Path

import pytest
import yaml

from kube_sandbox.apiserver.server import ApiServer
from kube_sandbox.client import kubeconfig
from kube_sandbox.client.client import Client
from kube_sandbox.client.resources import NAMESPACES
from kube_sandbox.errors import SettingError


async def _answers(path: Path) -> bool:
    async with await Client.connect(str(path)) as client:
        return bool((await client.get(NAMESPACES, "default"))["metadata"]["uid"])


async def test_kubeconfig_of_the_api_is_usable_also_with_fields_that_only_the_library_reads(tmp_path: Path) -> None:
    path = tmp_path / "config"
    async with ApiServer() as api:
        path.write_text(api.kubeconfig())
        assert await _answers(path)
        file = yaml.safe_load(api.kubeconfig())
        file["clusters"][0]["cluster"]["tls-server-name"] = "localhost"
        path.write_text(yaml.safe_dump(file))
        assert await _answers(path)
        assert (await kubeconfig.load(str(path))).authority == api.ca_pem


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{", "ParserError"),
        ("[]", "TypeError"),
        ("clusters: []\nusers: []\ncontexts: []\ncurrent-context: x\n", "ConfigException"),
    ],
)
async def test_unusable_file_is_named(tmp_path: Path, content: str, reason: str) -> None:
    path = tmp_path / "config"
    path.write_text(content)
    with pytest.raises(SettingError, match=f"{path} cannot be used: {reason}"):
        await kubeconfig.load(str(path))


async def test_missing_file_is_named() -> None:
    with pytest.raises(SettingError, match="there is no file /nowhere"):
        await kubeconfig.load("/nowhere")
