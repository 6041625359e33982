"""What the gatekeepers admit, correct and deny, as a user of kubectl sees it."""

import json
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from altershield.admission.webhooks import webhook_name
from altershield.workloads import ADAPTERS
from kube_base.resources import Resource
from tests.e2e.sleep import (
    DEFENSE_STATUS,
    IGNORED_SUSPEND,
    SLEEP,
    SUSPEND,
    TEMPLATE_PATCH,
    VERSION,
    release,
    sleep,
    succeed,
    suspend,
)
from tests.support.kubectl import Json, Kubectl
from tests.support.polling import eventually

OPERATE_FINISHED = "altershield.defense.antgroup.com/operate-finished"

RESOURCES = [adapter.resource for adapter in ADAPTERS if not adapter.crd]


def manifest(resource: Resource, template_labels: Json | None = None) -> str:
    """`sleep` as a workload of this kind."""
    spec = {"serviceName": "sleep"} if resource.kind == "StatefulSet" else {}
    return sleep(kind=resource.kind, template_labels=template_labels, **spec)


def template_version(kubectl: Kubectl) -> str | None:
    template = kubectl.json("deployment", "sleep")["spec"]["template"]
    return template["metadata"].get("labels", {}).get(VERSION)


def test_kubectl_replace_keeps_our_labels_without_a_warning(kubectl: Kubectl) -> None:
    version = release(kubectl)
    done = kubectl.run("replace", "-f", "-", stdin=SLEEP)
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr
    assert kubectl.labels("deployment", "sleep")[VERSION] == version
    assert kubectl.labels("deployment", "sleep")[DEFENSE_STATUS] == "processed"
    assert template_version(kubectl) == version
    assert len(kubectl.json("replicasets")["items"]) == 1, "the pods were restarted"


def test_kubectl_replace_of_a_suspended_deployment_keeps_the_suspension(kubectl: Kubectl) -> None:
    suspend(kubectl, release(kubectl))
    done = kubectl.run("replace", "-f", "-", stdin=SLEEP)
    assert done.returncode == 0, done.stderr
    assert SUSPEND in kubectl.labels("deployment", "sleep")


@pytest.mark.parametrize("change", [f"{VERSION}=mine", f"{SUSPEND}=1", f"{DEFENSE_STATUS}-", f"{VERSION}-"])
def test_changes_of_our_labels_by_users_are_reverted(kubectl: Kubectl, change: str) -> None:
    release(kubectl)
    before = kubectl.labels("deployment", "sleep")
    done = kubectl.run("label", "deployment", "sleep", "--overwrite", change)
    assert done.returncode == 0, done.stderr
    assert kubectl.labels("deployment", "sleep") == before
    if not change.endswith("-"):
        assert "Warning:" in done.stderr


def test_removed_suspend_label_is_restored_with_a_warning(kubectl: Kubectl) -> None:
    suspend(kubectl, release(kubectl))
    done = kubectl.run("label", "deployment", "sleep", f"{SUSPEND}-")
    assert done.returncode == 0, done.stderr
    assert "Warning:" in done.stderr
    assert SUSPEND in kubectl.labels("deployment", "sleep")


def test_label_added_to_the_template_is_a_release(kubectl: Kubectl) -> None:
    version = release(kubectl)
    kubectl("patch", "deployment", "sleep", "-p", TEMPLATE_PATCH)
    assert template_version(kubectl) == kubectl.labels("deployment", "sleep")[VERSION] != version


def test_governing_a_namespace_restarts_no_pods(kubectl: Kubectl) -> None:
    kubectl("label", "namespace", kubectl.namespace, "admission-webhook-altershield-")

    def ungoverned() -> bool:
        out = kubectl("create", "--dry-run=server", "-o", "json", "-f", "-", stdin=SLEEP)
        return VERSION not in out

    eventually(ungoverned, "the namespace not to be governed")
    kubectl.apply(sleep("old"))
    kubectl("rollout", "status", "deployment", "old")
    kubectl("label", "namespace", kubectl.namespace, "admission-webhook-altershield=enabled")
    eventually(lambda: not ungoverned(), "the namespace to be governed")

    kubectl("annotate", "deployment", "old", "touched=yes")
    kubectl("scale", "deployment", "old", "--replicas=3")
    deployment = kubectl.json("deployment", "old")
    assert VERSION not in deployment["metadata"]["labels"]
    assert VERSION not in deployment["spec"]["template"]["metadata"]["labels"]
    assert len(kubectl.json("replicasets")["items"]) == 1

    kubectl("patch", "deployment", "old", "-p", TEMPLATE_PATCH)
    assert VERSION in kubectl.labels("deployment", "old")


