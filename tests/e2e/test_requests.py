"""What a person decides about a release, by the command `altershield` and by plain kubectl."""

import json
from pathlib import Path

import pytest
import yaml

from command.app import main
from tests.e2e.requests import actions, patch_status
from tests.e2e.sleep import SUSPEND, TEMPLATE_PATCH, VERSION, release, succeed, suspend
from tests.support.kubectl import Json, Kubectl
from tests.support.polling import eventually
from tests.support.processes import Done, Run, call
from tests.support.users import user


def is_suspended(kubectl: Kubectl) -> bool:
    return SUSPEND in kubectl.labels("deployment", "sleep")


def test_approve_ends_the_suspension_of_a_false_alarm(kubectl: Kubectl, altershield: Run) -> None:
    version = release(kubectl)
    suspend(kubectl, version)
    done = altershield("approve", "deploy/sleep", "-m", "the check is broken")
    assert "is accepted" in done.stdout
    assert not is_suspended(kubectl)
    succeed(kubectl, version)
    (action,) = actions(kubectl, version)
    assert (action["verb"], action["result"], action["reason"]) == ("Approve", "Done", "the check is broken")
    assert action["by"]
    shown = altershield("history", "deploy/sleep", "--version", version).stdout
    assert f"Approve by {action['by']} (the check is broken): Done: " in shown
    assert yaml.safe_load(shown)["spec"]["containers"]
    again = altershield("approve", "deploy/sleep", "-m", "the check is broken")
    assert "nothing was changed" in again.stdout
    kubectl("patch", "deployment", "sleep", "-p", TEMPLATE_PATCH)
    assert kubectl.labels("deployment", "sleep")[VERSION] != version
    eventually(lambda: "RequestCarriedOut" in kubectl("get", "events"), "the Event")


@pytest.fixture
def alice(kubectl: Kubectl) -> Kubectl:
    """kubectl of a user who may give verdicts, and nothing else."""
    kubectl("create", "rolebinding", "alice", "--clusterrole=altershield-verdicts", "--user=alice")
    own = Kubectl(kubectl.kubeconfig, kubectl.namespace, "--as=alice")
    eventually(lambda: own.may_list("changeworkloads"), "the role to be in effect")
    return own


def test_request_by_kubectl_names_the_user_who_makes_it(kubectl: Kubectl, alice: Kubectl) -> None:
    version = release(kubectl)
    suspend(kubectl, version)
    name = f"sleep--x--{version}"
    for request in ({"verb": "Resume", "by": "bob"}, {"verb": "Resume"}):
        answer = patch_status(alice, "changeworkload", name, {"request": request})
        assert "status.request.by has to be your user name: alice" in answer["denied"]
    answer = patch_status(alice, "changeworkload", name, {"request": {"verb": "Explode", "by": "alice"}})
    assert "Unsupported value" in answer["denied"]
    answer = patch_status(alice, "changeworkload", name, {"actions": [{"verb": "Approve", "by": "bob"}]})
    assert "only AlterShield writes status.actions" in answer["denied"]
    assert is_suspended(kubectl)
    request = {"verb": "Resume", "by": "alice", "reason": "known"}
    assert "denied" not in patch_status(alice, "changeworkload", name, {"request": request})
    eventually(lambda: not is_suspended(kubectl), "the end of the suspension")
    eventually(lambda: actions(kubectl, version), "the answer")
    (action,) = actions(kubectl, version)
    assert (action["verb"], action["by"], action["result"]) == ("Resume", "alice", "Done")
    assert kubectl.json("changeworkload", name)["status"]["status"] == "Suspend"


