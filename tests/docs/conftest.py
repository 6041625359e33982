"""Fixtures in which the commands of the pages run: a folder like a checkout, a cluster, and `helm` on PATH."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.cluster import OBSERVE_SECONDS, START_TIMEOUT, cluster
from tests.docs.pages import ROOT
from tests.docs.shell import Shell, terminal
from tests.e2e.conftest import has_kubectl as has_kubectl
from tests.support.polling import HANG
from tests.support.tools import unless_helm

collect_ignore_glob = unless_helm("test_blocks.py", "test_e2e_script.py")

INSTALL = """
helm install altershield charts/altershield -n altershieldoperator-system --create-namespace
kubectl create namespace probe
kubectl label namespace probe admission-webhook-altershield=enabled
until kubectl -n probe create deployment probe --image=probe --dry-run=server; do sleep 0.5; done
kubectl delete namespace probe
"""
"""The commands before most pages: AlterShield is installed and ready."""

SHOP = """
kubectl get namespace shop 2> /dev/null && return
kubectl create namespace shop
kubectl label namespace shop admission-webhook-altershield=enabled
kubectl -n shop create deployment web --image=nginx:1.27 --replicas=3
until kubectl -n shop get changeworkloads -o name | grep web; do sleep 0.5; done
kubectl -n shop wait changeworkload --all --for=jsonpath='{.status.status}'=Success --timeout=300s
"""
"""The reader's Deployment `web` in the governed namespace `shop`, released once and verified. It may be there from the
page before."""


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for PATH, with `helm`."""
    directory = tmp_path_factory.mktemp("bin")
    helm = directory / "helm"
    helm.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m tests.docs.helm "$@"\n')
    helm.chmod(0o755)
    return directory


def environment(programs: Path, home: Path, kubeconfig: Path | None = None) -> dict[str, str]:
    path = os.pathsep.join([str(programs), str(Path(sys.executable).parent), os.environ["PATH"]])
    variables = os.environ | {
        "PATH": path,
        "HOME": str(home),
        "ALTERSHIELD_START_TIMEOUT": str(START_TIMEOUT),
        "ALTERSHIELD_OBSERVE_SECONDS": str(OBSERVE_SECONDS),
    }
    variables.pop("KUBECONFIG", None)
    return variables | ({"KUBECONFIG": str(kubeconfig)} if kubeconfig else {})


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The working directory of the commands."""
    (tmp_path / ".venv").symlink_to(sys.prefix)
    for name in ("docs", "charts", "integrations", "altershield", "certgen"):
        (tmp_path / name).symlink_to(ROOT / name)
    return tmp_path


@pytest.fixture
def bare(checkout: Path, programs: Path, has_kubectl: None) -> Iterator[Shell]:
    """A shell without a cluster: the page starts one."""
    with terminal(checkout, environment(programs, checkout)) as shell:
        yield shell


@pytest.fixture
def fresh(checkout: Path, programs: Path, has_kubectl: None) -> Iterator[Shell]:
    """A shell with a cluster on which nothing is installed."""
    with cluster(checkout) as kubeconfig, terminal(checkout, environment(programs, checkout, kubeconfig)) as shell:
        yield shell


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory, programs: Path, has_kubectl: None) -> Iterator[Path]:
    """The kubeconfig of a cluster on which AlterShield runs."""
    directory = tmp_path_factory.mktemp("installed")
    with cluster(directory) as kubeconfig:
        done = subprocess.run(
            ["bash", "-ec", INSTALL],
            env=environment(programs, directory, kubeconfig),
            cwd=ROOT,
            timeout=HANG,
            check=False,
        )
        assert done.returncode == 0
        yield kubeconfig


@pytest.fixture
def shop(installed: Path, checkout: Path, programs: Path) -> Iterator[Shell]:
    """A shell with a cluster on which AlterShield runs and `web` in `shop` is released. The page only reads them: the
    next page gets them too."""
    with terminal(checkout, environment(programs, checkout, installed)) as shell:
        shell.run(SHOP)
        yield shell


@pytest.fixture
def changed_shop(installed: Path, programs: Path, shop: Shell) -> Iterator[Shell]:
    """As `shop`, for a page that changes it: the next page gets a new one."""
    yield shop
    variables = environment(programs, installed.parent, installed)
    # in another shell: a shell ends when a command fails
    subprocess.run(["kubectl", "delete", "namespace", "shop"], env=variables, timeout=HANG, check=True)
