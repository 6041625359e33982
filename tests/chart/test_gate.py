"""The gate as the chart would run it: its own arguments, account and permissions, on any API.

Nothing runs containers here, so the processes of the pod run on this machine, and the webhooks are pointed at them.
"""

import contextlib
import functools
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from altershield.api.names import SYSTEM_NAMESPACE, change_pod_number
from altershield.commands.story import STEPS, Story
from altershield.kube.client import Client
from reconciler.decisions.change_workloads import KEPT_RECORDS
from tests.chart.recorder import Recorder, Request, recording, request
from tests.chart.release import Release
from tests.chart.rendering import RELEASE, Object, containers, variables
from tests.e2e.conftest import SLEEP, Kubectl, eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300), pytest.mark.xdist_group("e2e")]

START_TIMEOUT = 8

NEVER_ASKED = {
    # enforced by the admission plugin OwnerReferencesPermissionEnforcement, never requested
    ("update", "apps", "deployments/finalizers"),
    ("update", "app.ops.cloud.alipay.com", "changeworkloads/finalizers"),
    # by the same plugin, of who sets an owner; asked when the namespace ends, see test_another_namespace
    ("delete", "admissionregistration.k8s.io", "mutatingwebhookconfigurations"),
    ("delete", "admissionregistration.k8s.io", "validatingwebhookconfigurations"),
}


@pytest.fixture(scope="module")
def system(cluster: Path, has_kubectl: None) -> Kubectl:
    return Kubectl(cluster, SYSTEM_NAMESPACE)


@pytest.fixture(scope="module")
def release(cluster: Path) -> Iterator[Release]:
    release = Release(cluster)
    yield release
    release.uninstall()


@pytest.fixture(scope="module")
def recorder(release: Release, system: Kubectl, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorder]:
    """The release is installed, and its gate is up; what that asks the API server for is noted."""
    directory = tmp_path_factory.mktemp("gate")
    for left in ("opsconfiginfoes", "leases"):  # by a gate of before
        system.run("delete", left, "--all")
    release.install({"reconciler": {"startTimeoutSeconds": START_TIMEOUT, "batchWaitSeconds": 2}})
    # whatever a Secret of certgen's name holds, the gate comes up: this one has to be replaced
    immutable = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": f"{RELEASE}-tls"}, "immutable": True}
    system("create", "-f", "-", stdin=json.dumps(immutable))
    deployment = system.json("deployment", RELEASE)
    system("delete", "deployment", RELEASE)  # what simulated nodes would only pretend to run
    with recording(str(system.kubeconfig)) as recorder, contextlib.ExitStack() as running:
        kubeconfig = account(system, RELEASE, recorder.url, directory)
        ports = {name: free_port() for name in ("webhook", *containers(deployment))}
        for name, container in containers(deployment).items():
            command = here(container, ports, directory)
            running.enter_context(process(command, kubeconfig, directory / f"{name}.log"))
        point_webhooks_here(system, ports["webhook"])
        try:
            eventually(lambda: is_ready(ports["gatekeeper"]) and is_ready(ports["reconciler"]), "the gate to be ready")
            yield recorder
        finally:
            for log in directory.glob("*.log"):
                print(f"--- {log.name}\n{log.read_text()[-4000:]}")


class Command(NamedTuple):
    """What a container runs, without the interpreter, and what of its environment is its own."""

    arguments: list[str]
    variables: dict[str, str]


def here(container: Object, ports: dict[str, int], directory: Path) -> Command:
    """The container's command, on this machine's ports and directories."""
    own = {
        "--port=9443": f"--port={ports['webhook']}",
        "--directory=/certificates": f"--directory={directory}",
        "--tls-cert-file=/certificates/tls.crt": f"--tls-cert-file={directory}/tls.crt",
        "--tls-private-key-file=/certificates/tls.key": f"--tls-private-key-file={directory}/tls.key",
    }
    arguments = [own.get(argument, argument) for argument in container["args"]]
    arguments = [
        f"--metrics-port={ports[container['name']]}" if argument.startswith("--metrics-port=") else argument
        for argument in arguments
        if not argument.startswith("--shutdown-delay=")
    ]
    environment = variables(container)
    if container["name"] == "certgen":
        environment["ALTERSHIELD_SAN"] = f"127.0.0.1 {RELEASE}.{SYSTEM_NAMESPACE}.svc"
    if container["name"] == "gatekeeper":
        arguments += ["--host=127.0.0.1", "--shutdown-delay=0"]
    return Command([*container["command"][1:], *arguments], environment)


