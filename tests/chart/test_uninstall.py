"""`altershield uninstall` on a live API deletes all of AlterShield, however it was installed, and nothing else."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import helm_python
import pytest

from altershield.api.names import SYSTEM_NAMESPACE
from tests.chart.pod import account
from tests.chart.release import CHANGE_WORKLOAD, Release, Uninstall, listed
from tests.chart.rendering import CHART, RELEASE, Object, is_hook, rendered
from tests.support.kubectl import Kubectl
from tests.support.processes import command, wait_for_line

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("chart")]

OURS = "app.kubernetes.io/part-of=altershield,app.kubernetes.io/component in (gate,reconciler,check,dashboard)"
KINDS = (
    "mutatingwebhookconfigurations,validatingwebhookconfigurations,"
    "validatingadmissionpolicies,validatingadmissionpolicybindings,deployments,clusterroles,clusterrolebindings,roles,"
    "rolebindings,serviceaccounts,services,poddisruptionbudgets,flowschemas,"
    "prioritylevelconfigurations,resourcequotas,networkpolicies,configmaps,secrets"
)
PART = {"app.kubernetes.io/part-of": "altershield"}


def left(system: Kubectl) -> list[str]:
    return system("get", KINDS, "-A", "-l", OURS, "-o", "name").split()


def leftovers_at_run_time(system: Kubectl) -> None:
    """Create objects that the chart does not contain: the Secret with the keys and the leader's Lease."""
    labels = {**PART, "app.kubernetes.io/component": "gate"}
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "altershield-reconciler"}}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": f"{RELEASE}-tls", "labels": labels}}
    for obj in (lease, secret):
        system("apply", "-f", "-", stdin=json.dumps(obj))


def test_uninstall_deletes_a_helm_release_with_its_history_and_nothing_else(
    release: Release, system: Kubectl, cluster: Path, uninstall: Uninstall
) -> None:
    release.install({"dashboards": {"enabled": True}, "networkPolicy": {"enabled": True}})
    release.upgrade({"reconciler": {"separate": True}})
    leftovers_at_run_time(system)
    system("create", "-f", "-", stdin=json.dumps(CHANGE_WORKLOAD))
    default, foreign = Kubectl(cluster), listed(others())
    default("create", "-f", "-", stdin=foreign)
    system("create", "configmap", "others")
    try:
        refused = uninstall(cluster)
        assert (refused.returncode, "--yes" in refused.stderr) == (2, True), "without a terminal, --yes is required"
        before = left(system)
        tried = uninstall(cluster, "--dry-run")
        assert tried.returncode == 0, tried.stderr
        assert left(system) == before

        done = uninstall(cluster, "--yes")
        assert done.returncode == 0, done.stderr
        deleted = [line.removeprefix("deleted ") for line in done.stdout.splitlines() if line.startswith("deleted ")]
        assert deleted == [
            line.removeprefix("would delete ") for line in tried.stdout.splitlines() if line.startswith("would delete ")
        ]
        assert deleted[:2] == ["ValidatingWebhookConfiguration altershield", "MutatingWebhookConfiguration altershield"]
        assert f"Lease {SYSTEM_NAMESPACE}/altershield-reconciler" in deleted
        assert f"Secret {SYSTEM_NAMESPACE}/sh.helm.release.v1.altershield.v2" in deleted
        for name in (RELEASE, f"{RELEASE}-reconciler"):
            for kind in ("Deployment", "ServiceAccount", "Role", "Service", "PodDisruptionBudget"):
                assert f"{kind} {SYSTEM_NAMESPACE}/{name}" in deleted

        assert left(system) == []
        assert release.names() == [], "helm list must not show the release"
        assert system.json("changeworkload", "kept")["spec"] == CHANGE_WORKLOAD["spec"]
        assert "kept CustomResourceDefinition changeworkloads.app.ops.cloud.alipay.com" in done.stdout
        assert f"kept Namespace {SYSTEM_NAMESPACE}" in done.stdout
        default("get", "-f", "-", stdin=foreign)
        system("delete", "configmap", "others")

        again = uninstall(cluster, "--yes")
        assert again.returncode == 0
        assert "found nothing to delete" in again.stdout
        assert release.install()["status"] == "deployed", "a new installation must be possible"
    finally:
        system.run("delete", "changeworkload", "kept", "--ignore-not-found")
        default.run("delete", "-f", "-", stdin=foreign)


def others() -> list[Object]:
    """Objects of others, with names or labels similar to AlterShield's."""
    webhook = {
        "name": "mdeployment.kb.io",  # kubebuilder's default name, which many products use
        "clientConfig": {"url": "https://127.0.0.1:1/mutate-apps-v1-deployment"},
        "rules": [
            {"apiGroups": ["none.example.com"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["none"]}
        ],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    server = {"name": "altershield", "labels": PART | {"app.kubernetes.io/name": "altershield"}}
    return [
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": "altershield-of-others"},
            "webhooks": [webhook],
        },
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {**server, "name": "altershield-server"}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": server},
        {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "altershield"}},
    ]