def test_new_verdict_names_no_other_user_and_earlier_verdicts_stay(kubectl: Kubectl, alice: Kubectl) -> None:
    version = release(kubectl)
    name = f"sleep--x--{version}--x--1"
    pod = kubectl.json("changepod", name)["spec"]["podInfos"][0]["pod"]

    def judge(user: Kubectl, *results: Json) -> Json:
        return patch_status(user, "changepod", name, {"podResults": list(results)})

    unnamed = {"pod": pod, "verdict": "pass", "message": "seen"}
    answer = judge(alice, {**unnamed, "by": "bob"})
    assert "by of a new verdict has to be your user name: alice" in answer["denied"]
    assert "denied" not in judge(alice, unnamed)
    own = {**unnamed, "by": "alice"}
    assert judge(alice, own)["status"]["podResults"] == [own]
    admin = Kubectl(kubectl.kubeconfig, kubectl.namespace, "--as=carol", "--as-group=system:masters")
    assert "denied" not in judge(admin, own, {"pod": "other", "verdict": "pass"}), "an earlier verdict stays"
    assert "denied" in judge(admin, {**own, "verdict": "unpass"}), "nobody changes it in the name of alice"
    assert "denied" not in judge(admin, {**own, "verdict": "unpass", "by": "carol"})


def test_repair_lets_one_release_pass_which_is_recorded(kubectl: Kubectl, altershield: Run) -> None:
    version = release(kubectl)
    suspend(kubectl, version)
    assert "suspended" in kubectl.run("patch", "deployment", "sleep", "-p", TEMPLATE_PATCH).stderr
    altershield("repair", "sleep", "-m", "the fix is ready")
    kubectl("patch", "deployment", "sleep", "-p", TEMPLATE_PATCH)
    newer = kubectl.labels("deployment", "sleep")[VERSION]
    again = kubectl.run("patch", "deployment", "sleep", "-p", '{"spec":{"template":{"metadata":{"labels":{"b":"c"}}}}}')
    assert "suspended" in again.stderr, "only one release passes"
    succeed(kubectl, newer)
    eventually(lambda: not is_suspended(kubectl), "the end of the suspension")
    (action,) = actions(kubectl, newer)
    assert (action["verb"], action["result"]) == ("Bypass", "Done")
    assert action["by"], "the user who released it"
    eventually(lambda: "SuspensionBypassed" in kubectl("get", "events"), "the Event")


def test_resume_admits_releases_and_another_failed_pod_suspends_again(kubectl: Kubectl, altershield: Run) -> None:
    version = release(kubectl)
    suspend(kubectl, version)
    assert "further releases are admitted" in altershield("resume", "sleep", "-m", "night shift").stdout
    assert not is_suspended(kubectl)
    altershield("status", "sleep", code=3)
    suspend(kubectl, version, pod_number=2)
    kubectl("wait", "--for=jsonpath={.status.status}=Suspend", f"changeworkload/sleep--x--{version}")


def test_retry_verifies_failed_pods_again(kubectl: Kubectl, altershield: Run) -> None:
    version = release(kubectl)
    failed = suspend(kubectl, version)
    done = altershield("retry", "deployment/sleep", "--wait", "-o", "json")
    assert json.loads(done.stdout)["metadata"]["name"] == f"sleep--x--{version}"
    assert f"pod {failed['pod']} of version {version} are verified again" in done.stderr or "Success" in done.stderr
    assert not kubectl.exists("changepod", f"sleep--x--{version}--x--1")
    assert kubectl.exists("changepod", f"sleep--x--{version}--x--6")
    assert not is_suspended(kubectl)


def test_rollback_by_the_command_ends_with_the_older_version(kubectl: Kubectl, altershield: Run) -> None:
    good = release(kubectl)
    kubectl("patch", "deployment", "sleep", "-p", TEMPLATE_PATCH)
    newer = kubectl.labels("deployment", "sleep")[VERSION]
    succeed(kubectl, newer)
    refused = altershield("rollback", "sleep", "--to", "nothing", code=1)
    assert "the workload has no version nothing; name one of: sleep-" in refused.stderr
    done = altershield("rollback", "deploy/sleep", "-m", "too slow", "--wait")
    assert good[:12] in done.stdout
    altershield("status", "sleep", code=5)
    assert kubectl.labels("deployment", "sleep")[VERSION] == good
    again = altershield("rollback", "deploy/sleep", "-m", "too slow")
    assert "was rolled back to the current version" in again.stdout
    assert kubectl.labels("deployment", "sleep")[VERSION] == good


