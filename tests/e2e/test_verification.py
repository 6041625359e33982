"""Verdicts, suspension, settings and rollback of a release, as a user of kubectl sees them."""

import json
import time

from tests.e2e.conftest import BATCH_WAIT, START_TIMEOUT
from tests.e2e.sleep import SUSPEND, TEMPLATE_PATCH, VERSION, release, succeed, suspend
from tests.support.kubectl import Json, Kubectl
from tests.support.polling import eventually

SYSTEM = "altershieldoperator-system"


def patch_verdict(kubectl: Kubectl, change_pod: str, pod: str, verdict: str) -> None:
    status = {"status": {"podResults": [{"pod": pod, "verdict": verdict}]}}
    kubectl("patch", "changepod", change_pod, "--subresource=status", "--type=merge", "-p", json.dumps(status))


def resumed(kubectl: Kubectl) -> bool:
    return SUSPEND not in kubectl.labels("deployment", "sleep")


def state(kubectl: Kubectl, version: str) -> str:
    """The state of the release; empty if there is no release."""
    name = f"sleep--x--{version}"
    status: Json = (
        kubectl.json("changeworkload", name).get("status", {}) if kubectl.exists("changeworkload", name) else {}
    )
    return str(status.get("status", ""))


def test_deleting_the_failed_pod_ends_the_suspension(kubectl: Kubectl) -> None:
    version = release(kubectl)
    failed = suspend(kubectl, version)
    kubectl("delete", "pod", failed["pod"])
    eventually(lambda: resumed(kubectl), "the suspension to end")
    succeed(kubectl, version)
    assert len(kubectl.json("changepods")["items"]) == 6


def test_corrected_verdict_ends_the_suspension(kubectl: Kubectl) -> None:
    version = release(kubectl)
    failed = suspend(kubectl, version)
    patch_verdict(kubectl, f"sleep--x--{version}--x--1", failed["pod"], "pass")
    eventually(lambda: resumed(kubectl), "the suspension to end")
    succeed(kubectl, version)


def test_pods_added_by_scaling_are_verified_after_success(kubectl: Kubectl) -> None:
    version = release(kubectl)
    kubectl("scale", "deployment", "sleep", "--replicas=7")
    eventually(lambda: len(kubectl.json("changepods")["items"]) == 7, "seven ChangePods")
    assert state(kubectl, version) == "Success"


def test_failed_release_is_not_suspended_if_blocking_is_off(kubectl: Kubectl, setting) -> None:  # type: ignore[no-untyped-def]
    version = release(kubectl)
    setting("blocking", enable=False)
    pod = kubectl.json("changepod", f"sleep--x--{version}--x--1")["spec"]["podInfos"][0]["pod"]
    patch_verdict(kubectl, f"sleep--x--{version}--x--1", pod, "unpass")
    eventually(lambda: state(kubectl, version) == "Suspend", "Suspend")
    kubectl("patch", "deployment", "sleep", "-p", TEMPLATE_PATCH)


def test_pods_are_verified_in_batches_if_branch_is_on(kubectl: Kubectl, setting) -> None:  # type: ignore[no-untyped-def]
    setting("branch", enable=True, content="40%")
    release(kubectl)
    sizes = sorted(len(item["spec"]["podInfos"]) for item in kubectl.json("changepods")["items"])
    assert (sum(sizes), max(sizes)) == (5, 2), f"batches {sizes}; an incomplete batch waits {BATCH_WAIT} s"


def test_invalid_setting_is_reported_and_has_no_effect(kubectl: Kubectl, setting) -> None:  # type: ignore[no-untyped-def]
    system = Kubectl(kubectl.kubeconfig, SYSTEM)
    setting("branch", enable=True, content="many")

    def reported() -> bool:
        conditions = system.json("opsconfiginfo", "branch").get("status", {}).get("conditions", [])
        return any(c["type"] == "Accepted" and c["status"] == "False" and c["message"] for c in conditions)

    eventually(reported, "the condition Accepted=False")
    eventually(lambda: "many" in system("get", "events"), "an Event")
    release(kubectl)
    assert len(kubectl.json("changepods")["items"]) == 5


def test_failing_release_is_suspended_if_rollback_is_off(kubectl: Kubectl, setting) -> None:  # type: ignore[no-untyped-def]
    release(kubectl)
    setting("rollback", enable=False)
    bad = release_bad_image(kubectl)
    status = kubectl.json("changeworkload", f"sleep--x--{bad}")["status"]
    assert "the setting `rollback` is off" in json.dumps(status["conditions"])
    assert "ImagePull" in status["defenseCheckFailPods"][0]["message"]
    eventually(lambda: not resumed(kubectl), "the suspend label")
    denied = kubectl.run("patch", "deployment", "sleep", "-p", TEMPLATE_PATCH)
    assert "deployment sleep is suspended" in denied.stderr


def test_failing_release_is_not_suspended_if_rollback_and_blocking_are_off(kubectl: Kubectl, setting) -> None:  # type: ignore[no-untyped-def]
    release(kubectl)
    setting("rollback", enable=False)
    setting("blocking", enable=False)
    bad = release_bad_image(kubectl)
    assert resumed(kubectl)
    kubectl("patch", "deployment", "sleep", "-p", TEMPLATE_PATCH)
    assert kubectl.labels("deployment", "sleep")[VERSION] != bad


def release_bad_image(kubectl: Kubectl) -> str:
    """Release an image that does not start. Check that the release stays in state Suspend, and return its version."""
    kubectl("set", "image", "deployment", "sleep", "sleep=busybo")
    bad = kubectl.labels("deployment", "sleep")[VERSION]
    eventually(lambda: state(kubectl, bad) == "Suspend", "Suspend")
    time.sleep(START_TIMEOUT)
    assert kubectl.labels("deployment", "sleep")[VERSION] == bad
    assert state(kubectl, bad) == "Suspend"
    return bad


def test_rollback_can_be_requested(kubectl: Kubectl) -> None:
    good = release(kubectl)
    kubectl("patch", "deployment", "sleep", "-p", TEMPLATE_PATCH)
    newer = kubectl.labels("deployment", "sleep")[VERSION]
    succeed(kubectl, newer)
    suspend(kubectl, newer)
    kubectl(
        "patch", "changeworkload", f"sleep--x--{newer}", "--subresource=status", "--type=merge",
        "-p", '{"status":{"status":"Rollback"}}',
    )  # fmt: skip
    eventually(lambda: kubectl.labels("deployment", "sleep")[VERSION] == good, "the old version")
    succeed(kubectl, good)
    eventually(lambda: resumed(kubectl), "the suspension to end")
    assert state(kubectl, newer) == "Failed"


def test_rollback_is_announced_by_an_event_of_the_deployment(kubectl: Kubectl) -> None:
    release(kubectl)
    kubectl("set", "image", "deployment", "sleep", "sleep=busybo")
    rolled_back = ("events", "--field-selector", "reason=RolledBack,involvedObject.kind=Deployment")
    eventually(lambda: kubectl.json(*rolled_back)["items"], "the Event")
    assert "RolledBack" in kubectl("events", "--for", "deployment/sleep")
    assert "ImagePull" in kubectl("describe", "deployment", "sleep")
