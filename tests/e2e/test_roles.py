"""The permissions of the roles of AlterShield, on the RBAC of the API server."""

import json
import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest

from altershield.api.resources import API_VERSION, CHANGE_WORKLOADS
from command import main
from tests.e2e.sleep import SLEEP, TEMPLATE_PATCH, VERSION, suspend
from tests.support.kubectl import Json, Kubectl
from tests.support.polling import eventually
from tests.support.processes import Done, call, command
from tests.support.users import service_account

RELEASES = "changeworkloads,changepods"
GROUP = CHANGE_WORKLOADS.group
READS = ("get", "list", "watch")
WRITES = ("create", "update", "patch", "delete", "deletecollection")
VERDICT = json.dumps({"status": {"podResults": [{"pod": "sleep", "verdict": "pass"}]}})


@pytest.fixture
def released(kubectl: Kubectl) -> Kubectl:
    """The administrator's kubectl in a namespace with a release."""
    kubectl.apply(SLEEP)
    eventually(lambda: kubectl.json("changepods")["items"], "the first ChangePod")
    return kubectl


def user(kubectl: Kubectl, role: str) -> Kubectl:
    """kubectl of a user who has this ClusterRole in the namespace, and no other permission."""
    kubectl("create", "rolebinding", role, f"--clusterrole={role}", f"--user={role}-user")
    own = Kubectl(kubectl.kubeconfig, kubectl.namespace, f"--as={role}-user")
    eventually(lambda: own.may_list("changeworkloads"), f"the role {role} to be in effect")
    return own


def change_pod(kubectl: Kubectl) -> str:
    items: list[Json] = kubectl.json("changepods")["items"]
    return str(items[0]["metadata"]["name"])


def allowed(kubectl: Kubectl, verbs: Sequence[str], resource: str, group: str = GROUP) -> list[str]:
    """The verbs of these that the user may use. This asks what `kubectl auth can-i` asks, in one process."""
    plural, _, subresource = resource.partition("/")
    names = {"namespace": kubectl.namespace, "group": group, "resource": plural, "subresource": subresource}
    reviews = [
        {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {**names, "verb": verb}},
        }
        for verb in verbs
    ]
    stdin = json.dumps({"apiVersion": "v1", "kind": "List", "items": reviews})
    answers = kubectl("create", "-f", "-", "-o", "jsonpath={.status.allowed} ", stdin=stdin).split()
    return [verb for verb, answer in zip(verbs, answers, strict=True) if answer == "true"]


@pytest.mark.parametrize("role", ["view", "edit", "admin"])
def test_built_in_roles_may_read_releases_but_not_change_them(released: Kubectl, role: str) -> None:
    own = user(released, role)
    assert len(own("get", RELEASES, "-o", "name").splitlines()) >= 2
    for kind in ("changeworkloads", "changepods", "opsconfiginfoes", "defensepolicies"):
        assert allowed(own, (*READS, *WRITES), kind) == [*READS]
        assert allowed(own, WRITES, f"{kind}/status") == []
    assert allowed(own, READS, "clonesets", "apps.kruise.io") == [*READS]
    refused = own.run("patch", "changepod", change_pod(released), "--subresource=status", "--type=merge", "-p", VERDICT)
    assert "forbidden" in refused.stderr
    assert "forbidden" in own.run("delete", "changeworkloads", "--all").stderr


def test_role_verdicts_may_patch_change_pods_but_not_delete_change_workloads(released: Kubectl) -> None:
    own = user(released, "altershield-verdicts")
    name = change_pod(own)
    own("patch", "changepod", name, "--subresource=status", "--type=merge", "-p", VERDICT)
    assert own.json("changepod", name)["status"]["podResults"][0]["verdict"] == "pass"
    assert "patch" in allowed(own, WRITES, "changeworkloads/status")
    for kind in ("changeworkloads", "changepods"):
        assert allowed(own, WRITES, kind) == []
    assert allowed(own, ["get"], "deployments", "apps") == []


def test_role_policies_may_write_policies_but_not_their_status(kubectl: Kubectl) -> None:
    kubectl("create", "rolebinding", "policies", "--clusterrole=altershield-policies", "--user=policies-user")
    own = Kubectl(kubectl.kubeconfig, kubectl.namespace, "--as=policies-user")
    eventually(lambda: own.may_list("defensepolicies"), "the role to be in effect")
    assert allowed(own, (*READS, "create", "update", "patch", "delete"), "defensepolicies") == [
        *READS, "create", "update", "patch", "delete",
    ]  # fmt: skip
    assert allowed(own, WRITES, "defensepolicies/status") == []
    assert allowed(own, (*READS, *WRITES), "changeworkloads") == []


