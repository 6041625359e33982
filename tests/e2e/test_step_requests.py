"""Who promotes and holds a release in steps, by the commands and by kubectl, and what the commands show meanwhile."""

import json
from pathlib import Path

import pytest

from altershield.api.annotations import ROLLOUT
from altershield.api.resources import API_VERSION
from command.status import EXIT_UNDER_WAY
from tests.e2e.requests import actions, patch_status
from tests.e2e.sleep import VERSION, release, sleep, succeed
from tests.support.kubectl import Kubectl
from tests.support.polling import eventually
from tests.support.processes import Run

ROLLOUT_RULE = {"steps": [{"pods": 1, "soakSeconds": 1, "approval": True}, {"pods": 2, "soakSeconds": 600}]}


@pytest.fixture
def version(kubectl: Kubectl) -> str:
    """A version that waits for approval after its first step."""
    release(kubectl, sleep(replicas=4))
    policy = {"apiVersion": API_VERSION, "kind": "DefensePolicy", "metadata": {"name": "steps"}}
    kubectl.apply(json.dumps({**policy, "spec": {"rollout": ROLLOUT_RULE}}))

    def is_known() -> bool:
        probe = kubectl.run("apply", "--dry-run=server", "-o", "json", "-f", "-", stdin=sleep(image="probe"))
        return probe.returncode == 0 and ROLLOUT in json.loads(probe.stdout)["metadata"].get("annotations", {})

    eventually(is_known, "the gatekeepers to know the policy")
    kubectl.apply(sleep(image="other", replicas=4))
    made = kubectl.labels("deployment", "sleep")[VERSION]
    eventually(lambda: kubectl.exists("changeworkload", f"sleep--x--{made}"), "the ChangeWorkload")
    reach(kubectl, made, "WaitingForApproval")
    return made


def reach(kubectl: Kubectl, version: str, phase: str) -> None:
    kubectl.wait(f"changeworkload/sleep--x--{version}", f"jsonpath={{.status.rollout.phase}}={phase}")


def user(kubectl: Kubectl, name: str, role: str) -> Kubectl:
    """kubectl of a user with this role, and nothing else."""
    kubectl("create", "rolebinding", name, f"--clusterrole={role}", f"--user={name}")
    own = Kubectl(kubectl.kubeconfig, kubectl.namespace, f"--as={name}")
    eventually(lambda: own.may_list("changeworkloads"), "the role to be in effect")
    return own


def promote(own: Kubectl, kubectl: Kubectl, version: str, by: str) -> None:
    """Promote the release as this user. A pod that is not ready for a moment refuses it, so it is repeated."""

    name, request = f"sleep--x--{version}", {"request": {"verb": "Promote", "by": by}}

    def done() -> bool:
        assert "denied" not in patch_status(own, "changeworkload", name, request)
        eventually(lambda: "request" not in kubectl.json("changeworkload", name)["status"], "the answer")
        answers = [(each["by"], each["verb"], each["result"]) for each in actions(kubectl, version)]
        return (by, "Promote", "Done") in answers

    eventually(done, f"the promotion by {by}")


def test_kubectl_selects_releases_by_state_and_phase(kubectl: Kubectl, version: str) -> None:
    def selected(selector: str) -> list[str]:
        return kubectl("get", "cw", "--field-selector", selector, "-o", "custom-columns=:spec.reversion").split()

    (passed,) = selected("status.status=Success")
    assert passed != version
    assert selected("status.status!=Success") == [version]
    assert selected("status.rollout.phase=WaitingForApproval") == [version]
    assert selected("status.rollout.phase=") == [passed]
    assert selected("status.status=Suspend") == []


def test_approval_needs_the_verb_approve_and_the_history_names_who_approved(
    kubectl: Kubectl, altershield: Run, version: str, tmp_path: Path
) -> None:
    name = f"sleep--x--{version}"
    eve, ann = user(kubectl, "eve", "altershield-verdicts"), user(kubectl, "ann", "altershield-approvals")
    for verb in ("Promote", "PromoteFull"):
        answer = patch_status(eve, "changeworkload", name, {"request": {"verb": verb, "by": "eve"}})
        assert "you may not approve: ask for the ClusterRole altershield-approvals" in answer["denied"]
    answer = patch_status(ann, "changeworkload", name, {"rollout": {"phase": "Done"}})
    assert "only AlterShield writes status.rollout" in answer["denied"]
    shown = altershield("status", "deploy/sleep", code=EXIT_UNDER_WAY).stdout
    assert "step 1 of 3: its pod is verified, and a person has to promote the release" in shown
    assert "├─ 1   1 pod      WaitingForApproval  1 updated, 1 passed; approval by a person" in shown
    assert f"altershield promote deployment/sleep -n {kubectl.namespace}" in shown
    altershield("wait", "deploy/sleep", "--for=verified", "--timeout=60s")
    altershield("wait", "deploy/sleep", "--for=step=1", "--timeout=1s", code=EXIT_UNDER_WAY)

    promote(ann, kubectl, version, "ann")
    altershield("wait", "deploy/sleep", "--for=step=1", "--timeout=60s")
    reach(kubectl, version, "Soaking")
    assert "stays at step 2 of 3" in altershield("hold", "sleep", "-m", "look at the errors").stdout
    assert "holds the release until somebody promotes it" in altershield("why", "sleep", code=EXIT_UNDER_WAY).stdout
    promote(eve, kubectl, version, "eve")  # the second step has no approval
    succeed(kubectl, version)
    eventually(lambda: ROLLOUT not in json.dumps(kubectl.json("deployment", "sleep")), "the end of the hold")

    def steps() -> list[str]:
        shown = altershield("history", "deploy/sleep", "--version", version).stdout
        return [line for line in shown.splitlines() if line.startswith("#   step ")]

    eventually(lambda: len(steps()) == 3, "the history")
    first, second, last = steps()
    assert first.startswith("#   step 1, 1 pod: ")
    assert first.endswith("promoted by ann")
    assert second.startswith("#   step 2, 2 pods: ")
    assert second.endswith("promoted by eve")
    assert last.startswith("#   step 3, 4 pods: ")
    assert "promoted" not in last
