"""Releases in steps while no gatekeeper answers, while one of an older version does, and with another webhook."""

import base64
import contextlib
import datetime
import functools
import http.server
import json
import ssl
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from altershield.api.annotations import ROLLOUT
from altershield.api.names import service_account_user
from command.dev_webhooks import CONFIGURATION
from kube_base.pki import Authority
from tests.e2e.held_releases import (
    apply,
    pods_by_version,
    policy,
    reach,
    rollout,
    state,
    without_template,
)
from tests.e2e.sleep import VERSION, release, sets_version, sleep, succeed
from tests.support.kubectl import Json, Kubectl
from tests.support.polling import eventually

MUTATING, VALIDATING = "mutatingwebhookconfiguration", "validatingwebhookconfiguration"
NOBODY = "https://127.0.0.1:1"


@contextlib.contextmanager
def gone(kubectl: Kubectl, *kinds: str) -> Iterator[None]:
    """Run the block while no gatekeeper answers for these configurations, and the failure policy is `Ignore`."""
    before = {kind: kubectl.json(kind, CONFIGURATION)["webhooks"] for kind in kinds}

    def configure(kind: str, webhooks: list[Json]) -> None:
        patch = [{"op": "replace", "path": "/webhooks", "value": webhooks}]
        kubectl("patch", kind, CONFIGURATION, "--type=json", "-p", json.dumps(patch))

    def is_asked() -> bool:
        """Whether gatekeepers review a release: without the mutating webhook, the validating one denies it."""
        done = kubectl.run("set", "image", "deployment/sleep", "sleep=probe", "--dry-run=server", "-o", "json")
        return done.returncode != 0 or sets_version(kubectl)

    try:
        for kind, webhooks in before.items():
            url = {"clientConfig": {"url": f"{NOBODY}/gone"}, "failurePolicy": "Ignore"}
            configure(kind, [{**each, **url} for each in webhooks])
        eventually(lambda: not sets_version(kubectl) and is_asked() is (VALIDATING not in kinds), "no gatekeeper")
        yield
    finally:
        for kind, webhooks in before.items():
            configure(kind, webhooks)
        eventually(lambda: sets_version(kubectl), "the gatekeepers to be back")


@pytest.fixture
def base(kubectl: Kubectl) -> str:
    """The version of a Deployment of which releases are held."""
    found = release(kubectl, sleep(replicas=4))
    policy(kubectl, {"pods": [1, "50%"], "soakSeconds": 4})
    return found


def condition(kubectl: Kubectl, version: str) -> Json:
    found = kubectl.json("changeworkload", f"sleep--x--{version}")["status"]["conditions"]
    return next((each for each in found if each["type"] == "Progressing"), {})


def test_nothing_but_scaling_moves_while_no_gatekeeper_answers(kubectl: Kubectl, base: str) -> None:
    before = kubectl.json("deployment", "sleep")
    version = apply(kubectl, sleep(image="other", replicas=4))
    reach(kubectl, version, 1, "Soaking")
    with gone(kubectl, MUTATING, VALIDATING):
        eventually(lambda: rollout(kubectl, version).get("waitingFor") == ["write"], "the next step to wait")
        said = condition(kubectl, version)["message"]
        assert said == "step 2 of 3: no gatekeeper answers, so the workload is not changed; AlterShield tries again"
        assert pods_by_version(kubectl) == {base: 4, version: 1}
        kubectl("scale", "deployment/sleep", "--replicas=6")
        eventually(lambda: pods_by_version(kubectl).get(base, 0) > 4, "more old pods")
        kubectl("scale", "deployment/sleep", "--replicas=4")
        eventually(lambda: pods_by_version(kubectl) == {base: 4, version: 1}, "as many as before")
        assert rollout(kubectl, version)["waitingSinceUnix"] > 0
    succeed(kubectl, version)
    assert [each["pods"] for each in rollout(kubectl, version)["passedSteps"]] == [1, 2, 4]
    assert without_template(kubectl.json("deployment", "sleep")) == without_template(before)


def test_release_that_is_not_held_is_denied_for_now(kubectl: Kubectl, base: str) -> None:
    text = "AlterShield: deployment sleep was not held at its first step, try again"
    with gone(kubectl, MUTATING):
        done = kubectl.run("apply", "-f", "-", stdin=sleep(image="other", replicas=4))
        assert (done.returncode, text in done.stderr) == (1, True)
        patch: Json = {"spec": {"template": {"metadata": {"labels": {"a": "b"}}}}}
        code, answer = kubectl.merge("deployment", "sleep", patch)
        assert (code, answer["reason"]) == (429, "TooManyRequests")
        kubectl("scale", "deployment/sleep", "--replicas=5")
        kubectl("annotate", "deployment/sleep", "note=1")
    eventually(lambda: pods_by_version(kubectl) == {base: 5}, "no new version")
    version = apply(kubectl, sleep(image="other", replicas=5))
    reach(kubectl, version, 1, "Soaking")
    with gone(kubectl, MUTATING):
        surge = {"spec": {"strategy": {"rollingUpdate": {"maxSurge": 3}}}}
        code, answer = kubectl.merge("deployment", "sleep", surge)
        assert code == 429
        assert "deployment sleep has other values than its release in steps gives it, try again" in answer["message"]