def test_changes_that_are_no_release_are_admitted_while_suspended(kubectl: Kubectl) -> None:
    suspend(kubectl, release(kubectl))
    kubectl("annotate", "deployment", "sleep", "note=here")
    kubectl("label", "deployment", "sleep", "team=red")
    kubectl("scale", "deployment", "sleep", "--replicas=2")
    kubectl("patch", "deployment", "sleep", "-p", '{"spec":{"minReadySeconds":1}}')
    kubectl("rollout", "status", "deployment", "sleep")


@pytest.mark.parametrize(
    "release_command",
    [
        ["rollout", "restart", "deployment", "sleep"],
        ["set", "env", "deployment", "sleep", "A=B"],
        ["patch", "deployment", "sleep", "--dry-run=server", "-p", TEMPLATE_PATCH],
    ],
)
def test_every_kind_of_release_is_denied_while_suspended(kubectl: Kubectl, release_command: list[str]) -> None:
    suspend(kubectl, release(kubectl))
    done = kubectl.run(*release_command)
    assert done.returncode != 0
    assert "deployment sleep is suspended" in done.stderr


def test_repair_label_set_by_kubectl_admits_one_release(kubectl: Kubectl) -> None:
    version = release(kubectl)
    suspend(kubectl, version)
    kubectl("label", "deployment", "sleep", f"{IGNORED_SUSPEND}=true")
    kubectl("patch", "deployment", "sleep", "-p", TEMPLATE_PATCH)
    repaired = kubectl.labels("deployment", "sleep")[VERSION]
    assert repaired != version
    succeed(kubectl, repaired)
    eventually(
        lambda: not {SUSPEND, IGNORED_SUSPEND} & set(kubectl.labels("deployment", "sleep")), "the labels to be removed"
    )


@pytest.mark.parametrize("command", [["apply"], ["replace"]])
def test_repair_label_admits_a_manifest_without_it_although_kubectl_removes_it(
    kubectl: Kubectl, command: list[str]
) -> None:
    """`apply` removes the label if the manifest of an earlier repair had it, as in the walkthrough."""
    version = release(kubectl, sleep(labels={IGNORED_SUSPEND: "true"}))
    eventually(lambda: IGNORED_SUSPEND not in kubectl.labels("deployment", "sleep"), "the first label to be removed")
    suspend(kubectl, version)
    fix = sleep(image="busybox:2")
    assert "is suspended" in kubectl.run(*command, "-f", "-", stdin=fix).stderr
    kubectl("label", "deployment", "sleep", f"{IGNORED_SUSPEND}=true")
    kubectl(*command, "-f", "-", stdin=fix)
    succeed(kubectl, kubectl.labels("deployment", "sleep")[VERSION])
    eventually(
        lambda: not {SUSPEND, IGNORED_SUSPEND} & set(kubectl.labels("deployment", "sleep")), "the labels to be removed"
    )


def test_kubectl_rollout_undo_while_suspended_needs_the_repair_label(kubectl: Kubectl) -> None:
    first = release(kubectl)
    kubectl("patch", "deployment", "sleep", "-p", TEMPLATE_PATCH)
    second = kubectl.labels("deployment", "sleep")[VERSION]
    succeed(kubectl, second)
    suspend(kubectl, second)
    assert "is suspended" in kubectl.run("rollout", "undo", "deployment", "sleep").stderr
    kubectl("label", "deployment", "sleep", f"{IGNORED_SUSPEND}=true")
    kubectl("rollout", "undo", "deployment", "sleep")
    assert kubectl.labels("deployment", "sleep")[VERSION] == first
    succeed(kubectl, first)
    eventually(lambda: SUSPEND not in kubectl.labels("deployment", "sleep"), "the suspension to end")


