"""Releases that an AlterShield server checks: `altershield sandbox --altershield-server` and `altershield dev`."""

import json
import re
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from command.app import main
from kube_base.processes import free_ports
from reconciler.server import signature
from tests.e2e import held_releases
from tests.e2e.conftest import OBSERVE, START_TIMEOUT, govern, raise_webhook_timeouts
from tests.e2e.sleep import SUSPEND, TEMPLATE_PATCH, VERSION, sleep, succeed
from tests.support.kubectl import Json, Kubectl
from tests.support.polling import eventually
from tests.support.processes import call, command, wait_for_line

pytestmark = pytest.mark.xdist_group("server")

RULE = {"name": "error rate", "owner": "sre", "msg": "12 % of requests fail"}


@dataclass(frozen=True)
class Installed:
    kubeconfig: Path
    server: str
    callbacks: str

    def script(self, **script: Any) -> None:
        _send("PUT", f"{self.server}/sandbox/script", script)


@pytest.fixture(scope="module")
def installed(
    has_kubectl: None, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installed]:
    """A cluster of its own, with an AlterShield server and an installation that uses it."""
    if request.config.getoption("--kubeconfig"):
        pytest.skip("needs a cluster without AlterShield: the one of --kubeconfig has an installation already")
    directory = tmp_path_factory.mktemp("server")
    kubeconfig, log = directory / "kubeconfig", directory / "sandbox.log"
    port = free_ports(1)[0]
    callbacks = f"http://127.0.0.1:{port}/openapi/altershield"
    with command(
        "sandbox", "--output", str(kubeconfig), "--altershield-server", "--server-callback", f"{callbacks}/callback",
        log=log,
    ) as sandbox:  # fmt: skip
        wait_for_line(sandbox, log, "Serving ")
        options = re.search(r"--server-url .*", log.read_text())
        assert options is not None, log.read_text()
        arguments = [*options[0].split(), "--start-timeout", str(START_TIMEOUT), "--observe-seconds", str(OBSERVE)]
        assert f"--callback-port {port}" in options[0]
        log = directory / "altershield.log"
        with command("dev", "--yes", "--kubeconfig", str(kubeconfig), *arguments, log=log) as dev:
            wait_for_line(dev, log, "The gatekeeper is ready")
            raise_webhook_timeouts(kubeconfig)
            yield Installed(kubeconfig, arguments[1], callbacks)


@pytest.fixture
def kubectl(installed: Installed) -> Iterator[Kubectl]:
    namespace = f"server-{uuid.uuid4().hex[:8]}"
    govern(installed.kubeconfig, [namespace])
    installed.script()
    kubectl = Kubectl(installed.kubeconfig, namespace)
    yield kubectl
    kubectl.delete_namespaces(namespace)


def release(kubectl: Kubectl, **options: Any) -> str:
    kubectl.apply(sleep(replicas=2, **options))
    return kubectl.labels("deployment", "sleep")[VERSION]


def suspended(kubectl: Kubectl, version: str) -> Json:
    """The release after the server failed it."""
    name = f"sleep--x--{version}"
    eventually(lambda: kubectl.exists("changeworkload", name), name)
    kubectl.wait(f"changeworkload/{name}", "jsonpath={.status.status}=Suspend")
    eventually(lambda: SUSPEND in kubectl.labels("deployment", "sleep"), "the label suspend")
    found: Json = kubectl.json("changeworkload", name)
    return found


def test_release_that_the_server_passes_succeeds(kubectl: Kubectl) -> None:
    version = release(kubectl)
    succeed(kubectl, version)
    for change_pod in kubectl.json("changepods")["items"]:
        status = change_pod["status"]
        assert [(each["phase"], each["state"]) for each in status["checks"]] == [("Pre", "Passed"), ("Post", "Passed")]
        assert {each["verdict"] for each in status["podResults"]} == {"pass"}