@pytest.fixture
def viewer(released: Kubectl, tmp_path: Path) -> Path:
    """The kubeconfig of a ServiceAccount that has the role view in its namespace."""
    return account(released, tmp_path, "viewer", "view")


def account(released: Kubectl, directory: Path, name: str, *roles: str) -> Path:
    """The kubeconfig of a ServiceAccount that has these ClusterRoles in its namespace."""
    made = service_account(released, name, directory)
    for role in roles:
        released("create", "rolebinding", f"{name}-{role}", f"--clusterrole={role}", f"--user={made.name}")
    return made.kubectl.kubeconfig


def test_status_command_works_with_the_role_view(viewer: Path, tmp_path: Path) -> None:
    log = tmp_path / "status.log"

    def shown() -> str:
        with command("status", "sleep", "--wait", "--kubeconfig", str(viewer), log=log) as process:
            process.wait()
        return log.read_text()

    eventually(lambda: "Success" in shown(), "the role to be in effect, and the release to succeed")
    with command("status", "-A", "--kubeconfig", str(viewer), log=log) as process:
        assert process.wait() == 1
    assert "error: cannot list ChangeWorkloads in all namespaces: " in log.read_text()
    assert "ask for the ClusterRole view in all namespaces" in log.read_text()


def test_budgets_command_works_with_the_role_view_and_why_says_that_it_may_not_ask(
    released: Kubectl, viewer: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*arguments: str) -> Done:
        return call(main, "altershield", *arguments, f"--kubeconfig={viewer}", capture=capsys)

    budget = {
        "apiVersion": API_VERSION, "kind": "PodUnavailableBudget", "metadata": {"name": "sleep"},
        "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "sleep"}, "maxUnavailable": 1},
    }  # fmt: skip
    released.apply(json.dumps(budget))
    eventually(lambda: run("budgets").returncode == 0, "the role to be in effect, and the reconciler")
    shown = run("budgets", "sleep")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.splitlines()[1].split()[:2] == ["sleep", "Enforce"]
    pod = released.json("pods")["items"][0]["metadata"]["name"]
    asked = run("why", f"pod/{pod}")
    assert asked.returncode == 1
    assert 'Deletion:  unknown\n           you may not do this, so nobody else was asked: pods "' in asked.stdout
    assert 'cannot create resource "pods/eviction"' in asked.stdout
    assert released.exists("pod", pod)


ENDS = {
    # the roles of a user; the commands that `why` suggests about a suspended release, the first one to end it
    ("view",): [],
    ("edit",): ["kubectl label", "kubectl delete"],
    ("view", "altershield-verdicts"): ["altershield repair", "altershield approve", "altershield retry"],
}


@pytest.mark.parametrize("roles", ENDS, ids="+".join)
def test_why_suggests_what_the_user_may_run_and_it_works(
    released: Kubectl, tmp_path: Path, capsys: pytest.CaptureFixture[str], roles: tuple[str, ...]
) -> None:
    version = released.labels("deployment", "sleep")[VERSION]
    eventually(lambda: released.exists("changepod", f"sleep--x--{version}--x--1"), "the first ChangePod")
    suspend(released, version)
    path = account(released, tmp_path, "somebody", *roles)

    def why(*output: str) -> Done:
        return call(main, "altershield", "why", "deploy/sleep", *output, f"--kubeconfig={path}", capture=capsys)

    eventually(lambda: why().returncode == 3, "the roles to be in effect")
    advice = json.loads(why("-o", "json").stdout)["advice"]
    own = [each["command"] for each in advice if each["allowed"]]
    assert all(any(command.startswith(each) for command in own) for each in ENDS[roles])
    assert bool(own) == bool(ENDS[roles])
    others = {each["role"] for each in advice if not each["allowed"]}
    assert others == {"altershield-verdicts", "edit"} - set(roles)
    shown = why().stdout
    at = shown.index("Others may run, with the ClusterRole ")
    for each in advice:
        assert each["command"] in (shown[:at] if each["allowed"] else shown[at:])
    if not own:
        assert "What to do: ask somebody who may" in shown
        return
    first = next(each for each in own if each.startswith(ENDS[roles][0]))
    program, *words = shlex.split(first)
    if program == "altershield":
        done = call(main, program, *words, f"--kubeconfig={path}", capture=capsys)
        assert done.returncode == 0, done.stderr
    else:
        Kubectl(path, released.namespace)(*words)
    released("patch", "deployment", "sleep", "-p", TEMPLATE_PATCH)
    assert released.labels("deployment", "sleep")[VERSION] != version, "the next release passed"
