"""A release with another name in another namespace works in each certificate mode."""

import base64
import contextlib
import functools
import json
import os
from collections.abc import Iterator
from pathlib import Path

import helm_python
import pytest

from certgen.secret import MANAGED_BY
from certgen.webhook_configurations import FIELD_MANAGER
from tests.chart.pod import Pod, is_ready, pod_of, wait_until_ready
from tests.chart.release import Uninstall, listed, owners, provide
from tests.chart.rendering import CHART, is_hook, rendered
from tests.support.kubectl import Kubectl
from tests.support.polling import HANG, eventually
from tests.support.processes import Done, python

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("chart")]

NAMESPACE, RELEASE = "gatekeeping", "the-gate"
NAME = "the-gate-altershield"
SECRET_NAME = "serving"
SECRET = f"secret/{SECRET_NAME}"
PART_OF = "app.kubernetes.io/part-of=altershield"
PROCESSES = ("gatekeeper", "reconciler", "certgen")
WEBHOOKS = tuple(f"{kind}webhookconfiguration/{NAME}" for kind in ("mutating", "validating"))


@pytest.fixture(scope="module")
def installed_kinds() -> list[str]:
    return sorted({obj["kind"] for obj in rendered(helm_python.Chart.load(CHART)) if not is_hook(obj)})


@pytest.fixture
def kubectl(has_kubectl: None, cluster: Path, uninstall: Uninstall) -> Iterator[Kubectl]:
    """kubectl in the release's namespace. cert-manager's CustomResourceDefinitions exist, but cert-manager does not
    run."""
    assert uninstall(cluster, "--yes", "--crds").returncode == 0
    kubectl = Kubectl(cluster, NAMESPACE)
    kubectl("create", "namespace", NAMESPACE)
    kinds = listed([kind_of_cert_manager("Certificate"), kind_of_cert_manager("Issuer")])
    kubectl("apply", "-f", "-", stdin=kinds)
    kubectl("wait", "-f", "-", "--for=condition=Established", f"--timeout={HANG:.0f}s", stdin=kinds)
    yield kubectl
    kubectl("delete", "-f", "-", stdin=kinds)
    kubectl("delete", "namespace", NAMESPACE, "--ignore-not-found")


def kind_of_cert_manager(kind: str) -> dict[str, object]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": kind, "plural": f"{kind.lower()}s", "singular": kind.lower(), "listKind": f"{kind}List"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{names['plural']}.cert-manager.io"},
        "spec": {"group": "cert-manager.io", "scope": "Namespaced", "names": names, "versions": [version]},
    }


def inject(kubectl: Kubectl, authority: bytes) -> None:
    """Set caBundle as cert-manager's CA injector does."""
    encoded = base64.b64encode(authority).decode()
    for configuration in WEBHOOKS:
        places = [f"/webhooks/{number}/clientConfig" for number in range(len(kubectl.json(configuration)["webhooks"]))]
        patch = [{"op": "add", "path": f"{place}/caBundle", "value": encoded} for place in places]
        kubectl("patch", configuration, "--type=json", "-p", json.dumps(patch))


def bundles(kubectl: Kubectl) -> set[bytes]:
    webhooks = [webhook for configuration in WEBHOOKS for webhook in kubectl.json(configuration)["webhooks"]]
    found = [webhook["clientConfig"].get("caBundle", "") for webhook in webhooks]
    return {base64.b64decode(bundle) for bundle in found}


@contextlib.contextmanager
def pod(kubectl: Kubectl, cluster: Path, directory: Path, mode: str) -> Iterator[Pod]:
    """Install the release, and run the processes of its pod on this machine."""
    helm_python.Config(kubeconfig_path=cluster, namespace=NAMESPACE).install(
        str(CHART), RELEASE, {"certificates": {"mode": mode, "secretName": SECRET_NAME}}
    )
    deployment = kubectl.json("deployment", NAME)
    kubectl("delete", "deployment", NAME)
    with pod_of(kubectl, deployment, directory) as running:
        yield running


def wait_until_owned(kubectl: Kubectl, *objects: str) -> None:
    for what in objects:
        eventually(functools.partial(owners, kubectl, what), f"{what} to be owned")