def test_exported_deployment_can_be_created_under_another_name(kubectl: Kubectl) -> None:
    release(kubectl)
    exported = kubectl.json("deployment", "sleep")
    exported["metadata"] = {
        "name": "copy",
        "labels": {**exported["metadata"]["labels"], SUSPEND: "1"},
    }
    exported.pop("status")
    done = kubectl.run("create", "-f", "-", stdin=json.dumps(exported))
    assert done.returncode == 0, done.stderr
    assert SUSPEND not in kubectl.labels("deployment", "copy")


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda each: each.plural)
def test_denial_names_the_kind_of_the_suspended_workload(kubectl: Kubectl, resource: Resource) -> None:
    kubectl.apply(manifest(resource))
    kind = resource.kind.lower()
    version = kubectl.labels(kind, "sleep")[VERSION]
    listed = f"changepods -l {VERSION}={version}".split()
    change_pod = eventually(lambda: kubectl.json(*listed)["items"], "a pod to be verified")[0]
    result = {"pod": change_pod["spec"]["podInfos"][0]["pod"], "verdict": "unpass", "message": "find error"}
    patch = json.dumps({"status": {"podResults": [result]}})
    kubectl("patch", "changepod", change_pod["metadata"]["name"], "--subresource=status", "--type=merge", "-p", patch)
    eventually(lambda: SUSPEND in kubectl.labels(kind, "sleep"), "the suspend label")

    denied = kubectl.run("patch", kind, "sleep", "-p", TEMPLATE_PATCH)

    text = f"{kind} sleep is suspended"
    webhook = webhook_name(resource, mutating=False)
    assert f'Error from server ({text}): admission webhook "{webhook}" denied the request: {text}' in denied.stderr


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda each: each.plural)
def test_operate_finished_label_is_removed_from_pod_templates(kubectl: Kubectl, resource: Resource) -> None:
    done = kubectl.run("apply", "-f", "-", stdin=manifest(resource, {OPERATE_FINISHED: "1"}))
    assert done.returncode == 0, done.stderr
    assert f"Warning: AlterShield: the label {OPERATE_FINISHED} does not belong in a pod template" in done.stderr
    stored = kubectl.json(resource.kind.lower(), "sleep")["spec"]["template"]["metadata"]["labels"]
    assert stored == {"app": "sleep", VERSION: kubectl.labels(resource.kind.lower(), "sleep")[VERSION]}


def test_one_of_ten_concurrent_repairs_is_admitted(kubectl: Kubectl) -> None:
    suspend(kubectl, release(kubectl))
    kubectl("label", "deployment", "sleep", f"{IGNORED_SUSPEND}=true")

    def repair(number: int) -> subprocess.CompletedProcess[str]:
        patch = {"spec": {"template": {"metadata": {"labels": {"test": str(number)}}}}}
        return kubectl.run("patch", "deployment", "sleep", "-p", json.dumps(patch))

    with ThreadPoolExecutor(10) as pool:
        done = list(pool.map(repair, range(10)))

    assert sorted(each.returncode for each in done) == [0, *[1] * 9]
    assert all("deployment sleep is suspended" in each.stderr for each in done if each.returncode)


def test_suspended_deployment_deleted_without_its_pods_is_suspended_when_created_again(kubectl: Kubectl) -> None:
    suspend(kubectl, release(kubectl))
    since = kubectl.labels("deployment", "sleep")[SUSPEND]
    kubectl("delete", "deployment", "sleep", "--cascade=orphan")

    def orphaned() -> bool:
        return not any(each["metadata"].get("ownerReferences") for each in kubectl.json("changeworkloads")["items"])

    eventually(orphaned, "its ChangeWorkloads to be orphaned")
    done = kubectl.run("apply", "-f", "-", stdin=SLEEP)
    assert done.returncode == 0, done.stderr
    assert "Warning: AlterShield: deployment sleep was suspended when it was deleted, and is suspended" in done.stderr
    assert kubectl.labels("deployment", "sleep")[SUSPEND] == since
    assert "is suspended" in kubectl.run("patch", "deployment", "sleep", "-p", TEMPLATE_PATCH).stderr
