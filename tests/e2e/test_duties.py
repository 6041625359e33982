"""Separation of duties, from the option to the denials. The admin releases, and alice decides."""

import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import govern
from tests.e2e.own_installation import installation
from tests.e2e.requests import actions, patch_status
from tests.e2e.sleep import IGNORED_SUSPEND, SUSPEND, TEMPLATE_PATCH, VERSION, release, succeed, suspend
from tests.support.kubectl import Kubectl
from tests.support.polling import eventually

pytestmark = pytest.mark.xdist_group("server")

REFUSED = "so another user has to decide about it: one with the ClusterRole altershield-verdicts in"


@pytest.fixture(scope="module")
def separated(has_kubectl: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with installation(tmp_path_factory.mktemp("duties"), "--separation-of-duties") as kubeconfig:
        yield kubeconfig


@pytest.fixture
def kubectl(separated: Path) -> Iterator[Kubectl]:
    namespace = f"e2e-{uuid.uuid4().hex[:8]}"
    govern(separated, [namespace])
    kubectl = Kubectl(separated, namespace)
    yield kubectl
    kubectl.delete_namespaces()


@pytest.fixture
def alice(kubectl: Kubectl) -> Kubectl:
    """kubectl of a user who may give verdicts and change workloads."""
    kubectl("create", "rolebinding", "alice", "--clusterrole=altershield-verdicts", "--user=alice")
    kubectl("create", "rolebinding", "alice-edits", "--clusterrole=edit", "--user=alice")
    own = Kubectl(kubectl.kubeconfig, kubectl.namespace, "--as=alice")
    eventually(lambda: own.may_list("changeworkloads"), "the role to be in effect")
    return own


def me(kubectl: Kubectl) -> str:
    return kubectl("auth", "whoami", "-o", "jsonpath={.status.userInfo.username}").strip()


def is_suspended(kubectl: Kubectl) -> bool:
    return SUSPEND in kubectl.labels("deployment", "sleep")


def test_user_who_released_what_failed_does_not_repair_it_and_another_user_does(
    kubectl: Kubectl, alice: Kubectl
) -> None:
    version = release(kubectl)
    change, user = f"sleep--x--{version}", me(kubectl)
    spec = kubectl.json("changeworkload", change)["spec"]
    assert spec["notDecidedBy"] == spec["releasedBy"] == user
    assert kubectl.json("changepod", f"{change}--x--1")["spec"]["notDecidedBy"] == user
    failed = suspend(kubectl, version)  # its own release
    for verb in ("Approve", "Repair", "Resume", "Retry"):
        answer = patch_status(kubectl, "changeworkload", change, {"request": {"verb": verb, "by": user}})
        assert REFUSED in answer["denied"]
    passed = {"podResults": [{**failed, "verdict": "pass"}]}
    assert REFUSED in patch_status(kubectl, "changepod", f"{change}--x--1", passed)["denied"]
    moved = {"podResults": [{**failed, "pod": "another", "hostName": "another"}]}
    assert REFUSED in patch_status(kubectl, "changepod", f"{change}--x--1", moved)["denied"]
    label = ("label", "deployment", "sleep", f"{IGNORED_SUSPEND}=true")
    denied = kubectl.run(*label).stderr
    assert f"the label ignored-suspend cannot be added: {user} released version {version}, {REFUSED}" in denied
    denied = kubectl.run("patch", "deployment", "sleep", "-p", TEMPLATE_PATCH).stderr
    assert f"{user} released version {version}, {REFUSED}" in denied
    assert "kubectl label" not in denied
    assert is_suspended(kubectl)

    request = {"request": {"verb": "Repair", "by": "alice", "reason": "seen"}}
    assert "denied" not in patch_status(alice, "changeworkload", change, request)
    eventually(lambda: IGNORED_SUSPEND in kubectl.labels("deployment", "sleep"), "the label of the repair")
    kubectl("patch", "deployment", "sleep", "-p", TEMPLATE_PATCH)
    newer = kubectl.labels("deployment", "sleep")[VERSION]
    succeed(kubectl, newer)
    eventually(lambda: not is_suspended(kubectl), "the end of the suspension")
    assert [each["verb"] for each in actions(kubectl, newer)] == ["Bypass"]


def test_label_of_another_user_repairs(kubectl: Kubectl, alice: Kubectl) -> None:
    version = release(kubectl)
    suspend(kubectl, version)
    alice("label", "deployment", "sleep", f"{IGNORED_SUSPEND}=true")
    kubectl("patch", "deployment", "sleep", "-p", TEMPLATE_PATCH)
    assert kubectl.labels("deployment", "sleep")[VERSION] != version


def test_user_who_released_it_goes_back_and_does_not_release_it_again(kubectl: Kubectl, alice: Kubectl) -> None:
    good = release(kubectl)
    kubectl("patch", "deployment", "sleep", "-p", TEMPLATE_PATCH)
    bad = kubectl.labels("deployment", "sleep")[VERSION]
    succeed(kubectl, bad)
    suspend(kubectl, bad)
    user = me(kubectl)
    request = {"verb": "Rollback", "by": user, "reason": "bad"}
    assert "denied" not in patch_status(kubectl, "changeworkload", f"sleep--x--{bad}", {"request": request})
    eventually(lambda: kubectl.labels("deployment", "sleep")[VERSION] == good, "the rollback")
    eventually(lambda: not is_suspended(kubectl), "the end of the suspension")
    done = kubectl.run("patch", "deployment", "sleep", "-p", TEMPLATE_PATCH)
    assert "was rolled back" in done.stderr
    assert REFUSED in kubectl.run("label", "deployment", "sleep", f"{IGNORED_SUSPEND}=true").stderr
    patch = json.loads(TEMPLATE_PATCH)
    patch["metadata"] = {"labels": {IGNORED_SUSPEND: "true"}}
    assert REFUSED in kubectl.run("patch", "deployment", "sleep", "-p", json.dumps(patch)).stderr
    request = {"verb": "Rollback", "by": user, "to": bad}
    patch_status(kubectl, "changeworkload", f"sleep--x--{good}", {"request": request})
    eventually(lambda: REFUSED in json.dumps(actions(kubectl, good)), "the answer")
    assert kubectl.labels("deployment", "sleep")[VERSION] == good
    alice("patch", "deployment", "sleep", "-p", json.dumps(patch))
    assert kubectl.labels("deployment", "sleep")[VERSION] == bad
