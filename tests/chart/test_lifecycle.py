"""Install, upgrade, roll back, uninstall: with the real Helm engine, on a live API."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import helm_python
import pytest

from altershield.api.names import SYSTEM_NAMESPACE
from tests.chart.release import Release, changed_chart
from tests.chart.rendering import CHART, OPERATORS, RELEASE, Object, is_hook, rendered
from tests.e2e.conftest import Kubectl, eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300), pytest.mark.xdist_group("e2e")]

WEBHOOKS = "mutatingwebhookconfigurations,validatingwebhookconfigurations"
RECORD: Object = {
    "apiVersion": "app.ops.cloud.alipay.com/v1alpha1",
    "kind": "ChangeWorkload",
    "metadata": {"name": "kept"},
    "spec": {
        "changeWorkloadId": "kept",
        "serviceName": "kept",
        "appName": "kept",
        "reversion": "1",
        "countThreshold": 1,
        "waitTimeThreshold": 60,
        "createTime": "2026-01-01 00:00:00",
        "createTimeUnix": 1767225600,
    },
}


@pytest.fixture
def system(cluster: Path, has_kubectl: None) -> Kubectl:
    """The admin in the system namespace."""
    return Kubectl(cluster, SYSTEM_NAMESPACE)


@pytest.fixture
def release(cluster: Path) -> Iterator[Release]:
    release = Release(cluster)
    yield release
    release.uninstall()


def left(system: Kubectl, kinds: str) -> list[str]:
    """The names of what there is of the release."""
    labels = f"app.kubernetes.io/instance={RELEASE}"
    return system("get", kinds, "-A", "-l", labels, "-o", "name").split()


def test_a_release_is_installed_upgraded_rolled_back_and_uninstalled(
    release: Release, system: Kubectl, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    on_own_nodes = not request.config.getoption("--kubeconfig")  # which simulate any image
    assert release.install(wait=on_own_nodes)["status"] == "deployed"
    assert len(left(system, WEBHOOKS)) == 2
    if on_own_nodes:
        system.wait(f"deployment/{RELEASE}", "condition=Available")
        pods = system.json("pods", "-l", "app.kubernetes.io/component=gate")["items"]
        assert len({pod["spec"]["nodeName"] for pod in pods}) == 3
    system("create", "-f", "-", stdin=json.dumps(RECORD))
    publish(system, "Q0E=")

    upgraded = release.upgrade({"replicas": 2, "webhooks": {"validating": {"failurePolicy": "Ignore"}}},
                               changed_chart(tmp_path))  # fmt: skip
    assert upgraded["revision"] == 2
    assert system.json("deployment", RELEASE)["spec"]["replicas"] == 2
    (webhook,) = system.json("validatingwebhookconfiguration", RELEASE)["webhooks"]
    assert webhook["failurePolicy"] == "Ignore"
    assert webhook["clientConfig"]["caBundle"] == "Q0E=", "an upgrade leaves alone what certgen published"
    assert system.json("changeworkload", "kept")["spec"] == RECORD["spec"]
    system("patch", "changeworkload", "kept", "--type=merge", "-p", '{"spec":{"ticket":"CHG-1"}}')
    eventually(lambda: "ticket" in system.json("changeworkload", "kept")["spec"], "the new schema to be served")

    release.rollback(1)
    assert system.json("deployment", RELEASE)["spec"]["replicas"] == 3
    (webhook,) = system.json("validatingwebhookconfiguration", RELEASE)["webhooks"]
    assert webhook["failurePolicy"] == "Fail"
    assert webhook["clientConfig"]["caBundle"] == "Q0E="

    release.uninstall()
    assert left(system, f"{WEBHOOKS},clusterroles,clusterrolebindings,deployments,services,serviceaccounts") == []
    assert len(left(system, "customresourcedefinitions")) == 3, "records of releases outlive the release"
    assert system.json("changeworkload", "kept")["metadata"]["name"] == "kept"
    system("delete", "changeworkload", "kept")
    release.install()  # adopts the CRDs that were kept
    assert len(left(system, "customresourcedefinitions")) == 3


def publish(system: Kubectl, bundle: str) -> None:
    """What certgen does."""
    for kind, name in (
        ("MutatingWebhookConfiguration", "mdeployment"),
        ("ValidatingWebhookConfiguration", "vdeployment"),
    ):
        applied = {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": kind,
            "metadata": {"name": RELEASE},
            "webhooks": [{"name": f"{name}.kb.io", "clientConfig": {"caBundle": bundle}}],
        }
        flags = ["--server-side", "--force-conflicts", "--field-manager=altershield-certgen"]
        system("apply", *flags, "-f", "-", stdin=json.dumps(applied))


def test_what_is_applied_again_changes_nothing(release: Release, system: Kubectl, chart: helm_python.Chart) -> None:
    """As Argo CD and Flux do with what they render from the chart."""
    release.install()
    release.uninstall()
    objects = [obj for obj in rendered(chart) if not is_hook(obj)]
    manifest = listed(objects)
    pruned = listed([obj for obj in objects if obj["kind"] != "CustomResourceDefinition"])  # these are to be kept
    for flags in (["--server-side", "--field-manager=kustomize-controller"], []):

        def no_diff(flags: list[str] = flags) -> bool:  # but for status, which is in motion
            return system.run("diff", *flags, "-f", "-", stdin=manifest).returncode == 0

        try:
            system("apply", *flags, "-f", "-", stdin=manifest)
            publish(system, "Q0E=")
            before = generations(system)
            eventually(no_diff, f"kubectl diff {' '.join(flags)} to find nothing")
            system("apply", *flags, "-f", "-", stdin=manifest)
            assert generations(system) == before
            (webhook,) = system.json("mutatingwebhookconfiguration", RELEASE)["webhooks"]
            assert webhook["clientConfig"]["caBundle"] == "Q0E="
        finally:
            system("delete", "-f", "-", "--ignore-not-found", stdin=pruned)
        assert left(system, WEBHOOKS) == [], "no hook runs when these tools delete"


def listed(objects: list[Object]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})


def generations(system: Kubectl) -> dict[str, int]:
    found = system.json(f"deployments,{WEBHOOKS}", "-l", f"app.kubernetes.io/instance={RELEASE}")["items"]
    return {f"{each['kind']}/{each['metadata']['name']}": each["metadata"]["generation"] for each in found}


def test_a_second_gate_is_refused(release: Release, cluster: Path) -> None:
    release.install()
    other = helm_python.Config(kubeconfig_path=cluster, namespace="default")
    with pytest.raises(helm_python.HelmError, match="AlterShield is in this cluster already"):
        other.install(str(CHART), "another", {}, dry_run="server")


def test_helm_test_can_be_repeated_and_leaves_nothing(
    release: Release, system: Kubectl, request: pytest.FixtureRequest
) -> None:
    """What the pod does is tested with the gate; simulated nodes run it for ever, so its end is written here."""
    if request.config.getoption("--kubeconfig"):
        pytest.skip("needs simulated nodes: real ones would have to pull the image")
    release.install()
    for _ in range(2):
        with ThreadPoolExecutor() as pool:
            tested = pool.submit(release.test)
            system("wait", "pod/altershield-check", "--for=create", "--timeout=60s")
            system.wait("pod/altershield-check", "condition=Ready")
            end = ["--subresource=status", "--type=merge", "-p", '{"status":{"phase":"Succeeded"}}']
            system("patch", "pod", "altershield-check", *end)
            assert tested.result()["release"]["status"] == "deployed"
        hooks = "namespaces,pods,serviceaccounts,roles,rolebindings"
        assert system("get", hooks, "-A", "-l", "app.kubernetes.io/component=check", "-o", "name") == ""


def test_every_object_passes_the_api_servers_own_validation(system: Kubectl, objects: list[Object]) -> None:
    system.run("create", "namespace", SYSTEM_NAMESPACE)
    known = [obj for obj in objects if obj["apiVersion"] not in OPERATORS and not is_hook(obj)]
    # what lives in namespaces that others make cannot be tried
    known = [obj for obj in known if obj["metadata"].get("namespace", SYSTEM_NAMESPACE) == SYSTEM_NAMESPACE]
    done = system.run("create", "--dry-run=server", "--validate=strict", "-f", "-", stdin=listed(known))
    refused = [line for line in done.stderr.splitlines() if "AlreadyExists" not in line]
    assert refused == []
    assert len(done.stdout.splitlines()) + len(done.stderr.splitlines()) == len(known)
