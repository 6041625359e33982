"""One cluster with one installation of AlterShield for all end-to-end tests, started as a user starts them.

The cluster is the sandbox, the real API server of KUBEBUILDER_ASSETS, or the cluster of --kubeconfig. AlterShield runs
as `altershield dev` with short thresholds.
"""

import functools
import json
import uuid
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import pytest

from altershield.api.labels import GOVERNED
from altershield.api.names import SYSTEM_NAMESPACE
from command.dev_webhooks import CONFIGURATION
from kube_base.access.client import Client
from kube_base.resources import NAMESPACES
from tests.e2e.sleep import sets_version
from tests.support.kubectl import Json, Kubectl
from tests.support.polling import eventually
from tests.support.processes import Done, Run, call, command, wait_for_line
from tests.support.tools import program
from tests.support.users import USERS

START_TIMEOUT = 8
OBSERVE = 1
BATCH_WAIT = 2


_OF_POLICIES = (
    "test_policies.py",
    "test_policy_schema.py",
    "test_check_permissions.py",
    "test_account.py",
    "test_breaker_policy.py",
    "test_deletion_protection.py",
    "test_requests.py",
    "test_status.py",
    "test_steps.py",
    "test_steps_taken.py",
    "test_steps_observed.py",
    "test_steps_of_kinds.py",
    "test_steps_and_policies.py",
    "test_steps_of_people.py",
    "test_steps_superseded.py",
    "test_steps_under_limits.py",
    "test_steps_without_gatekeeper.py",
    "test_step_requests.py",
    "test_roles.py",
    "test_notifications.py",
)
"""The files of the group "policies", with a cluster of its own: half of the tests that need no other group."""


@pytest.hookimpl(tryfirst=True)  # tests/conftest.py sorts by the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = str(Path(__file__).parent)
    for item in items:
        if str(item.path).startswith(here):
            item.add_marker(pytest.mark.e2e)
            if item.get_closest_marker("xdist_group") is None:
                item.add_marker(pytest.mark.xdist_group("policies" if item.path.name in _OF_POLICIES else "e2e"))


@pytest.fixture(scope="session")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("e2e")


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest, directory: Path) -> Iterator[Path]:
    """The admin's kubeconfig of a running cluster."""
    given = request.config.getoption("--kubeconfig")
    if given and not request.config.getoption("--simulate-nodes"):
        yield Path(given)
        return
    kubeconfig, log = directory / "kubeconfig", directory / "sandbox.log"
    arguments = ["--clonesets", *(["--kubeconfig", given] if given else [f"--user={each}" for each in USERS])]
    with command("sandbox", "--output", str(kubeconfig), *arguments, log=log) as process:
        wait_for_line(process, log, "Serving ")
        yield kubeconfig


@pytest.fixture(scope="session")
def receivers(directory: Path) -> Path:
    """The file with the receivers of notifications. It has none."""
    file = directory / "receivers.yaml"
    file.write_text("receivers: []")
    return file


@pytest.fixture(scope="session")
def installed(has_kubectl: None, cluster: Path, directory: Path, receivers: Path) -> Iterator[Path]:
    """The admin's kubeconfig of a cluster on which AlterShield runs."""
    log = directory / "altershield.log"
    times = {"start-timeout": START_TIMEOUT, "observe-seconds": OBSERVE, "batch-wait": BATCH_WAIT, "lease-duration": 4}
    arguments = [part for name, seconds in times.items() for part in (f"--{name}", str(seconds))]
    arguments += ["--notifications-file", str(receivers)]
    with command("dev", "--yes", "--kubeconfig", str(cluster), *arguments, log=log) as process:
        wait_for_line(process, log, "The gatekeeper is ready")
        raise_webhook_timeouts(cluster)
        yield cluster


