"""Namespaces and CustomResourceDefinitions with the protection `Cascading`, as the API server and kubectl show it."""

import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from altershield.api.names import service_account_user
from altershield.api.pages import PROTECT
from altershield.api.resources import GROUP
from tests.support.kubectl import Json, Kubectl
from tests.support.polling import eventually

LABEL = "policy.kruise.io/delete-protection"
REASON = "altershield.defense.antgroup.com/delete-protection-reason"
BEFORE = f"forbidden by ResourcesProtectionDeletion for {LABEL}=Cascading and "
CRD = f"probes.{GROUP}"
POD = {"containers": [{"name": "app", "image": "busybox"}], "terminationGracePeriodSeconds": 0}
DISK = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}


@pytest.fixture
def protected(installed: Path) -> Iterator[Kubectl]:
    """kubectl in a namespace with the protection, which is not governed."""
    kubectl = Kubectl(installed, f"protected-{uuid.uuid4().hex[:8]}")
    kubectl("create", "namespace", kubectl.namespace)
    kubectl("label", "namespace", kubectl.namespace, f"{LABEL}=Cascading")
    kubectl("annotate", "namespace", kubectl.namespace, f"{REASON}=payments run here")
    yield kubectl
    if kubectl.exists("namespace", kubectl.namespace):
        kubectl.run("label", "namespace", kubectl.namespace, f"{LABEL}-")
        kubectl.delete_namespaces()


def create(kubectl: Kubectl, kind: str, api_version: str = "v1", name: str = "web", **content: object) -> None:
    obj = {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **content}
    kubectl("create", "-f", "-", stdin=json.dumps(obj))


def refusal(kubectl: Kubectl, *arguments: str) -> str:
    """What kubectl prints, after the fixed beginning. A dry run prints the same."""
    texts = set()
    for dry_run in ([], ["--dry-run=server"]):
        done = kubectl.run("delete", *arguments, "--wait=false", *dry_run)
        assert done.returncode == 1, done.stdout
        texts.add(done.stderr.splitlines()[-1])  # after a warning about the option -n
    (text,) = texts
    assert text.startswith("Error from server (Forbidden): admission webhook"), text
    before, found, after = text.partition(BEFORE)
    assert before.endswith("denied the request: "), text
    assert found
    return after


def bind_a_claim(kubectl: Kubectl) -> None:
    """Create a claim and its volume. The sandbox has no controller that binds them, so the status is written here."""
    name, claim = kubectl.namespace, {"namespace": kubectl.namespace, "name": "web"}
    size = {"storage": "1Gi"}
    create(
        kubectl, "PersistentVolume", name=name,
        spec={**DISK, "capacity": size, "claimRef": claim, "hostPath": {"path": "/nowhere"}},
    )  # fmt: skip
    create(kubectl, "PersistentVolumeClaim", spec={**DISK, "resources": {"requests": size}, "volumeName": name})
    patch = json.dumps({"status": {"phase": "Bound"}})
    kubectl("patch", "pvc", "web", "--subresource=status", "--type=merge", "-p", patch)
    kubectl.wait("pvc/web", "jsonpath={.status.phase}=Bound")


def test_namespace_is_deleted_when_it_is_empty(protected: Kubectl) -> None:
    name = protected.namespace
    way_out = (
        f'; Namespace {name} is protected from deletion (reason: "payments run here"), see {PROTECT}; delete its pods '
        f"and claims first, or take the label off: kubectl label namespaces {name} {LABEL}-"
    )
    eventually(lambda: protected.exists("serviceaccount", "default"), "the account of pods")
    create(protected, "Pod", spec=POD)
    assert refusal(protected, "namespace", name) == f"active pods 1>0{way_out}"
    bind_a_claim(protected)
    protected("delete", "pod", "web", "--force", "--grace-period=0")
    assert refusal(protected, "namespace", name) == f'"Bound" status pvc 1>0{way_out}'
    protected("delete", "pvc", "web", "--wait=false")
    protected("delete", "namespace", name, "--wait=false")
    protected("delete", "persistentvolume", name, "--wait=false")


def test_custom_resource_definition_is_deleted_when_it_has_no_objects(protected: Kubectl) -> None:
    names = {"plural": "probes", "singular": "probe", "kind": "Probe", "listKind": "ProbeList"}
    schema = {"openAPIV3Schema": {"type": "object"}}
    versions = [{"name": "v1", "served": True, "storage": True, "schema": schema}]
    spec = {"group": GROUP, "names": names, "scope": "Namespaced", "versions": versions}
    definition: Json = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": CRD, "labels": {LABEL: "Cascading"}},
        "spec": spec,
    }
    protected("create", "-f", "-", stdin=json.dumps(definition))
    protected.wait(f"crd/{CRD}", "condition=Established")
    reader = f"{protected.namespace}-reader"
    try:
        create(protected, "Probe", f"{GROUP}/v1")
        assert "content that cannot be read (" in (unreadable := refusal(protected, "crd", CRD))
        assert "cannot list resource" in unreadable
        protected("create", "clusterrole", reader, "--verb=list", f"--resource={CRD}")
        _, _, namespace, account = service_account_user().split(":")
        protected(
            "create", "clusterrolebinding", reader, f"--clusterrole={reader}",
            f"--serviceaccount={namespace}:{account}",
        )  # fmt: skip
        eventually(lambda: refusal(protected, "crd", CRD).startswith("active CRs 1>0; "), "the permission to be used")
        protected("delete", "probe", "web")
        protected("delete", "crd", CRD)
    finally:
        for each in (f"clusterrole/{reader}", f"clusterrolebinding/{reader}"):
            protected.run("delete", each)
        protected.run("label", "crd", CRD, f"{LABEL}-")
        protected.run("delete", "crd", CRD)