@contextlib.contextmanager
def process(command: Command, kubeconfig: Path, log: Path, python: str = sys.executable) -> Iterator[None]:
    environment = {**os.environ, **command.variables, "ALTERSHIELD_KUBECONFIG": str(kubeconfig)}
    with log.open("wb") as out:
        started = subprocess.Popen(
            [python, *command.arguments], stdout=out, stderr=out, env=environment, cwd=log.parent
        )
    try:
        yield
        assert started.poll() is None, f"{command.arguments[:2]} ended:\n{log.read_text()}"
    finally:
        started.send_signal(signal.SIGTERM)
        started.wait(60)


def account(system: Kubectl, name: str, server: str, directory: Path) -> Path:
    """A kubeconfig for a service account of the release."""
    token = system("create", "token", name, "--duration=1h").strip()
    kubeconfig = directory / f"{name}.kubeconfig"
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "it",
        "clusters": [{"name": "it", "cluster": {"server": server}}],
        "users": [{"name": "it", "user": {"token": token}}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
    }
    kubeconfig.touch(mode=0o600)
    kubeconfig.write_text(yaml.safe_dump(content))
    return kubeconfig


def point_webhooks_here(system: Kubectl, port: int) -> None:
    for kind in ("mutatingwebhookconfiguration", "validatingwebhookconfiguration"):
        (webhook,) = system.json(kind, RELEASE)["webhooks"]
        url = f"https://127.0.0.1:{port}{webhook['clientConfig']['service']['path']}"
        place = "/webhooks/0/clientConfig"
        patch = [
            {"op": "add", "path": f"{place}/url", "value": url},
            {"op": "remove", "path": f"{place}/service"},
        ]
        system("patch", kind, RELEASE, "--type=json", "-p", json.dumps(patch))


def is_ready(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1) as connection:
        connection.sendall(b"GET /readyz HTTP/1.0\r\n\r\n")
        return b" 200 " in connection.recv(64)
    return False


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def test_all_that_the_gate_does_needs_every_permission_and_no_other(
    recorder: Recorder, system: Kubectl, cluster: Path
) -> None:
    async with await Client.connect(str(cluster)) as client:
        story = Story(client, START_TIMEOUT)
        async with story.watching():
            for step in STEPS:
                await step.run(story)
    reject_a_setting_twice(system)
    replace_pods_until_records_go(Kubectl(cluster, "altershield-permissions"))
    release_past_the_gate(Kubectl(cluster, "altershield-slips"))

    granted = {"ClusterRole": system.json("clusterrole", RELEASE), "Role": system.json("role", RELEASE)}
    assert recorder.forbidden == [], "needed, but not granted"
    unused = set()
    for kind, role in granted.items():
        for rule in role["rules"]:
            names = set(rule.get("resourceNames", ()))
            for verb, group, resource in flat(rule):
                used = any(
                    (each.verb, each.group, each.resource) == (verb, group, resource)
                    and (not names or each.name in names)
                    and (kind == "ClusterRole" or each.namespace == SYSTEM_NAMESPACE)
                    for each in recorder.asked
                )
                if not used and (verb, group, resource) not in NEVER_ASKED:
                    unused.add((kind, verb, group, resource))
    assert unused == set(), "granted, but not needed"


def reject_a_setting_twice(system: Kubectl) -> None:
    """The same Event again is not written anew, but counted."""
    for content, accepted in (("many", "False"), ("10", "True"), ("many", "False"), ("10", "True")):
        patch = json.dumps({"spec": {"content": content, "enable": True}})
        system("patch", "opsconfiginfo", "branch", "--type=merge", "-p", patch)
        system.wait("opsconfiginfo/branch", f'jsonpath={{.status.conditions[?(@.type=="Accepted")].status}}={accepted}')
    system("patch", "opsconfiginfo", "branch", "--type=merge", "-p", '{"spec":{"enable":false}}')

    def counted() -> bool:
        events = system.json("events", "--field-selector", "reason=SettingRejected")["items"]
        return 2 in [event.get("count") for event in events]

    eventually(counted, "the second rejection to be counted")