def test_uninstall_finds_a_partly_deleted_release_of_another_name_and_namespace(
    system: Kubectl, cluster: Path, uninstall: Uninstall
) -> None:
    assert uninstall(cluster, "--yes", "--crds").returncode == 0  # Helm adopts no CRDs of another release
    system("create", "namespace", "gatekeeping")
    helm = helm_python.Config(kubeconfig_path=cluster, namespace="gatekeeping")
    try:
        helm.install(str(CHART), "gate", {"nameOverride": "guard"})
        system("delete", "clusterrole,validatingwebhookconfiguration", "gate-guard")
        system("delete", "-n", "gatekeeping", "deployment", "gate-guard")
        done = uninstall(cluster, "--yes")
        assert done.returncode == 0, done.stderr
        assert left(system) == []
        assert helm.list(all_states=True) == []
    finally:
        helm.uninstall("gate", ignore_not_found=True)
        system("delete", "namespace", "gatekeeping")


def test_uninstall_deletes_objects_of_a_gitops_tool_and_names_the_tool(
    system: Kubectl, cluster: Path, uninstall: Uninstall, chart: helm_python.Chart
) -> None:
    objects = [obj for obj in rendered(chart) if not is_hook(obj)]
    for obj in objects:
        tracked = {"argocd.argoproj.io/tracking-id": f"gate:{obj['kind']}/{obj['metadata']['name']}"}
        obj["metadata"]["annotations"] = obj["metadata"].get("annotations", {}) | tracked
    system.run("create", "namespace", SYSTEM_NAMESPACE)
    system("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=listed(objects))
    done = uninstall(cluster, "--yes", "--crds")
    assert done.returncode == 0, done.stderr
    assert "Argo CD manages ValidatingWebhookConfiguration altershield and will create it again" in done.stderr
    assert left(system) == []


def test_uninstall_deletes_what_a_killed_dev_command_left(
    system: Kubectl, cluster: Path, uninstall: Uninstall, tmp_path: Path
) -> None:
    log = tmp_path / "dev.log"
    with command("dev", "--yes", "--kubeconfig", str(cluster), log=log) as process:
        wait_for_line(process, log, "The gatekeeper is ready")
        process.kill()
        process.wait(30)
    assert len(left(system)) >= 5
    done = uninstall(cluster, "--yes", "--crds")
    assert done.returncode == 0, done.stderr
    assert "deleted ValidatingWebhookConfiguration altershield-dev" in done.stdout
    assert left(system) == []
    kinds = system("get", "customresourcedefinitions", "-o", "name")
    assert "app.ops.cloud.alipay.com" not in kinds, "--crds must delete the CustomResourceDefinitions"


def test_uninstall_with_few_permissions_deletes_webhooks_and_reports_the_rest(
    release: Release, system: Kubectl, cluster: Path, uninstall: Uninstall, tmp_path: Path
) -> None:
    release.install()
    on_call = [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "on-call", "namespace": SYSTEM_NAMESPACE}},
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "on-call"},
            "rules": [
                {"apiGroups": ["admissionregistration.k8s.io"], "resources": ["*"], "verbs": ["list", "delete"]},
                {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["list"]},
            ],
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "on-call"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "on-call"},
            "subjects": [{"kind": "ServiceAccount", "name": "on-call", "namespace": SYSTEM_NAMESPACE}],
        },
    ]
    system("create", "-f", "-", stdin=listed(on_call))
    try:
        server = system("config", "view", "--raw", "-o", "jsonpath={.clusters[0].cluster.server}")
        kubeconfig = account(system, "on-call", server, tmp_path)
        system("--kubeconfig", str(kubeconfig), "config", "set-cluster", "it", "--insecure-skip-tls-verify=true")
        done = uninstall(kubeconfig, "--yes")
        assert done.returncode == 1
        assert left(system)
        assert not [name for name in left(system) if "webhookconfiguration" in name]
        assert f"cannot delete Deployment {SYSTEM_NAMESPACE}/{RELEASE}: " in done.stderr
        assert "cannot list secrets: " in done.stderr

        secrets = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["list", "delete"]}
        patch = json.dumps([{"op": "add", "path": "/rules/-", "value": secrets}])
        system("patch", "clusterrole", "on-call", "--type=json", "-p", patch)
        again = uninstall(kubeconfig, "--yes")
        assert again.returncode == 1
        assert f"kept Secret {SYSTEM_NAMESPACE}/sh.helm.release.v1.altershield.v1" in again.stderr
        assert release.names() == [RELEASE], "the release must stay, so that helm uninstall can delete the rest"
    finally:
        system("delete", "-f", "-", stdin=listed(on_call))


def test_uninstall_asks_on_a_terminal(release: Release, system: Kubectl, cluster: Path) -> None:
    release.install()
    for said, is_left in ((b"n\n", True), (b"y\n", False)):
        controlling, terminal = pty.openpty()
        process = subprocess.Popen(
            [sys.executable, "-m", "command", "uninstall", "--kubeconfig", str(cluster)],
            stdin=terminal,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        os.write(controlling, said)
        out, _ = process.communicate(timeout=120)
        assert b"Delete these " in out
        assert bool(left(system)) is is_left, out
        assert process.returncode == (1 if is_left else 0)
        os.close(controlling)
        os.close(terminal)
