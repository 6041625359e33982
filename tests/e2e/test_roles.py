"""The permissions of the roles of AlterShield, on the RBAC of the API server."""

import json
from pathlib import Path

import pytest
import yaml

from tests.e2e.sleep import SLEEP
from tests.support.kubectl import Json, Kubectl
from tests.support.polling import eventually
from tests.support.processes import command

RELEASES = "changeworkloads,changepods"
VERDICT = json.dumps({"status": {"podResults": [{"pod": "sleep", "verdict": "pass"}]}})


@pytest.fixture
def released(kubectl: Kubectl) -> Kubectl:
    """The administrator's kubectl in a namespace with a release."""
    kubectl("apply", "-f", "-", stdin=SLEEP)
    eventually(lambda: kubectl.json("changepods")["items"], "the first ChangePod")
    return kubectl


def user(kubectl: Kubectl, role: str) -> Kubectl:
    """kubectl of a user who has this ClusterRole in the namespace, and no other permission."""
    kubectl("create", "rolebinding", role, f"--clusterrole={role}", f"--user={role}-user")
    own = Kubectl(kubectl.kubeconfig, kubectl.namespace, f"--as={role}-user")
    eventually(lambda: own.run("get", "changeworkloads").returncode == 0, f"the role {role} to be in effect")
    return own


def change_pod(kubectl: Kubectl) -> str:
    items: list[Json] = kubectl.json("changepods")["items"]
    return str(items[0]["metadata"]["name"])


def may(kubectl: Kubectl, verb: str, resource: str) -> bool:
    plural, _, subresource = resource.partition("/")
    done = kubectl.run("auth", "can-i", verb, plural, *([f"--subresource={subresource}"] if subresource else []))
    return done.stdout.strip() == "yes"


@pytest.mark.parametrize("role", ["view", "edit", "admin"])
def test_built_in_roles_may_read_releases_but_not_change_them(released: Kubectl, role: str) -> None:
    own = user(released, role)
    assert len(own("get", RELEASES, "-o", "name").splitlines()) >= 2
    assert may(own, "get", "opsconfiginfoes")
    assert may(own, "watch", "changeworkloads")
    for kind in ("changeworkloads", "changepods", "opsconfiginfoes"):
        for verb in ("create", "update", "patch", "delete", "deletecollection"):
            assert not may(own, verb, kind), f"{verb} {kind}"
            assert not may(own, verb, f"{kind}/status"), f"{verb} {kind}/status"
    refused = own.run("patch", "changepod", change_pod(released), "--subresource=status", "--type=merge", "-p", VERDICT)
    assert "forbidden" in refused.stderr
    assert "forbidden" in own.run("delete", "changeworkloads", "--all").stderr


def test_role_verdicts_may_patch_change_pods_but_not_delete_change_workloads(released: Kubectl) -> None:
    own = user(released, "altershield-verdicts")
    name = change_pod(own)
    own("patch", "changepod", name, "--subresource=status", "--type=merge", "-p", VERDICT)
    assert own.json("changepod", name)["status"]["podResults"][0]["verdict"] == "pass"
    assert may(own, "patch", "changeworkloads/status")
    for kind in ("changeworkloads", "changepods"):
        for verb in ("create", "update", "patch", "delete", "deletecollection"):
            assert not may(own, verb, kind), f"{verb} {kind}"
    assert not may(own, "get", "deployments")


@pytest.fixture
def viewer(released: Kubectl, tmp_path: Path) -> Path:
    """The kubeconfig of a ServiceAccount that has the role view in its namespace."""
    released("create", "serviceaccount", "viewer")
    released("create", "rolebinding", "viewer", "--clusterrole=view", f"--serviceaccount={released.namespace}:viewer")
    config = yaml.safe_load(released("config", "view", "--raw", "--minify", "--flatten"))
    config["users"] = [{"name": "it", "user": {"token": released("create", "token", "viewer").strip()}}]
    context = {"cluster": config["clusters"][0]["name"], "user": "it", "namespace": released.namespace}
    config |= {"contexts": [{"name": "it", "context": context}], "current-context": "it"}
    path = tmp_path / "viewer.kubeconfig"
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(config))
    return path


def test_status_command_works_with_the_role_view(viewer: Path, tmp_path: Path) -> None:
    log = tmp_path / "status.log"

    def shown() -> str:
        with command("status", "sleep", "--wait", "--timeout=60s", "--kubeconfig", str(viewer), log=log) as process:
            process.wait(90)
        return log.read_text()

    eventually(lambda: "Success" in shown(), "the role to be in effect, and the release to succeed")
    with command("status", "-A", "--kubeconfig", str(viewer), log=log) as process:
        assert process.wait(60) == 1
    assert "error: cannot list ChangeWorkloads in all namespaces: " in log.read_text()
    assert "ask for the ClusterRole view in all namespaces" in log.read_text()
