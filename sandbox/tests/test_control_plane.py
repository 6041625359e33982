"""The control plane of KUBEBUILDER_ASSETS, and its files."""

import os
import stat
import sys
from pathlib import Path

import aiohttp
import pytest

from kube_base.access.client import Client
from kube_base.resources import CLUSTER_ROLES, NAMESPACES, SERVICE_ACCOUNTS
from kube_sandbox.control_plane import ControlPlane, ControlPlaneError
from kube_sandbox.control_plane_files import ControlPlaneFiles

ASSETS = os.environ.get("KUBEBUILDER_ASSETS", "")


if ASSETS:  # the path that setup-envtest prints

    async def test_control_plane_is_ready_in_the_block_and_stopped_after_it(tmp_path: Path) -> None:
        async with ControlPlane(Path(ASSETS), tmp_path / "plane") as plane:
            client = await Client.connect(str(plane.kubeconfig))
            names = [each["metadata"]["name"] for each in (await client.list(NAMESPACES)).items]
            assert "kube-system" in names
            assert await client.get(CLUSTER_ROLES, "cluster-admin")
            if plane.has_controller_manager:
                assert await client.get(SERVICE_ACCOUNTS, "default", "default")
            await client.close()
        with pytest.raises(aiohttp.ClientConnectorError):
            async with aiohttp.ClientSession() as session:
                await session.get(f"{client.server}/readyz", ssl=False)


def program(folder: Path, name: str, code: str) -> None:
    path = folder / name
    path.write_text(f"#!{sys.executable}\n{code}\n")
    path.chmod(0o700)


async def test_missing_program_is_named_in_the_error(tmp_path: Path) -> None:
    plane = ControlPlane(tmp_path, tmp_path / "plane")
    with pytest.raises(ControlPlaneError, match=f"there is no etcd in {tmp_path}"):
        await plane.__aenter__()
    assert not plane.has_controller_manager


async def test_error_of_an_ended_program_names_its_log(tmp_path: Path) -> None:
    program(tmp_path, "etcd", "print('no room left'); raise SystemExit(4)")
    with pytest.raises(ControlPlaneError) as failed:
        await ControlPlane(tmp_path, tmp_path / "plane").__aenter__()
    log = tmp_path / "plane" / "etcd.log"
    assert str(failed.value) == f"etcd ended with exit code 4 while starting; see {log}: no room left"


async def test_program_that_does_not_become_ready_raises_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kube_sandbox.control_plane._READY_SECONDS", 0.5)
    program(tmp_path, "etcd", "import time; time.sleep(60)")
    with pytest.raises(ControlPlaneError, match=r"etcd was not ready after .* see .*etcd\.log"):
        await ControlPlane(tmp_path, tmp_path / "plane").__aenter__()


def test_files_are_readable_by_their_owner_only(tmp_path: Path) -> None:
    files = ControlPlaneFiles(tmp_path / "plane", "https://127.0.0.1:1")
    files.kubeconfig("controller", "system:kube-controller-manager")
    assert stat.S_IMODE((tmp_path / "plane").stat().st_mode) == 0o700
    for path in (tmp_path / "plane").iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
