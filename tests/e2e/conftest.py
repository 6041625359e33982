"""One Kubernetes and one gate for all end-to-end tests, started as a user would start them.

The Kubernetes is the sandbox's, the real one of KUBEBUILDER_ASSETS, or the cluster of --kubeconfig; the gate is
`altershield dev` with short thresholds.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest

from altershield.api.labels import GOVERNED, VERSION
from altershield.commands.installation import CONFIGURATION
from altershield.kube.client import Client

START_TIMEOUT = 8
OBSERVE = 1
BATCH_WAIT = 2

SLEEP = """
apiVersion: apps/v1
kind: Deployment
metadata:
  name: sleep
  labels:
    app: sleep
spec:
  replicas: 5
  selector:
    matchLabels:
      app: sleep
  template:
    metadata:
      labels:
        app: sleep
    spec:
      containers:
      - name: sleep
        image: busybox
        command: ["/bin/sleep","infinity"]
        imagePullPolicy: IfNotPresent
"""

Json = dict[str, Any]
T = TypeVar("T")


@pytest.hookimpl(tryfirst=True)  # tests/conftest.py sorts by the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.e2e)
            item.add_marker(pytest.mark.timeout(300))
            if item.get_closest_marker("xdist_group") is None:
                item.add_marker(pytest.mark.xdist_group("e2e"))


class Kubectl:
    """The real kubectl, as one user in one namespace."""

    def __init__(self, kubeconfig: Path, namespace: str = "default", *more: str) -> None:
        self.kubeconfig = kubeconfig
        self.namespace = namespace
        self._more = more

    def run(self, *arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["kubectl", "--kubeconfig", str(self.kubeconfig), "-n", self.namespace, *self._more, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )

    def __call__(self, *arguments: str, stdin: str | None = None) -> str:
        """stdout; a failure is an assertion with what kubectl said."""
        done = self.run(*arguments, stdin=stdin)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}{done.stdout}"
        return done.stdout

    def json(self, *arguments: str) -> Json:
        result: Json = json.loads(self("get", *arguments, "-o", "json"))
        return result

    def labels(self, *arguments: str) -> dict[str, str]:
        return dict(self.json(*arguments)["metadata"].get("labels") or {})

    def wait(self, what: str, condition: str, seconds: int = 60) -> None:
        self("wait", f"--for={condition}", what, f"--timeout={seconds}s")


def eventually(met: Callable[[], T], waiting_for: str, seconds: float = 60.0) -> T:
    """What `met` returns once it is true; an assertion after `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        result = met()
        if result:
            return result
        assert time.monotonic() < deadline, f"waited {seconds:.0f} s for {waiting_for}; last seen: {result!r}"
        time.sleep(0.1)


@contextlib.contextmanager
def command(*arguments: str, log: Path, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """`altershield ARGUMENTS` in the background, stopped by SIGTERM at the end."""
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "altershield", *arguments],
            stdout=out,
            stderr=out,
            env={**os.environ, **environment},
        )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            raise


def wait_for_line(process: subprocess.Popen[bytes], log: Path, line: str, seconds: float = 60.0) -> None:
    def met() -> bool:
        assert process.poll() is None, f"ended with {process.returncode}:\n{log.read_text()}"
        return line in log.read_text()

    eventually(met, f"{line!r} in {log}", seconds)


@pytest.fixture(scope="session")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("e2e")


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest, directory: Path) -> Iterator[Path]:
    """The admin's kubeconfig of a Kubernetes that is up."""
    given = request.config.getoption("--kubeconfig")
    if given and not request.config.getoption("--simulate-nodes"):
        yield Path(given)
        return
    kubeconfig, log = directory / "kubeconfig", directory / "sandbox.log"
    arguments = ["--clonesets", *(["--kubeconfig", given] if given else [])]
    with command("sandbox", "--output", str(kubeconfig), *arguments, log=log) as process:
        wait_for_line(process, log, "Serving ")
        yield kubeconfig


@pytest.fixture(scope="session")
def gate(cluster: Path, directory: Path) -> Iterator[Path]:
    """The gate is up on the cluster."""
    log = directory / "gate.log"
    times = {"start-timeout": START_TIMEOUT, "observe-seconds": OBSERVE, "batch-wait": BATCH_WAIT, "lease-duration": 4}
    arguments = [part for name, seconds in times.items() for part in (f"--{name}", str(seconds))]
    with command("dev", "--yes", "--kubeconfig", str(cluster), *arguments, log=log) as process:
        wait_for_line(process, log, "The gate is up")
        ask_patiently(cluster)
        yield cluster


def ask_patiently(cluster: Path) -> None:
    """On a machine that is busy with other tests an answer may take seconds; a release that slips past the gate, or
    is refused, is the subject of tests of their own."""
    for kind in ("mutatingwebhookconfiguration", "validatingwebhookconfiguration"):
        webhooks = Kubectl(cluster).json(kind, CONFIGURATION)["webhooks"]
        places = [f"/webhooks/{number}/timeoutSeconds" for number in range(len(webhooks))]
        patch = [{"op": "replace", "path": place, "value": 30} for place in places]
        Kubectl(cluster)("patch", kind, CONFIGURATION, "--type=json", "-p", json.dumps(patch))


@pytest.fixture(scope="session")
def has_kubectl() -> None:
    if shutil.which("kubectl") is None:
        assert "CI" not in os.environ, "in CI nothing is skipped: install kubectl"
        pytest.skip("kubectl is not on PATH; install it to run these tests")


@pytest.fixture
def admin(cluster: Path, has_kubectl: None) -> Kubectl:
    return Kubectl(cluster)


@pytest.fixture(scope="module")
def space(cluster: Path, has_kubectl: None) -> Iterator[Kubectl]:
    """kubectl in a namespace of the module's own, which the gate leaves alone."""
    kubectl = Kubectl(cluster, f"api-{uuid.uuid4().hex[:8]}")
    kubectl("create", "namespace", kubectl.namespace)
    # what controllers put into every namespace: pods need the one, and the other would be counted later
    kubectl("wait", "--for=create", "serviceaccount/default", "configmap/kube-root-ca.crt", "--timeout=60s")
    yield kubectl
    kubectl.run("delete", "namespace", kubectl.namespace, "--wait=false")


@pytest.fixture
async def client(cluster: Path) -> AsyncIterator[Client]:
    """The admin's requests, where kubectl would not show what is meant."""
    async with await Client.connect(str(cluster)) as client:
        yield client


@pytest.fixture
def kubectl(gate: Path, has_kubectl: None) -> Iterator[Kubectl]:
    """kubectl in a governed namespace of the test's own."""
    namespace = f"e2e-{uuid.uuid4().hex[:8]}"
    govern(gate, [namespace])
    kubectl = Kubectl(gate, namespace)
    yield kubectl
    kubectl.run("delete", "namespace", namespace, "--wait=false")


def govern(gate: Path, namespaces: Sequence[str]) -> None:
    """Make these namespaces, governed, and wait until the gate sees them."""
    made = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {GOVERNED: "enabled"}}}
        for name in namespaces
    ]
    Kubectl(gate)("create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": made}))
    latest = Kubectl(gate, namespaces[-1])

    def governed() -> bool:
        done = latest.run("apply", "--dry-run=server", "-o", "json", "-f", "-", stdin=SLEEP)
        return done.returncode == 0 and VERSION in done.stdout

    eventually(governed, "the gate to see the namespaces")
