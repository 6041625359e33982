"""What somebody can do who has the token of AlterShield's account. RBAC allows each of these requests; the admission
policies and the gatekeeper refuse them."""

import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from altershield.api import labels
from altershield.api.annotations import ROLLOUT
from altershield.api.names import CHECK_ACCOUNT, service_account_user
from command import main
from command.check import restrictions
from command.check.objects import NAME
from kube_base.access.client import Client, PatchType
from kube_base.access.errors import ApiError
from kube_base.resources import DEPLOYMENTS, PODS, REPLICA_SETS, Resource
from tests.e2e.sleep import SUSPEND, VERSION, release, sleep, succeed
from tests.support.kubectl import Json, Kubectl
from tests.support.polling import eventually
from tests.support.processes import Done, call

GROUPS = ["system:serviceaccounts", "system:authenticated"]
NOT_GOVERNED = "AlterShield changes nothing in a namespace without the label"
NOT_THIS = "the account of AlterShield may not change this"
ONLY_ROLLBACK = "only in a rollback of version"


def spec(**fields: object) -> Json:
    return {"spec": fields}


def pod_spec(**fields: object) -> Json:
    return spec(template={"spec": fields})


def metadata(**fields: object) -> Json:
    return {"metadata": fields}


def held(**fields: object) -> Json:
    """With the annotation of a release in steps."""
    return {**metadata(annotations={ROLLOUT: "{}"}), **spec(**fields)}


OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "kube-root-ca.crt", "uid": "0"}
PRIVILEGED = {"containers": [{"name": "sleep", "securityContext": {"privileged": True}}]}
SECRET_VOLUME = {"volumes": [{"name": "stolen", "secret": {"secretName": "anything"}}]}

GOVERNED_ATTACKS: dict[str, tuple[Resource, Json, str]] = {
    "service account": (DEPLOYMENTS, pod_spec(serviceAccountName="admin"), ONLY_ROLLBACK),
    "hostPID": (DEPLOYMENTS, pod_spec(hostPID=True), ONLY_ROLLBACK),
    "hostNetwork": (DEPLOYMENTS, pod_spec(hostNetwork=True), ONLY_ROLLBACK),
    "image": (DEPLOYMENTS, pod_spec(containers=[{"name": "sleep", "image": "evil"}]), ONLY_ROLLBACK),
    "privileged": (DEPLOYMENTS, pod_spec(**PRIVILEGED), ONLY_ROLLBACK),
    "Secret volume": (DEPLOYMENTS, pod_spec(**SECRET_VOLUME), ONLY_ROLLBACK),
    "command": (DEPLOYMENTS, pod_spec(containers=[{"name": "sleep", "command": ["evil"]}]), ONLY_ROLLBACK),
    "template labels": (DEPLOYMENTS, spec(template=metadata(labels={"app": "sleep", "a": "b"})), ONLY_ROLLBACK),
    "replicas": (DEPLOYMENTS, spec(replicas=0), NOT_THIS),
    "strategy": (DEPLOYMENTS, spec(strategy={"type": "Recreate", "rollingUpdate": None}), NOT_THIS),
    "revision history": (DEPLOYMENTS, spec(revisionHistoryLimit=0), NOT_THIS),
    "progress deadline": (DEPLOYMENTS, spec(progressDeadlineSeconds=1_000_000), NOT_THIS),
    "minReadySeconds": (DEPLOYMENTS, spec(minReadySeconds=9), NOT_THIS),
    "strategy without the annotation": (DEPLOYMENTS, spec(strategy={"rollingUpdate": {"maxUnavailable": 9}}), NOT_THIS),
    "replicas with the annotation": (DEPLOYMENTS, held(replicas=0), NOT_THIS),
    "revision history with the annotation": (DEPLOYMENTS, held(minReadySeconds=1, revisionHistoryLimit=0), NOT_THIS),
    "template with the annotation": (DEPLOYMENTS, held(template={"spec": {"hostPID": True}}), ONLY_ROLLBACK),
    "label of others": (DEPLOYMENTS, metadata(labels={"team": "evil"}), NOT_THIS),
    "removed label of others": (DEPLOYMENTS, metadata(labels={"app": None}), NOT_THIS),
    "owner": (DEPLOYMENTS, metadata(ownerReferences=[OWNER]), NOT_THIS),
    "finalizer": (DEPLOYMENTS, metadata(finalizers=["evil.example/never"]), NOT_THIS),
    "replicas of a ReplicaSet": (REPLICA_SETS, spec(replicas=0), NOT_THIS),
    "template of a ReplicaSet": (REPLICA_SETS, pod_spec(hostPID=True), NOT_THIS),
    "owner of a ReplicaSet": (REPLICA_SETS, metadata(ownerReferences=None), NOT_THIS),
    "annotation of a ReplicaSet": (REPLICA_SETS, metadata(annotations={"a": "b"}), NOT_THIS),
    "image of a pod": (PODS, spec(containers=[{"name": "sleep", "image": "evil"}]), NOT_THIS),
    "label of a pod": (PODS, metadata(labels={"app": "payments"}), NOT_THIS),
    "hash of a pod": (PODS, metadata(labels={"pod-template-hash": "0"}), NOT_THIS),
    "annotation of a pod": (PODS, metadata(annotations={"a": "b"}), NOT_THIS),
    "owner of a pod": (PODS, metadata(ownerReferences=None), NOT_THIS),
    "finalizer of a pod": (PODS, metadata(finalizers=["evil.example/never"]), NOT_THIS),
}
"""Patches of objects in a governed namespace: kind, strategic merge patch, and a part of the denial."""

