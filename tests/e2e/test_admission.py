"""What the gate lets through, puts right and denies, as a user of kubectl sees it."""

import json

import pytest

from tests.e2e.conftest import SLEEP, Kubectl, eventually
from tests.e2e.test_walkthrough import (
    DEFENSE_STATUS,
    IGNORED_SUSPEND,
    SUSPEND,
    TEMPLATE_PATCH,
    VERSION,
    release,
    succeed,
    suspend,
)


def template_version(kubectl: Kubectl) -> str | None:
    template = kubectl.json("deployment", "sleep")["spec"]["template"]
    return template["metadata"].get("labels", {}).get(VERSION)


def test_replacing_from_the_manifest_keeps_our_labels_silently(kubectl: Kubectl) -> None:
    version = release(kubectl)
    done = kubectl.run("replace", "-f", "-", stdin=SLEEP)
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr
    assert kubectl.labels("deployment", "sleep")[VERSION] == version
    assert kubectl.labels("deployment", "sleep")[DEFENSE_STATUS] == "processed"
    assert template_version(kubectl) == version
    assert len(kubectl.json("replicasets")["items"]) == 1, "a pod was restarted"


def test_replacing_a_suspended_deployment_does_not_lift_the_suspension(kubectl: Kubectl) -> None:
    suspend(kubectl, release(kubectl))
    done = kubectl.run("replace", "-f", "-", stdin=SLEEP)
    assert done.returncode == 0, done.stderr
    assert SUSPEND in kubectl.labels("deployment", "sleep")


@pytest.mark.parametrize("change", [f"{VERSION}=mine", f"{SUSPEND}=1", f"{DEFENSE_STATUS}-", f"{VERSION}-"])
def test_what_users_do_to_our_labels_is_put_back(kubectl: Kubectl, change: str) -> None:
    release(kubectl)
    before = kubectl.labels("deployment", "sleep")
    done = kubectl.run("label", "deployment", "sleep", "--overwrite", change)
    assert done.returncode == 0, done.stderr
    assert kubectl.labels("deployment", "sleep") == before
    if not change.endswith("-"):
        assert "Warning:" in done.stderr


def test_taking_the_suspension_away_by_hand_is_put_back_with_a_warning(kubectl: Kubectl) -> None:
    suspend(kubectl, release(kubectl))
    done = kubectl.run("label", "deployment", "sleep", f"{SUSPEND}-")
    assert done.returncode == 0, done.stderr
    assert "Warning:" in done.stderr
    assert SUSPEND in kubectl.labels("deployment", "sleep")


def test_a_label_set_on_the_template_alone_is_a_release(kubectl: Kubectl) -> None:
    version = release(kubectl)
    kubectl("patch", "deployment", "sleep", "-p", TEMPLATE_PATCH)
    assert template_version(kubectl) == kubectl.labels("deployment", "sleep")[VERSION] != version


def test_switching_governance_on_restarts_nothing(kubectl: Kubectl) -> None:
    kubectl("label", "namespace", kubectl.namespace, "admission-webhook-altershield-")
    manifest = SLEEP.replace("name: sleep\n  labels", "name: old\n  labels")

    def ungoverned() -> bool:
        out = kubectl("create", "--dry-run=server", "-o", "json", "-f", "-", stdin=SLEEP)
        return VERSION not in out

    eventually(ungoverned, "the gate to leave the namespace alone")
    kubectl("apply", "-f", "-", stdin=manifest)
    kubectl("rollout", "status", "deployment", "old", "--timeout=60s")
    kubectl("label", "namespace", kubectl.namespace, "admission-webhook-altershield=enabled")
    eventually(lambda: not ungoverned(), "the gate to see the namespace")

    kubectl("annotate", "deployment", "old", "touched=yes")
    kubectl("scale", "deployment", "old", "--replicas=3")
    deployment = kubectl.json("deployment", "old")
    assert VERSION not in deployment["metadata"]["labels"]
    assert VERSION not in deployment["spec"]["template"]["metadata"]["labels"]
    assert len(kubectl.json("replicasets")["items"]) == 1

    kubectl("patch", "deployment", "old", "-p", TEMPLATE_PATCH)
    assert VERSION in kubectl.labels("deployment", "old")


def test_everything_that_is_no_release_passes_a_suspension(kubectl: Kubectl) -> None:
    suspend(kubectl, release(kubectl))
    kubectl("annotate", "deployment", "sleep", "note=here")
    kubectl("label", "deployment", "sleep", "team=red")
    kubectl("scale", "deployment", "sleep", "--replicas=2")
    kubectl("patch", "deployment", "sleep", "-p", '{"spec":{"minReadySeconds":1}}')
    kubectl("rollout", "status", "deployment", "sleep", "--timeout=60s")


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


def test_a_repair_announced_by_kubectl_label_passes_once(kubectl: Kubectl) -> None:
    version = release(kubectl)
    suspend(kubectl, version)
    kubectl("label", "deployment", "sleep", f"{IGNORED_SUSPEND}=true")
    kubectl("patch", "deployment", "sleep", "-p", TEMPLATE_PATCH)
    repaired = kubectl.labels("deployment", "sleep")[VERSION]
    assert repaired != version
    succeed(kubectl, repaired)
    eventually(
        lambda: not {SUSPEND, IGNORED_SUSPEND} & set(kubectl.labels("deployment", "sleep")), "the labels to be off"
    )


def test_undo_of_a_suspended_release_needs_the_repair_label(kubectl: Kubectl) -> None:
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
    eventually(lambda: SUSPEND not in kubectl.labels("deployment", "sleep"), "the suspension to be lifted")


def test_an_exported_object_can_be_applied_under_another_name(kubectl: Kubectl) -> None:
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
