"""Releases that checks of a DefensePolicy judge, by an HTTP request and by a Job."""

import hashlib
import hmac
import json
import os
import subprocess
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from altershield.api.labels import CHECK, CREDENTIALS
from altershield.api.resources import API_VERSION
from command.install import rbac
from kube_base.processes import free_ports
from tests.docs.pages import ROOT, blocks
from tests.e2e.conftest import govern
from tests.e2e.own_installation import Answer, installation, serving
from tests.e2e.sleep import SUSPEND, VERSION, sleep, succeed
from tests.support.kubectl import Json, Kubectl
from tests.support.polling import eventually

pytestmark = pytest.mark.xdist_group("server")

KEY = b"shared-key"


@dataclass
class Receiver:
    """A receiver of the check `http`. It answers with the next of `answers`; the last one is repeated."""

    answers: list[tuple[int, Any]] = field(default_factory=lambda: [(200, {})])
    received: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    url: str = ""

    def answer(self) -> tuple[int, Any]:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@dataclass(frozen=True)
class Installed:
    kubeconfig: Path
    receiver: Receiver


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    found = Receiver()

    def answer(headers: dict[str, str], body: bytes) -> Answer:
        found.received.append((headers, body))
        status, content = found.answer()
        elsewhere = {"Location": "http://169.254.169.254/latest/meta-data"} if 300 <= status < 400 else {}
        return status, elsewhere, content

    with serving(answer) as url:
        found.url = f"{url}/verify"
        yield found


@pytest.fixture(scope="module")
def installed(
    has_kubectl: None, request: pytest.FixtureRequest, receiver: Receiver, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installed]:
    """A cluster of its own, with an installation whose checks may call the receiver."""
    if request.config.getoption("--kubeconfig"):
        pytest.skip("needs a cluster without AlterShield: the one of --kubeconfig has an installation already")
    port = free_ports(1)[0]
    callbacks = ["--callback-port", str(port), "--callback-url", f"http://127.0.0.1:{port}/"]
    hosts = ["--checks-allowed-hosts", "127.0.0.1,*.svc"]
    with installation(tmp_path_factory.mktemp("checks"), *callbacks, *hosts) as kubeconfig:
        yield Installed(kubeconfig, receiver)


@pytest.fixture
def kubectl(installed: Installed) -> Iterator[Kubectl]:
    namespace = f"checks-{uuid.uuid4().hex[:8]}"
    govern(installed.kubeconfig, [namespace])
    installed.receiver.answers[:] = [(200, {})]
    installed.receiver.received.clear()
    kubectl = Kubectl(installed.kubeconfig, namespace)
    yield kubectl
    kubectl.delete_namespaces(namespace)


def policy(kubectl: Kubectl, *checks: Json, **spec: Any) -> None:
    body = {"apiVersion": API_VERSION, "kind": "DefensePolicy", "metadata": {"name": "rules"}}
    kubectl.apply(json.dumps({**body, "spec": {**spec, "checks": list(checks)}}))

    def accepted() -> bool:
        conditions = kubectl.json("defensepolicy", "rules").get("status", {}).get("conditions", [])
        return any(each["type"] == "Accepted" and each["status"] == "True" for each in conditions)

    eventually(accepted, "the policy to be accepted")


def create_secret(kubectl: Kubectl) -> None:
    """Create the Secret `hook` without its label, and let AlterShield read it."""
    kubectl("create", "secret", "generic", "hook", f"--from-literal=hmac={KEY.decode()}")
    for obj in rbac.secret_reader(kubectl.namespace, "hook", system_namespace="altershieldoperator-system"):
        kubectl.apply(json.dumps(obj))


def by_http(url: str, **more: Any) -> Json:
    return {"name": "smoke", "timeoutSeconds": 20, "onUnknown": "fail", "http": {"url": url, **more}}


def by_job(image: str, timeout: int = 30, **spec: Any) -> Json:
    env = [{"name": "VERSION", "value": "{{version}}"}, {"name": "PODS", "value": "{{pods}}"}]
    pod = {"restartPolicy": "Never", "containers": [{"name": "smoke", "image": image, "env": env}]}
    labels = {"app": "sleep", VERSION: "0" * 32}  # as pods of the workload have them
    template = {"spec": {"backoffLimit": 0, "template": {"metadata": {"labels": labels}, "spec": pod}, **spec}}
    return {"name": "smoke", "timeoutSeconds": timeout, "onUnknown": "fail", "job": {"template": template}}


def release(kubectl: Kubectl) -> str:
    kubectl.apply(sleep(replicas=1))
    return kubectl.labels("deployment", "sleep")[VERSION]