FOREIGN_ATTACKS: dict[str, tuple[Resource, Json]] = {
    "service account": (DEPLOYMENTS, pod_spec(serviceAccountName="admin")),
    "pause": (DEPLOYMENTS, spec(paused=True)),
    "hold": (DEPLOYMENTS, held(minReadySeconds=1)),
    "annotation": (DEPLOYMENTS, metadata(annotations={"a": "b"})),
    "own label": (DEPLOYMENTS, metadata(labels={labels.SUSPEND: "1"})),
    "own label of a ReplicaSet": (REPLICA_SETS, metadata(labels={labels.VERSION: "0"})),
    "own label of a pod": (PODS, metadata(labels={labels.OPERATE_FINISHED: "1"})),
}
"""Patches of objects in a namespace that is not governed."""


@dataclass(frozen=True)
class Place:
    """A namespace with a Deployment `sleep`."""

    admin: Kubectl
    account: Kubectl
    """kubectl of the account."""
    kubeconfig: Path
    """That of the account."""

    def name(self, resource: Resource) -> str:
        items: list[Json] = self.admin.json(resource.plural, "-l", "app=sleep")["items"]
        return str(items[0]["metadata"]["name"])

    async def patched(self, resource: Resource, patch: Json) -> str:
        """Send a patch as the account, which may not read pods as `kubectl patch` does. Returns the denial;
        AssertionError if there is none."""
        async with await Client.connect(str(self.kubeconfig)) as client:
            with pytest.raises(ApiError) as caught:
                await client.patch(
                    resource, patch, self.name(resource), self.admin.namespace, type_=PatchType.STRATEGIC
                )
        return str(caught.value)


def place(admin: Kubectl, directory: Path, user: str = service_account_user()) -> Place:
    config = admin.config()
    for each in config["users"]:
        each["user"] |= {"as": user, "as-groups": GROUPS}
    kubeconfig = directory / f"{admin.namespace}-{user.rpartition(':')[2]}.kubeconfig"
    kubeconfig.write_text(json.dumps(config))
    return Place(admin, Kubectl(kubeconfig, admin.namespace), kubeconfig)


@pytest.fixture(scope="module")
def governed(installed: Path, directory: Path) -> Iterator[Place]:
    admin = Kubectl(installed, f"account-{uuid.uuid4().hex[:8]}")
    admin("create", "namespace", admin.namespace)
    admin("label", "namespace", admin.namespace, f"{labels.GOVERNED}={labels.GOVERNED_VALUE}")
    release(admin, sleep(replicas=1))
    yield place(admin, directory)
    admin.run("delete", "namespace", admin.namespace, "--wait=false")


@pytest.fixture(scope="module")
def foreign(installed: Path, directory: Path) -> Iterator[Place]:
    admin = Kubectl(installed, f"foreign-{uuid.uuid4().hex[:8]}")
    admin("create", "namespace", admin.namespace)
    admin.apply(sleep(replicas=1))
    eventually(lambda: admin.json("pods")["items"], "a pod")
    yield place(admin, directory)
    admin.run("delete", "namespace", admin.namespace, "--wait=false")


@pytest.mark.parametrize("attack", GOVERNED_ATTACKS)
async def test_account_cannot_change_what_it_does_not_own(governed: Place, attack: str) -> None:
    kind, patch, denial = GOVERNED_ATTACKS[attack]
    assert denial in await governed.patched(kind, patch)


@pytest.mark.parametrize("attack", FOREIGN_ATTACKS)
async def test_account_changes_nothing_in_a_namespace_that_is_not_governed(foreign: Place, attack: str) -> None:
    kind, patch = FOREIGN_ATTACKS[attack]
    assert NOT_GOVERNED in await foreign.patched(kind, patch)


