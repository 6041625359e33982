"""AlterShield's processes with the chart's arguments and permissions for an AlterShield server."""

import base64
import contextlib
import http.client
import json
import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from altershield.api.names import SYSTEM_NAMESPACE
from kube_sandbox.altershield_server import signature
from kube_sandbox.altershield_server.callbacks import callback_body
from kube_sandbox.altershield_server.rules import verdict_body
from kube_sandbox.altershield_server.server import AlterShieldServer
from kube_sandbox.altershield_server.vocabulary import Stage
from tests.chart.governed import govern, namespace
from tests.chart.pod import pod_of, point_webhooks_here, wait_until_ready
from tests.chart.release import Release
from tests.chart.rendering import RELEASE
from tests.e2e.sleep import release as released
from tests.e2e.sleep import sleep
from tests.support.kubectl import Kubectl
from tests.support.polling import eventually
from tests.support.threads import in_a_thread

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("chart")]

NAMESPACE = "altershield-server-test"
SERVICE = f"{RELEASE}-callbacks.{SYSTEM_NAMESPACE}.svc"
TOKEN = "the-platform-token"
PREFIX = "/openapi/altershield"
REVIEWS = {
    ("create", "authentication.k8s.io", "tokenreviews"),
    ("create", "authorization.k8s.io", "subjectaccessreviews"),
}


class CallbackPort:
    """The callback port of this machine, as a client sees it that trusts the CA of the release's Secret."""

    def __init__(self, port: int, authority: bytes) -> None:
        self._port = port
        self._context = ssl.create_default_context(cadata=authority.decode())

    def __call__(
        self, method: str, path: str, headers: Mapping[str, str] | None = None, body: bytes = b""
    ) -> tuple[int, dict[str, Any]]:
        """The status and the body of the answer. The certificate must be for the Service."""
        connection = http.client.HTTPSConnection(SERVICE, self._port, context=self._context, timeout=30)
        with contextlib.closing(connection):
            plain = socket.create_connection(("127.0.0.1", self._port), 30)
            connection.sock = self._context.wrap_socket(plain, server_hostname=SERVICE)
            connection.request(method, PREFIX + path, body, dict(headers or {}))
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())


@pytest.fixture
def server() -> Iterator[AlterShieldServer]:
    """It refuses requests that are not signed with the token."""
    with in_a_thread(AlterShieldServer(token=TOKEN)) as server:
        yield server


@pytest.fixture
def shop(system: Kubectl) -> Iterator[Kubectl]:
    """kubectl in a namespace that is not governed yet."""
    with namespace(Kubectl(system.kubeconfig, NAMESPACE)) as kubectl:
        yield kubectl


def test_releases_are_checked_by_the_server_and_the_callback_port_serves_https(
    release: Release, system: Kubectl, shop: Kubectl, server: AlterShieldServer, tmp_path: Path
) -> None:
    for left in ("opsconfiginfoes", "leases"):  # of an earlier release
        system.run("delete", left, "--all")
    values = {"url": server.url, "tokenSecret": {"name": "altershield-server"}, "callbacks": {"enabled": True}}
    release.install({"server": values})
    deployment = system.json("deployment", RELEASE)
    system("delete", "deployment", RELEASE)  # simulated nodes run no processes
    (tmp_path / "token").write_text(TOKEN)
    with pod_of(system, deployment, tmp_path) as pod:
        point_webhooks_here(system, pod.ports["webhook"])
        wait_until_ready(pod.ports, "gatekeeper", "reconciler")
        check_releases(shop, server)
        secret = system.json("secret", f"{RELEASE}-tls")["data"]
        request = CallbackPort(pod.ports["callbacks"], base64.b64decode(secret["ca.crt"]))
        check_callbacks(request, server)
        check_tools(request, shop)
        assert pod.recorder.forbidden == []
        assert {(each.verb, each.group, each.resource) for each in pod.recorder.asked} >= REVIEWS


def check_releases(shop: Kubectl, server: AlterShieldServer) -> None:
    govern(shop)
    version = released(shop, sleep(replicas=1))
    (order,) = server.orders.values()
    assert order.platform == "kubernetes"
    status = shop.json("changeworkload", f"sleep--x--{version}")["status"]
    assert {each["type"]: each["status"] for each in status["conditions"]}["Reported"] == "True"
    (batch,) = shop.json("changepods")["items"]
    assert batch["status"]["message"] == "PostFinish"


def check_callbacks(request: CallbackPort, server: AlterShieldServer) -> None:
    (node,) = server.nodes.values()
    executions = node.checks[Stage.POST].executions
    body = callback_body(node, Stage.POST, verdict_body("pass", executions)).encode()
    signed = signature.headers("kubernetes", TOKEN, signature.post_content(body), round(time.time() * 1000))
    forged = signature.headers("kubernetes", "other", signature.post_content(body), round(time.time() * 1000))
    assert request("POST", "/callback", forged, body)[0] == 401
    status, answer = request("POST", "/callback", signed, body)
    assert (status, answer["success"]) == (200, True)


def check_tools(request: CallbackPort, shop: Kubectl) -> None:
    path = f"/suspend/deployment?namespace={NAMESPACE}"
    assert request("GET", path)[0] == 401

    shop("create", "serviceaccount", "tool")
    bearer = {"Authorization": "Bearer " + shop("create", "token", "tool", "--duration=1h").strip()}
    assert request("GET", path, bearer)[0] == 403
    shop("create", "rolebinding", "tool", "--clusterrole=view", f"--serviceaccount={NAMESPACE}:tool")
    eventually(lambda: request("GET", path, bearer)[0] == 200, "the permission to be known")