def suspended(kubectl: Kubectl, version: str) -> None:
    name = f"sleep--x--{version}"
    eventually(lambda: kubectl.exists("changeworkload", name), name)
    kubectl.wait(f"changeworkload/{name}", "jsonpath={.status.status}=Suspend")
    eventually(lambda: SUSPEND in kubectl.labels("deployment", "sleep"), "the label suspend")


def checks(kubectl: Kubectl) -> list[Json]:
    """The checks of all batches."""
    return [each for batch in kubectl.json("changepods")["items"] for each in batch["status"].get("checks", [])]


def test_release_passes_the_http_check_of_each_batch(kubectl: Kubectl, receiver: Receiver) -> None:
    receiver.answers[:] = [(202, {}), (503, {}), (200, {"verdict": "pass", "message": "all good"})]
    policy(kubectl, by_http(receiver.url, metadata={"team": "a"}))
    version = release(kubectl)
    succeed(kubectl, version)
    (check,) = checks(kubectl)
    assert (check["name"], check["phase"], check["state"]) == ("smoke", "Post", "Passed")
    assert check["reason"] == "all good"
    assert len(receiver.received) == 3
    assert len({(headers["Idempotency-Key"], body) for headers, body in receiver.received}) == 1
    sent = json.loads(receiver.received[0][1])
    assert (sent["name"], sent["namespace"], sent["checksum"]) == ("sleep", kubectl.namespace, version)
    assert sent["metadata"] == {"team": "a"}
    assert len(sent["altershield"]["pods"]) == 1
    assert not any("authorization" in name.lower() for headers, _ in receiver.received for name in headers)


def test_release_that_the_http_check_fails_is_suspended(kubectl: Kubectl, receiver: Receiver) -> None:
    receiver.answers[:] = [(200, {"verdict": "fail", "message": "12 % of requests fail"})]
    policy(kubectl, by_http(receiver.url))
    suspended(kubectl, release(kubectl))
    assert [each["reason"] for each in checks(kubectl)] == ["12 % of requests fail"]


def test_request_is_signed_with_the_labelled_secret_and_a_secret_without_the_label_is_not_used(
    kubectl: Kubectl, receiver: Receiver
) -> None:
    create_secret(kubectl)
    policy(kubectl, by_http(receiver.url, secretRef={"name": "hook"}))
    version = release(kubectl)
    suspended(kubectl, version)
    assert receiver.received == []
    assert CREDENTIALS in checks(kubectl)[0]["reason"]
    kubectl("label", "secret", "hook", f"{CREDENTIALS}=true")
    kubectl("delete", "deployment", "sleep")
    eventually(lambda: kubectl.json("changeworkloads")["items"] == [], "the releases to be deleted")
    succeed(kubectl, release(kubectl))
    headers, body = receiver.received[-1]
    wanted = hmac.new(KEY, headers["X-AlterShield-Timestamp"].encode() + b"." + body, hashlib.sha256).hexdigest()
    assert headers["X-AlterShield-Signature"] == f"sha256={wanted}"


def callback_commands() -> str:
    """The commands in docs/checks.md that send a callback."""
    page = (ROOT / "docs" / "checks.md").read_text()
    (found,) = (each.text for each in blocks(page) if each.language == "sh" and "curl" in each.text)
    return found


def offered(receiver: Receiver) -> dict[str, str]:
    """What the first request says about callbacks."""
    eventually(lambda: receiver.received, "a request")
    found: dict[str, str] = json.loads(receiver.received[0][1])["altershield"]["callback"]
    return found


@pytest.mark.parametrize(("verdict", "answer"), [("pass", (202, {})), ("fail", (200, {"verdict": "callback"}))])
def test_commands_of_the_documentation_send_the_verdict_of_a_receiver_that_answers_later(
    kubectl: Kubectl, receiver: Receiver, verdict: str, answer: tuple[int, Any]
) -> None:
    receiver.answers[:] = [answer]
    create_secret(kubectl)
    kubectl("label", "secret", "hook", f"{CREDENTIALS}=true")
    policy(kubectl, by_http(receiver.url, secretRef={"name": "hook"}) | {"timeoutSeconds": 120})
    version = release(kubectl)
    offer = offered(receiver)
    script = callback_commands()
    if verdict == "fail":
        assert '\\"pass\\"' in script
        script = script.replace('\\"pass\\"', '\\"fail\\"')

    def send(key: str) -> subprocess.CompletedProcess[str]:
        environment = {"RUN": offer["run"], "URL": offer["url"], "KEY": key, "PATH": os.environ["PATH"]}
        return subprocess.run(["sh", "-c", script], env=environment, capture_output=True, text=True, timeout=60)

    forged = send("other-key")
    assert (forged.returncode, '"success":false' in forged.stdout) == (22, True), forged
    sent = send(KEY.decode())
    assert (sent.returncode, '"success":true' in sent.stdout) == (0, True), sent
    if verdict == "pass":
        succeed(kubectl, version)
    else:
        suspended(kubectl, version)
    (check,) = checks(kubectl)
    assert check["reason"] == "all orders arrived"