def test_ungated_release_while_another_is_held_is_verified_and_held(kubectl: Kubectl, base: str) -> None:
    before = kubectl.json("deployment", "sleep")
    second = apply(kubectl, sleep(image="other", replicas=4))
    reach(kubectl, second, 1, "Soaking")
    with gone(kubectl, MUTATING, VALIDATING):
        kubectl("set", "image", "deployment/sleep", "sleep=third")
        eventually(lambda: kubectl.labels("deployment", "sleep")[VERSION] != second, "its own version")
        third = kubectl.labels("deployment", "sleep")[VERSION]
        kubectl.wait(f"changeworkload/sleep--x--{third}", "create")
        eventually(lambda: pods_by_version(kubectl) == {base: 4, third: 1}, "no pod of the second version")
    succeed(kubectl, third)
    found = rollout(kubectl, third)
    assert (found["base"], [each["pods"] for each in found["passedSteps"]]) == (base, [1, 2, 4])
    assert without_template(kubectl.json("deployment", "sleep")) == without_template(before)


def test_fields_that_an_older_version_does_not_know_stay_in_the_annotation(kubectl: Kubectl, base: str) -> None:
    before = kubectl.json("deployment", "sleep")
    version = apply(kubectl, sleep(image="other", replicas=4))
    reach(kubectl, version, 1, "Soaking")
    groups = ("--as-group=system:serviceaccounts", "--as-group=system:authenticated")

    def known() -> Json:
        found: Json = json.loads(kubectl.json("deployment", "sleep")["metadata"]["annotations"][ROLLOUT])
        return found

    annotation = json.dumps({**known(), "later": {"a": 1}})
    newer = json.dumps({"metadata": {"annotations": {ROLLOUT: annotation}}})
    kubectl("patch", "deployment", "sleep", "--type=merge", "-p", newer, f"--as={service_account_user()}", *groups)
    kubectl("patch", "deployment", "sleep", "-p", '{"spec":{"minReadySeconds":1}}')
    assert (known()["later"], known()["fields"]["/spec/minReadySeconds"]) == ({"a": 1}, 1)
    reach(kubectl, version, 2, "Soaking")
    assert known()["later"] == {"a": 1}
    succeed(kubectl, version)
    assert without_template(kubectl.json("deployment", "sleep")) == {**without_template(before), "minReadySeconds": 1}


@contextlib.contextmanager
def injector(kubectl: Kubectl, directory: Path) -> Iterator[None]:
    """A mutating webhook that adds a sidecar to the Deployments of the namespace. It is called after AlterShield's,
    which is then called once more."""
    lifetime = datetime.timedelta(hours=1)
    authority = Authority.create("injector", lifetime=lifetime)
    pair = authority.issue("injector", hosts=["127.0.0.1"], lifetime=lifetime)
    file = directory / "injector.pem"
    file.write_bytes(pair.certificate + pair.key)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["request"]
            answer = {"uid": asked["uid"], "allowed": True}
            names = [each["name"] for each in asked["object"]["spec"]["template"]["spec"]["containers"]]
            if "sidecar" not in names:
                sidecar = {"name": "sidecar", "image": "busybox"}
                patch = [{"op": "add", "path": "/spec/template/spec/containers/-", "value": sidecar}]
                answer |= {"patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(patch).encode()).decode()}
            data = json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": answer})
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data.encode())

        def log_message(self, *_: object) -> None:
            pass

    name = f"zz-injector-{uuid.uuid4().hex[:8]}"  # webhooks are called by the names of their configurations
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(file)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        bundle = base64.b64encode(authority.pair.certificate).decode()
        webhook = {
            "name": "injector.example.com",
            "clientConfig": {"url": f"https://127.0.0.1:{server.server_address[1]}/", "caBundle": bundle},
            "rules": [
                {
                    "apiGroups": ["apps"],
                    "apiVersions": ["v1"],
                    "resources": ["deployments"],
                    "operations": ["CREATE", "UPDATE"],
                }
            ],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": kubectl.namespace}},
            "reinvocationPolicy": "IfNeeded",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        made = {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": name},
            "webhooks": [webhook],
        }
        kubectl("create", "-f", "-", stdin=json.dumps(made))
        try:
            eventually(functools.partial(is_injected, kubectl), "the injector to be called")
            yield
        finally:
            kubectl("delete", MUTATING, name)
            server.shutdown()


def is_injected(kubectl: Kubectl) -> bool:
    done = kubectl.run("create", "--dry-run=server", "-o", "json", "-f", "-", stdin=sleep("probe"))
    return done.returncode == 0 and "sidecar" in done.stdout


def test_release_that_another_webhook_changes_is_held_with_the_version_of_its_pods(
    kubectl: Kubectl, tmp_path: Path
) -> None:
    with injector(kubectl, tmp_path):
        base = release(kubectl, sleep(replicas=4))
        before = kubectl.json("deployment", "sleep")
        policy(kubectl, {"pods": [1, "50%"], "soakSeconds": 3})
        version = apply(kubectl, sleep(image="other", replicas=4))
        found = kubectl.json("deployment", "sleep")
        known = json.loads(found["metadata"]["annotations"][ROLLOUT])
        assert (known["version"], known["base"]) == (version, base)
        assert len(found["spec"]["template"]["spec"]["containers"]) == 2
        assert apply(kubectl, sleep(image="other", replicas=4)) == version
        assert kubectl.json("deployment", "sleep")["spec"] == found["spec"], "applying it again changes nothing"
        reach(kubectl, version, 1, "Soaking")
        assert pods_by_version(kubectl) == {base: 4, version: 1}
        succeed(kubectl, version)
        assert without_template(kubectl.json("deployment", "sleep")) == without_template(before)
        assert state(kubectl, version) == "Success"