def replace_pods_until_records_go(kubectl: Kubectl) -> None:
    """Records of pods that are gone are kept only up to a number."""
    kubectl("create", "namespace", kubectl.namespace)
    kubectl("label", "namespace", kubectl.namespace, "admission-webhook-altershield=enabled")
    try:
        eventually(lambda: kubectl.run("apply", "-f", "-", stdin=SLEEP).returncode == 0, "sleep to be applied")
        for records in range(5, KEPT_RECORDS + 6, 5):
            eventually(functools.partial(has_record, kubectl, records), f"record {records}")
            kubectl("delete", "pods", "--all", "--grace-period=0", "--force")
        eventually(lambda: not has_record(kubectl, 1), "the oldest record to go")
    finally:
        kubectl.run("delete", "namespace", kubectl.namespace)


def release_past_the_gate(kubectl: Kubectl) -> None:
    """A release from while the namespace was not governed gets its version afterwards."""
    governed = ("label", "namespace", kubectl.namespace, "admission-webhook-altershield=enabled")
    kubectl("create", "namespace", kubectl.namespace)
    kubectl(*governed)
    try:
        eventually(lambda: kubectl.run("apply", "-f", "-", stdin=SLEEP).returncode == 0, "sleep to be applied")
        eventually(functools.partial(has_record, kubectl, 1), "its first record")
        kubectl("label", "namespace", kubectl.namespace, "admission-webhook-altershield-")
        eventually(lambda: "antgroup" not in dry_run(kubectl), "the namespace not to be governed")
        kubectl("set", "image", "deployment/sleep", "sleep=busybox:2")
        kubectl(*governed)
        recorded = ("events", "--field-selector", "reason=ReleaseSlipped")
        eventually(lambda: kubectl.json(*recorded)["items"], "the slip to be recorded")
        version = "admission-webhook-altershield.antgroup.com/version"
        eventually(lambda: len({rs["metadata"]["labels"][version] for rs in replica_sets(kubectl)}) == 2, "its version")
    finally:
        kubectl.run("delete", "namespace", kubectl.namespace)


def dry_run(kubectl: Kubectl) -> str:
    probe = SLEEP.replace("name: sleep", "name: probe")
    return kubectl("create", "--dry-run=server", "-o", "json", "-f", "-", stdin=probe)


def replica_sets(kubectl: Kubectl) -> list[Object]:
    found: list[Object] = kubectl.json("replicasets")["items"]
    return found


def has_record(kubectl: Kubectl, number: int) -> bool:
    records = kubectl.json("changepods")["items"]
    return number in [change_pod_number(record["metadata"]["name"]) for record in records]


def flat(rule: Object) -> Iterator[tuple[str, str, str]]:
    for group in rule["apiGroups"]:
        for resource in rule["resources"]:
            for verb in rule["verbs"]:
                yield verb, group, resource


def test_webhooks_and_keys_end_with_the_release_however_it_is_taken_away(recorder: Recorder, system: Kubectl) -> None:
    """A GitOps tool deletes what it applied, in its own order, runs no hooks, and leaves alone what has an owner."""
    owned = ("mutatingwebhookconfiguration/altershield", "validatingwebhookconfiguration/altershield")
    for each in (*owned, f"secret/{RELEASE}-tls"):
        eventually(functools.partial(owners, system, each), f"{each} to be owned")
    system("delete", "clusterrole", RELEASE)
    for each in (*owned, f"secret/{RELEASE}-tls"):
        system("wait", each, "--for=delete", "--timeout=60s")


def owners(system: Kubectl, what: str) -> list[Object]:
    found: list[Object] = system.json(what)["metadata"].get("ownerReferences", [])
    return found


def test_the_recorder_understands_requests() -> None:
    group = "apis/apps/v1"
    assert request("GET", f"/{group}/deployments", "watch=true") == Request("watch", "apps", "deployments", "", "")
    assert request("PATCH", f"/{group}/namespaces/a/deployments/b/status", "") == Request(
        "patch", "apps", "deployments/status", "a", "b"
    )
    assert request("GET", "/api/v1/namespaces/a/secrets", "fieldSelector=metadata.name%3Db") == Request(
        "list", "", "secrets", "a", "b"
    )
    assert request("GET", "/api/v1/namespaces/a", "") == Request("get", "", "namespaces", "", "a")
    assert request("GET", "/healthz", "") is None