def test_check_without_a_secret_offers_no_callback_and_its_reason_says_so(kubectl: Kubectl, receiver: Receiver) -> None:
    receiver.answers[:] = [(202, {})]
    policy(kubectl, by_http(receiver.url) | {"timeoutSeconds": 3})
    suspended(kubectl, release(kubectl))
    (check,) = checks(kubectl)
    assert check["state"] == "Unknown"
    assert "a callback is not accepted: the check has no secretRef" in check["reason"]
    assert "callback" not in json.loads(receiver.received[0][1])["altershield"]


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://169.254.169.254/latest/meta-data", "is not allowed"),
        ("http://localhost:1/", "is not allowed"),
        ("https://kubernetes.default.svc/api/v1/secrets", "is the API server"),
        ("http://user:password@hooks.shop.svc/", "the URL is not valid"),
    ],
)
def test_url_that_is_not_allowed_is_never_requested(kubectl: Kubectl, url: str, why: str) -> None:
    body = {"apiVersion": API_VERSION, "kind": "DefensePolicy", "metadata": {"name": "rules"}}
    kubectl.apply(json.dumps({**body, "spec": {"checks": [by_http(url)]}}))

    def rejected() -> str:
        conditions = kubectl.json("defensepolicy", "rules").get("status", {}).get("conditions", [])
        found = [each["message"] for each in conditions if each["type"] == "Accepted" and each["status"] == "False"]
        return "".join(found)

    message = eventually(rejected, "the policy to be rejected")
    assert why in message
    assert "password" not in message.partition("the URL is not valid")[0]


def test_redirect_is_not_followed(kubectl: Kubectl, receiver: Receiver) -> None:
    receiver.answers[:] = [(302, {})]
    policy(kubectl, by_http(receiver.url))
    suspended(kubectl, release(kubectl))
    (check,) = checks(kubectl)
    assert check["state"] == "Unknown"
    assert "redirect" in check["reason"]


def test_release_passes_a_job_which_is_deleted_and_whose_pods_are_not_verified(kubectl: Kubectl) -> None:
    policy(kubectl, by_job("busybox:completes-after-1s"))
    kubectl.apply(sleep(replicas=1))
    found = eventually(lambda: kubectl.json("jobs")["items"], "the Job")
    (job,) = found
    (owner,) = job["metadata"]["ownerReferences"]
    assert owner["kind"] == "ChangePod"
    assert job["metadata"]["labels"][CHECK] == "smoke"
    container = job["spec"]["template"]["spec"]["containers"][0]
    env = {each["name"]: each["value"] for each in container["env"]}
    version = kubectl.labels("deployment", "sleep")[VERSION]
    assert env["VERSION"] == version
    succeed(kubectl, version)
    (check,) = checks(kubectl)
    assert (check["state"], check["handle"]) == ("Passed", job["metadata"]["uid"])
    (batch,) = kubectl.json("changepods")["items"]
    verified = {each["pod"] for each in batch["spec"]["podInfos"]}
    assert {env["PODS"]} == verified, "a pod of the Deployment, and no pod of the Job"
    eventually(lambda: kubectl.json("jobs")["items"] == [], "the Job to be deleted")


def test_release_that_a_job_fails_is_suspended_with_the_end_of_its_log(kubectl: Kubectl) -> None:
    policy(kubectl, by_job("busybox:exits-after-500ms", ttlSecondsAfterFinished=3600))
    suspended(kubectl, release(kubectl))
    (check,) = checks(kubectl)
    assert check["state"] == "Failed"
    assert "failed: busybox:exits-after-500ms exits with 1" in check["reason"]
    assert len(kubectl.json("jobs")["items"]) == 1, "people read the log of a failed Job"


def test_job_that_does_not_finish_is_unknown_and_its_pods_end(kubectl: Kubectl) -> None:
    policy(kubectl, by_job("busybox", timeout=5))
    suspended(kubectl, release(kubectl))
    (check,) = checks(kubectl)
    assert check["state"] == "Unknown"
    eventually(lambda: kubectl.json("jobs")["items"] == [], "the Job to be deleted")
    names = [pod["metadata"]["name"] for pod in kubectl.json("pods")["items"]]
    eventually(lambda: all(not name.startswith("smoke-") for name in names), "the pods of the Job to be deleted")