def test_verdict_command_fails_and_passes_a_pod(kubectl: Kubectl, altershield: Run) -> None:
    version = release(kubectl)
    name = f"sleep--x--{version}--x--1"
    pod = kubectl.json("changepod", name)["spec"]["podInfos"][0]["pod"]
    altershield("verdict", pod, "fail", "-m", "5xx after login")
    eventually(lambda: is_suspended(kubectl), "the suspension")
    (result,) = kubectl.json("changepod", name)["status"]["podResults"]
    assert (result["verdict"], result["message"]) == ("unpass", "5xx after login")
    assert result["by"]
    altershield("verdict", f"pod/{pod}", "pass")
    eventually(lambda: not is_suspended(kubectl), "the end of the suspension")
    assert "is in no ChangePod" in altershield("verdict", "nothing", "pass", code=1).stderr


def test_why_explains_a_suspension_with_commands_that_can_be_pasted(kubectl: Kubectl, altershield: Run) -> None:
    version = release(kubectl)
    assert "What to do: nothing" in altershield("why", "sleep").stdout
    failed = suspend(kubectl, version)
    shown = altershield("why", "deploy/sleep", code=3).stdout
    for words in (
        f"deployment.apps/sleep in namespace {kubectl.namespace}",
        "State:     Suspend since",
        f"Version:   {version} (busybox), released",
        "Releases:  suspended since",
        "Failed by: a person",
        f"  {failed['pod']}   find error",
    ):
        assert words in shown, shown
    (pasted,) = [line.split() for line in shown.splitlines() if line.startswith("  altershield approve ")]
    assert pasted[3:5] == ["-n", kubectl.namespace]
    altershield(*pasted[1:3], "-m", "pasted")
    assert "Success" in altershield("wait", "deploy/sleep").stdout
    assert "Approve by" in altershield("why", "deploy/sleep").stdout


def test_commands_name_what_is_wrong(kubectl: Kubectl, altershield: Run) -> None:
    refused = altershield("approve", "deploy/web", code=1).stderr
    assert 'deployments.apps "web" has no release' in refused
    assert f"`altershield status -n {kubectl.namespace} deployment/web`" in refused
    assert f"`altershield status -n {kubectl.namespace} web`" in altershield("approve", "web", code=1).stderr
    assert "name one workload" in altershield("approve", "deploy", code=2).stderr
    assert "at most 512" in altershield("approve", "deploy/web", "-m", "x" * 600, code=2).stderr
    assert "add --wait" in altershield("approve", "deploy/web", "--timeout=5s", code=2).stderr


def test_role_verdicts_is_enough_for_requests_and_verdicts(
    kubectl: Kubectl, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    version = release(kubectl)
    suspend(kubectl, version)
    ann = user(kubectl, "ann", tmp_path)
    kubectl("create", "rolebinding", "ann", "--clusterrole=altershield-verdicts", f"--user={ann.name}")

    def run(*arguments: str) -> Done:
        return call(main, "altershield", *arguments, "--kubeconfig", str(ann.kubectl.kubeconfig), capture=capfd)

    eventually(lambda: run("resume", "deploy/sleep").returncode == 0, "the role to be in effect")
    pod = kubectl.json("changepod", f"sleep--x--{version}--x--2")["spec"]["podInfos"][0]["pod"]
    assert run("verdict", pod, "fail", "-m", "seen").returncode == 0
    (result,) = kubectl.json("changepod", f"sleep--x--{version}--x--2")["status"]["podResults"]
    assert result["by"] == ann.name
    assert actions(kubectl, version)[-1]["by"] == ann.name
    refused = run("why", "deploy/sleep")
    assert refused.returncode == 1
    assert "ask for the ClusterRole view" in refused.stderr