@pytest.mark.parametrize("mode", ["certgen", "cert-manager", "secret"])
def test_all_processes_work_in_another_namespace_in_each_certificate_mode(
    kubectl: Kubectl, cluster: Path, uninstall: Uninstall, tmp_path: Path, mode: str
) -> None:
    with pod(kubectl, cluster, tmp_path, mode) as running:
        ports = running.ports
        if mode == "certgen":
            wait_until_ready(ports, *PROCESSES)
            assert b"" not in bundles(kubectl), "certgen is ready only after it has published its CA"
            wait_until_owned(kubectl, SECRET, *WEBHOOKS)
        else:
            eventually(
                lambda: "does not exist" in (tmp_path / "certgen.log").read_text(),
                "certgen to report the missing Secret",
            )
            assert not is_ready(ports["gatekeeper"])
            assert not is_ready(ports["certgen"])
            authority = provide(kubectl, SECRET_NAME, f"{NAME}.{NAMESPACE}.svc")
            before = kubectl.json(SECRET)["metadata"]
            if mode == "cert-manager":
                missed = "the CA injector has not put ca.crt"
                eventually(
                    lambda: missed in (tmp_path / "certgen.log").read_text(), "certgen to report the missing caBundle"
                )
                assert not is_ready(ports["certgen"]), "no API server trusts the certificate yet"
                assert bundles(kubectl) == {b""}, "certgen must not publish the CA in this mode"
                inject(kubectl, authority)
            wait_until_ready(ports, *PROCESSES)
            wait_until_owned(kubectl, *WEBHOOKS)
            eventually(lambda: bundles(kubectl) == {authority}, "the provided CA to be published")
            assert kubectl.json(SECRET)["metadata"] == before, "certgen must not change a provided Secret"
        kubectl.wait("opsconfiginfo/blocking", "create")
        kubectl.wait("lease/altershield-reconciler", "create")
        execute_certgen(kubectl, running, mode)
        assert running.recorder.forbidden == []
    done = uninstall(cluster, "--yes", "--crds")
    assert done.returncode == 0, done.stderr
    assert f"deleted Lease {NAMESPACE}/altershield-reconciler" in done.stdout
    assert (kubectl.run("get", SECRET).returncode == 0) is (mode != "certgen")


def has_objects(kubectl: Kubectl, kind: str) -> bool:
    return bool(kubectl("get", kind, "-A", "-l", PART_OF, "-o", "name"))


def commands_of_the_page() -> list[list[str]]:
    """The commands of docs/operate.md that delete what may refuse requests, without `kubectl`."""
    page = (CHART.parents[1] / "docs" / "operate.md").read_text()
    lines = page.partition("## Uninstall\n")[2].splitlines()
    return [line.split()[1:] for line in lines if line.startswith("kubectl delete ") and PART_OF in line]


def certgen(running: Pod, command: str) -> Done:
    """Does what `kubectl exec -c certgen -- python -m certgen COMMAND` does."""
    own = {**running.commands["certgen"].variables, "ALTERSHIELD_KUBECONFIG": str(running.kubeconfig)}
    return python("certgen", command, environment={**os.environ, **own})


def execute_certgen(kubectl: Kubectl, running: Pod, mode: str) -> None:
    """In the container, certgen's commands need no options to find the objects of this release."""
    assert certgen(running, "show").returncode == 0
    before = kubectl.json(SECRET)["data"]["tls.crt"]
    rotated = certgen(running, "rotate")
    after = kubectl.json(SECRET)["data"]["tls.crt"]
    if mode == "certgen":
        assert rotated.returncode == 0, rotated.stderr
        assert after != before
    else:
        assert rotated.returncode == 3
        assert f"belongs to its provider ({mode})" in rotated.stderr
        assert after == before
    made_by_certgen = kubectl("get", "secrets", "-l", f"{MANAGED_BY}={FIELD_MANAGER}", "-o", "name").split()
    assert made_by_certgen == ([SECRET] if mode == "certgen" else [])


def test_deleting_the_namespace_deletes_the_webhook_configurations_and_leaves_the_policies(
    kubectl: Kubectl, cluster: Path, uninstall: Uninstall, tmp_path: Path, installed_kinds: list[str]
) -> None:
    """The webhook configurations are cluster-scoped, and no hook or tool deletes them: certgen does. It may not touch
    the policies, so docs/operate.md says what stays and how to delete it."""
    with pod(kubectl, cluster, tmp_path, "certgen") as running:
        wait_until_ready(running.ports, *PROCESSES)
        kubectl("delete", "namespace", NAMESPACE, "--wait=false")
        for webhook in WEBHOOKS:
            kubectl.wait(webhook, "delete")
    kubectl.wait(f"namespace/{NAMESPACE}", "delete")
    assert set(filter(functools.partial(has_objects, kubectl), installed_kinds)) == {
        "ClusterRole",
        "ClusterRoleBinding",
        "CustomResourceDefinition",
        "FlowSchema",
        "PriorityLevelConfiguration",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    }
    protected = Kubectl(cluster)
    protected("create", "deployment", "kept", "--image=busybox")
    protected("label", "deployment", "kept", "policy.kruise.io/delete-protection=Always")
    assert "forbidden by ResourcesProtectionDeletion" in protected.run("delete", "deployment", "kept").stderr
    for command in commands_of_the_page():
        kubectl(*command)
    assert not [kind for kind in installed_kinds if "Admission" in kind and has_objects(kubectl, kind)]
    eventually(lambda: protected.run("delete", "deployment", "kept").returncode == 0, "the policies to be gone")
    assert uninstall(cluster, "--yes", "--crds").returncode == 0, "uninstall must delete the rest"