def test_release_that_the_server_fails_is_suspended_until_a_release_passes(
    installed: Installed, kubectl: Kubectl
) -> None:
    succeed(kubectl, release(kubectl))
    installed.script(post={"verdict": "fail", "rules": [RULE]})
    found = suspended(kubectl, release(kubectl, image="busybox:2"))
    assert {pod["message"] for pod in found["status"]["defenseCheckFailPods"]} == {
        "error rate (sre): 12 % of requests fail"
    }

    denied = kubectl.run("patch", "deployment", "sleep", "-p", TEMPLATE_PATCH)
    assert "deployment sleep is suspended" in denied.stderr
    assert "error rate (sre): 12 % of requests fail" in denied.stderr

    installed.script()
    kubectl("label", "deployment", "sleep", "altershield.defense.antgroup.com/ignored-suspend=true")
    kubectl("patch", "deployment", "sleep", "-p", TEMPLATE_PATCH)
    succeed(kubectl, kubectl.labels("deployment", "sleep")[VERSION])
    eventually(lambda: SUSPEND not in kubectl.labels("deployment", "sleep"), "the end of the suspension")


def test_signed_callback_that_names_another_order_is_refused_and_fails_no_release(
    installed: Installed, kubectl: Kubectl
) -> None:
    installed.script(post={"verdict": "never"})
    version = release(kubectl)

    def waiting() -> bool:
        states = {each.get("status", {}).get("status") for each in kubectl.json("changepods")["items"]}
        return states == {"PostSubmitted"}

    eventually(waiting, "the batches to wait for the server")
    node = kubectl.json("changepods")["items"][0]["status"]["changePodId"]
    token = installed.kubeconfig.with_name(f"{installed.kubeconfig.name}.server-token").read_text().strip()
    refused = {"bizExecOrderId": "of-another-release", "nodeId": node, "defenseStageEnum": "POST"}
    content = {"changeCheckType": "CHANGE_BATCH", "callbackRequest": {**refused, "verdict": {"verdict": "fail"}}}
    data, timestamp = json.dumps(content), int(time.time() * 1000)
    headers = {
        signature.PLATFORM_HEADER: "kubernetes",
        signature.TIMESTAMP_HEADER: str(timestamp),
        signature.SIGN_HEADER: signature.sign(timestamp, signature.body_content(data.encode()), token),
    }
    code, answer = _send("POST", f"{installed.callbacks}/callback", content, headers=headers)
    assert (code, answer["success"]) == (404, False)
    assert waiting()
    assert SUSPEND not in kubectl.labels("deployment", "sleep")
    assert kubectl.json("changeworkload", f"sleep--x--{version}")["status"]["status"] == "Running"


def test_person_overrules_the_server(installed: Installed, kubectl: Kubectl) -> None:
    installed.script(post={"verdict": "fail", "rules": [RULE]})
    version = release(kubectl)
    name = suspended(kubectl, version)["metadata"]["name"]

    def failed() -> int:
        return len(kubectl.json("changeworkload", name)["status"]["defenseCheckFailPods"])

    eventually(lambda: failed() == 2, "the verdict of the server on both pods")  # each may have a batch of its own
    for change_pod in kubectl.json("changepods")["items"]:
        results = [{"pod": pod["pod"], "verdict": "pass"} for pod in change_pod["spec"]["podInfos"]]
        patch = json.dumps({"status": {"podResults": results}})
        kubectl(
            "patch", "changepod", change_pod["metadata"]["name"], "--subresource=status", "--type=merge", "-p", patch
        )
    succeed(kubectl, version)