RESTORED = {**metadata(annotations={ROLLOUT: None}), **spec(minReadySeconds=0)}

FOREIGN_RESTORATIONS: dict[str, Json] = {
    "template": spec(template={"spec": {"hostPID": True}}),
    "replicas": spec(replicas=0),
    "own label": metadata(labels={labels.SUSPEND: "1"}),
    "another annotation": metadata(annotations={"a": "b"}),
}


async def test_account_restores_the_fields_of_a_workload_that_is_not_governed_any_more(foreign: Place) -> None:
    """And nothing else with them."""
    admin, name = foreign.admin, foreign.name(DEPLOYMENTS)
    admin("annotate", "deployment", name, f"{ROLLOUT}={{}}")
    admin("patch", "deployment", name, "-p", json.dumps(spec(minReadySeconds=7)))
    for attack, patch in FOREIGN_RESTORATIONS.items():
        both = {
            "metadata": {**RESTORED["metadata"], **patch.get("metadata", {})},
            "spec": {**RESTORED["spec"], **patch.get("spec", {})},
        }
        both["metadata"]["annotations"] = {**RESTORED["metadata"]["annotations"], **both["metadata"]["annotations"]}
        assert NOT_THIS in await foreign.patched(DEPLOYMENTS, both), attack
    assert NOT_GOVERNED in await foreign.patched(DEPLOYMENTS, spec(minReadySeconds=0))
    foreign.account("patch", "deployment", name, "-p", json.dumps(RESTORED))
    found = admin.json("deployment", name)
    assert "minReadySeconds" not in found["spec"] or found["spec"]["minReadySeconds"] == 0
    assert ROLLOUT not in found["metadata"]["annotations"]


def test_account_deletes_no_pod_in_a_namespace_that_is_not_governed(foreign: Place) -> None:
    done = foreign.account.run("delete", "pod", foreign.name(PODS), "--wait=false")
    assert NOT_GOVERNED in done.stderr


def revision(name: str, **own: str) -> str:
    head = {"apiVersion": "apps/v1", "kind": "ControllerRevision", "revision": 1, "data": {}}
    return json.dumps({**head, "metadata": {"name": name, "labels": own}})


def test_account_writes_only_its_own_controller_revisions(governed: Place) -> None:
    admin, account = governed.admin, governed.account
    admin("create", "-f", "-", stdin=revision("of-a-statefulset", app="sleep"))
    assert "has no label" in account.run("create", "-f", "-", stdin=revision("mine", app="sleep")).stderr
    assert "has no label" in account.run("delete", "controllerrevision", "of-a-statefulset").stderr
    adopt = json.dumps(metadata(labels={labels.HISTORY: "sleep"}))
    done = account.run("patch", "controllerrevision", "of-a-statefulset", "--type=merge", "-p", adopt)
    assert "has no label" in done.stderr


def test_account_creates_no_controller_revision_in_a_namespace_that_is_not_governed(foreign: Place) -> None:
    made = revision("mine", **{labels.HISTORY: "sleep"})
    assert NOT_GOVERNED in foreign.account.run("create", "-f", "-", stdin=made).stderr


def test_account_writes_only_its_own_config_maps(governed: Place) -> None:
    """RBAC lets it create and delete ConfigMaps in the system namespace."""
    admin, account = governed.admin, governed.account
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mine", "labels": {"app": "sleep"}}}
    admin("create", "rolebinding", "config-maps", "--clusterrole=cluster-admin", f"--user={service_account_user()}")
    try:
        assert "has no label" in account.run("create", "-f", "-", stdin=json.dumps(made)).stderr
        assert "has no label" in account.run("delete", "configmap", "kube-root-ca.crt").stderr
        made["metadata"] = {"name": "mine", "labels": {labels.ORDER: labels.ORDER_OPEN}}
        account("create", "-f", "-", stdin=json.dumps(made))
        account("delete", "configmap", "mine")
    finally:
        admin("delete", "rolebinding", "config-maps")


async def test_account_cannot_release_the_template_of_a_finished_rollback(governed: Place) -> None:
    """The state of the ChangeWorkload is Failed then, not Rollback."""
    patch = pod_spec(containers=[{"name": "sleep", "image": "busybox:stolen"}])
    before = governed.admin.labels("deployment", "sleep")[VERSION]
    assert ONLY_ROLLBACK in await governed.patched(DEPLOYMENTS, patch)
    assert governed.admin.labels("deployment", "sleep")[VERSION] == before


