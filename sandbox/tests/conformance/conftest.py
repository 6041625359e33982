"""Fixtures: one cluster for all tests of this folder. It is the sandbox, the kube-apiserver of KUBEBUILDER_ASSETS, or
the cluster of --kubeconfig."""

import contextlib
import signal
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from kube_base.access.client import Client
from support.kubectl import Kubectl
from support.polling import eventually

TOKENS = """\
ann-token,ann,ann-uid,"developers,approvers"
bob-token,bob,

twice-token,first,1,a
twice-token,second,2
,nobody,0
nameless-token,,7
quoted-token,"quo""ted, user",8,"one"
in-group-token,carl,9,"system:authenticated,developers"
unknown-token,dora,10,system:unauthenticated
anonymous-token,system:anonymous,11,friends
no-group-token,emil,12,
root-token,root,13,system:masters,ignored
"""
"""The file with the tokens of users."""


@contextlib.contextmanager
def _sandbox(kubeconfig: Path, log: Path, *arguments: str) -> Iterator[None]:
    """Run `python -m kube_sandbox` in the background; SIGTERM stops it at the end of the block."""
    command = [sys.executable, "-m", "kube_sandbox", "--output", str(kubeconfig), *arguments]
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out)

    def serves() -> bool:
        assert process.poll() is None, f"the sandbox ended with {process.returncode}:\n{log.read_text()}"
        return "Serving " in log.read_text()

    try:
        eventually(serves, f"the sandbox to serve; see {log}")
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            raise


@pytest.fixture(scope="session")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("conformance")


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest, directory: Path) -> Iterator[Path]:
    """The administrator's kubeconfig of a running cluster."""
    existing = request.config.getoption("--kubeconfig")
    if existing and not request.config.getoption("--simulate-nodes"):
        yield Path(existing)
        return
    kubeconfig, tokens = directory / "kubeconfig", directory / "tokens.csv"
    tokens.touch(mode=0o600)
    tokens.write_text(TOKENS)
    arguments = ["--kubeconfig", existing] if existing else ["--token-auth-file", str(tokens)]
    with _sandbox(kubeconfig, directory / "log", *arguments):
        yield kubeconfig


@pytest.fixture
def admin(has_kubectl: None, cluster: Path) -> Kubectl:
    return Kubectl(cluster)


@pytest.fixture(scope="module")
def space(has_kubectl: None, cluster: Path) -> Iterator[Kubectl]:
    """kubectl in a namespace for one test module."""
    kubectl = Kubectl(cluster, f"api-{uuid.uuid4().hex[:8]}")
    kubectl("create", "namespace", kubectl.namespace)
    # Controllers create these in each namespace. Pods need the account; tests that count ConfigMaps need the other.
    for each in ("serviceaccount/default", "configmap/kube-root-ca.crt"):  # kubectl fails at once if two are missing
        kubectl.wait(each, "create")
    yield kubectl
    kubectl.run("delete", "namespace", kubectl.namespace, "--wait=false")


@pytest.fixture
async def client(cluster: Path) -> AsyncIterator[Client]:
    """An administrator's client, for answers that kubectl does not show."""
    async with await Client.connect(str(cluster)) as client:
        yield client