def raise_webhook_timeouts(cluster: Path) -> None:
    """Set the timeouts of the webhooks to 30 seconds, because a gatekeeper may answer slowly on a busy machine.

    Other tests cover webhooks that time out."""
    for kind in ("mutatingwebhookconfiguration", "validatingwebhookconfiguration"):
        webhooks = Kubectl(cluster).json(kind, CONFIGURATION)["webhooks"]
        places = [f"/webhooks/{number}/timeoutSeconds" for number in range(len(webhooks))]
        patch = [{"op": "replace", "path": place, "value": 30} for place in places]
        Kubectl(cluster)("patch", kind, CONFIGURATION, "--type=json", "-p", json.dumps(patch))


@pytest.fixture(scope="session")
def has_kubectl() -> None:
    program("kubectl")


@pytest.fixture
def admin(has_kubectl: None, cluster: Path) -> Kubectl:
    return Kubectl(cluster)


@pytest.fixture(scope="module")
def space(has_kubectl: None, cluster: Path) -> Iterator[Kubectl]:
    """kubectl in a namespace of the module, which is not governed."""
    kubectl = Kubectl(cluster, f"api-{uuid.uuid4().hex[:8]}")
    kubectl("create", "namespace", kubectl.namespace)
    # controllers create both in every namespace: pods need the ServiceAccount, and tests count ConfigMaps
    for kind, name in (("serviceaccount", "default"), ("configmap", "kube-root-ca.crt")):
        eventually(functools.partial(kubectl.exists, kind, name), f"{kind}/{name}")
    yield kubectl
    kubectl.delete_namespaces()


@pytest.fixture
async def client(cluster: Path) -> AsyncIterator[Client]:
    """The admin's API client, for requests that kubectl does not show."""
    async with await Client.connect(str(cluster)) as client:
        yield client


@pytest.fixture
def kubectl(installed: Path) -> Iterator[Kubectl]:
    """kubectl in a governed namespace of the test."""
    namespace = f"e2e-{uuid.uuid4().hex[:8]}"
    govern(installed, [namespace])
    kubectl = Kubectl(installed, namespace)
    yield kubectl
    kubectl.delete_namespaces()


def govern(kubeconfig: Path, namespaces: Sequence[str]) -> None:
    """Create these governed namespaces, and wait until the gatekeepers know them."""
    for name in namespaces:
        made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {GOVERNED: "enabled"}}}
        status, found = Kubectl(kubeconfig).create(NAMESPACES, json.dumps(made))
        assert status == 201, found
    latest = Kubectl(kubeconfig, namespaces[-1])
    eventually(lambda: sets_version(latest), "the gatekeepers to know the namespaces")


@pytest.fixture
def setting(kubectl: Kubectl):  # type: ignore[no-untyped-def]  # a fixture that returns a function
    """Change a setting for one test."""
    system = Kubectl(kubectl.kubeconfig, SYSTEM_NAMESPACE)
    changed: dict[str, Json] = {}

    def change(name: str, **spec: object) -> None:
        eventually(lambda: system.exists("opsconfiginfo", name), name)
        changed.setdefault(name, system.json("opsconfiginfo", name)["spec"])
        patch(name, spec)

    def patch(name: str, spec: Json) -> None:
        system("patch", "opsconfiginfo", name, "--type=merge", "-p", json.dumps({"spec": spec}))
        eventually(lambda: seen(name), f"the reconciler to see the setting {name}")

    def seen(name: str) -> bool:
        setting = system.json("opsconfiginfo", name)
        return bool(setting.get("status", {}).get("observedGeneration") == setting["metadata"]["generation"])

    yield change
    for name, spec in changed.items():
        patch(name, spec)


@pytest.fixture
def altershield(kubectl: Kubectl, capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs `altershield` in the namespace of the test, and checks the exit code."""
    from command.app import main  # most tests need no command in their process

    def run(*arguments: str, code: int = 0) -> Done:
        where = ("-n", kubectl.namespace, "--kubeconfig", str(kubectl.kubeconfig))
        done = call(main, "altershield", *arguments, *where, capture=capfd)
        assert done.returncode == code, f"{arguments}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done

    return run