def test_account_writes_its_own_labels_and_rolls_back(kubectl: Kubectl, tmp_path: Path) -> None:
    """The reconciler is this account: its own work passes the policies."""
    good = release(kubectl)
    kubectl.apply(sleep(image="missing"))
    bad = kubectl.labels("deployment", "sleep")[VERSION]
    assert bad != good
    eventually(lambda: kubectl.exists("changeworkload", f"sleep--x--{bad}"), "the ChangeWorkload")
    kubectl.wait(f"changeworkload/sleep--x--{bad}", "jsonpath={.status.status}=Failed")
    eventually(lambda: kubectl.labels("deployment", "sleep")[VERSION] == good, "the rollback")
    succeed(kubectl, good)
    account = place(kubectl, tmp_path).account
    account("label", "deployment", "sleep", f"{SUSPEND}=1")
    account("patch", "deployment", "sleep", "-p", json.dumps(spec(paused=True)))
    account(
        "patch",
        "deployment",
        "sleep",
        "-p",
        json.dumps({**metadata(annotations={ROLLOUT: "{}"}), **spec(minReadySeconds=1)}),
    )


def checked(kubeconfig: Path, governed: Place, foreign: Place, capture: pytest.CaptureFixture[str]) -> Done:
    """`altershield check` as the user of a kubeconfig."""
    pod = f"{foreign.admin.namespace}/{foreign.name(PODS)}"
    where = [f"--namespace={governed.admin.namespace}", f"--ungoverned-pod={pod}", f"--kubeconfig={kubeconfig}"]
    return call(main, "altershield", "check", *where, capture=capture)


@pytest.fixture(scope="module")
def tester(governed: Place, foreign: Place, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The kubeconfig of the account of `helm test`, which RBAC lets do everything in two namespaces."""
    user = service_account_user(name=CHECK_ACCOUNT)
    for each in (governed, foreign):
        each.admin("create", "rolebinding", "check", "--clusterrole=cluster-admin", f"--user={user}")
    return place(governed.admin, tmp_path_factory.mktemp("tester"), user).kubeconfig


def test_check_of_helm_test_is_held_by_the_policies_for_the_account(
    governed: Place, foreign: Place, tester: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pod = foreign.name(PODS)
    done = checked(tester, governed, foreign, capfd)
    assert (done.returncode, done.stderr) == (0, "")
    assert "restricted: the admission policies for AlterShield's account refused 4 changes" in done.stdout
    assert foreign.admin.json("pod", pod)["metadata"].get("deletionTimestamp") is None


@pytest.mark.parametrize(
    ("policy", "change"),
    [
        ("own-workloads", "changing the replicas of a Deployment"),
        ("own-pods", "labelling a pod that is not governed"),
        ("own-deletions", "deleting a pod that is not governed"),
        ("own-objects", "creating a ControllerRevision"),
    ],
)
def test_check_fails_if_one_policy_for_the_account_is_not_in_force(
    governed: Place,
    foreign: Place,
    tester: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    policy: str,
    change: str,
) -> None:
    admin, binding = governed.admin, ("validatingadmissionpolicybinding", f"altershield-{policy}")
    monkeypatch.setattr(restrictions, "_POLICY_WAIT", 3.0)
    kept = admin.json(*binding)
    admin("delete", *binding)
    try:
        done = checked(tester, governed, foreign, capfd)
    finally:
        head = {key: kept["metadata"][key] for key in ("name", "labels")}
        admin("create", "-f", "-", stdin=json.dumps({**kept, "metadata": head}))
    assert done.returncode == 1
    assert f"an admission policy to refuse {change} (dry run); last answer: the API server accepted it" in done.stderr


def test_check_fails_with_a_sentence_if_no_policy_refuses_a_change(
    governed: Place, foreign: Place, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """As the administrator, whom the policies do not hold."""
    monkeypatch.setattr(restrictions, "_POLICY_WAIT", 1.0)
    done = checked(governed.admin.kubeconfig, governed, foreign, capfd)
    assert done.returncode == 1
    assert "waited 1 s for an admission policy to refuse changing the replicas of a Deployment" in done.stderr
    assert "the API server accepted it; check that the ValidatingAdmissionPolicies *-own-*" in done.stderr
    assert governed.admin.run("get", "deployment", NAME).returncode == 1, "it is cleaned up"


def test_admission_policies_have_no_type_errors(kubectl: Kubectl) -> None:
    """kube-controller-manager checks the expressions against the types of the resources."""
    for policy in kubectl.json("validatingadmissionpolicies")["items"]:
        if policy["metadata"]["name"].startswith("altershield-"):
            warnings = policy.get("status", {}).get("typeChecking", {}).get("expressionWarnings")
            assert not warnings, (policy["metadata"]["name"], warnings)