@pytest.fixture
def altershield(kubectl: Kubectl, capfd: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs `altershield` in the namespace of the test, and returns what it writes."""

    def run(*arguments: str) -> str:
        where = ("-n", kubectl.namespace, "--kubeconfig", str(kubectl.kubeconfig))
        done = call(main, "altershield", *arguments, *where, capture=capfd)
        assert done.returncode == 0, f"{arguments}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    return run


def test_approval_marks_the_rules_that_failed_as_ignored_on_the_server(
    installed: Installed, kubectl: Kubectl, altershield: Callable[..., str]
) -> None:
    installed.script(cases=[{"batch": 0, "stage": "POST", "check": {"verdict": "fail", "rules": [RULE]}}])
    version = release(kubectl)
    suspended(kubectl, version)
    said = altershield("approve", "deploy/sleep", "-m", "the rule is wrong")
    assert "the AlterShield server is told to ignore 1 failed rules" in said
    succeed(kubectl, version)

    def skipped() -> list[str]:
        checks = [check for each in kubectl.json("changepods")["items"] for check in each["status"]["checks"]]
        return [each["skip"]["state"] for each in checks if "skip" in each]

    eventually(lambda: skipped() == ["Done"], "the rules ignored")


def test_retry_has_the_server_repeat_its_check(
    installed: Installed, kubectl: Kubectl, altershield: Callable[..., str]
) -> None:
    installed.script(pre={"verdict": "fail", "rules": [RULE]})
    version = release(kubectl)
    suspended(kubectl, version)
    before = _submitted(kubectl)
    installed.script()
    assert "verified again" in altershield("retry", "deploy/sleep", "-m", "the cause is gone")
    succeed(kubectl, version)
    assert before
    assert before.items() <= _submitted(kubectl).items()


def _submitted(kubectl: Kubectl) -> dict[str, str]:
    """The id on the server of each batch that was submitted. A second batch may have been made just before the
    suspension."""
    found = {each["metadata"]["name"]: each["status"] for each in kubectl.json("changepods")["items"]}
    return {name: status["changePodId"] for name, status in found.items() if "changePodId" in status}


def test_suspended_deployments_are_listed_and_rolled_back_for_callers_with_the_permission(
    installed: Installed, kubectl: Kubectl
) -> None:
    good = release(kubectl)
    succeed(kubectl, good)
    installed.script(post={"verdict": "fail", "rules": [RULE]})
    suspended(kubectl, release(kubectl, image="busybox:2"))
    kubectl("create", "serviceaccount", "tool")
    listing = f"{installed.callbacks}/suspend/deployment?namespace={kubectl.namespace}"
    token = kubectl("create", "token", "tool").strip()

    assert _send("GET", listing)[0] == 401
    assert _send("GET", listing, token=token)[0] == 403

    kubectl("create", "rolebinding", "tool", "--clusterrole=edit", f"--serviceaccount={kubectl.namespace}:tool")
    kubectl(
        "create", "rolebinding", "tool-verdicts", "--clusterrole=altershield-verdicts",
        f"--serviceaccount={kubectl.namespace}:tool",
    )  # fmt: skip
    eventually(lambda: _send("GET", listing, token=token)[0] == 200, "the permission")
    assert [each["name"] for each in _send("GET", listing, token=token)[1]["domain"]] == ["sleep"]

    wanted = {"namespace": kubectl.namespace, "name": "sleep"}
    code, answer = _send("PUT", f"{installed.callbacks}/deployment/rollback", wanted, token=token)
    assert code == 200, answer
    eventually(lambda: kubectl.labels("deployment", "sleep")[VERSION] == good, "the rollback")


def _send(
    method: str, url: str, body: object = None, token: str = "", headers: dict[str, str] | None = None
) -> tuple[int, Any]:
    bearer = {"Authorization": f"Bearer {token}"} if token else {}
    headers = {"Content-Type": "application/json", **bearer, **(headers or {})}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, headers, method=method)  # noqa: S310  (loopback)
    try:
        with urllib.request.urlopen(request, timeout=30) as response:  # noqa: S310
            return response.status, json.loads(response.read() or b"null")
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read() or b"null")


def test_release_waits_until_the_server_passes_it(installed: Installed, kubectl: Kubectl) -> None:
    base = release(kubectl)
    succeed(kubectl, base)
    check = {"name": "server", "phase": "PreRelease", "everySeconds": 10, "server": {}}
    held_releases.policy(kubectl, {"pods": [1], "soakSeconds": 1}, checks=[check])
    kubectl.wait("defensepolicy/steps", "condition=Accepted")
    installed.script(pre={"verdict": "fail", "rules": [RULE]})
    version = release(kubectl, image="busybox:2")
    held_releases.reach(kubectl, version, 1, "Held")

    def said() -> str:
        conditions = kubectl.json("changeworkload", f"sleep--x--{version}")["status"]["conditions"]
        return str(next(each["message"] for each in conditions if each["type"] == "Progressing"))

    eventually(lambda: "error rate (sre): 12 % of requests fail" in said(), "what the server said")
    assert held_releases.pods_by_version(kubectl) == {base: 2}
    installed.script()
    succeed(kubectl, version)
    (batch,) = [each for each in kubectl.json("changepods")["items"] if each["spec"].get("phase")]
    (found,) = batch["status"]["checks"]
    assert (found["phase"], found["state"]) == ("Pre", "Passed")
