"""Releases that take their steps, that fail in one of them, and that go back."""

import json
import time

import pytest

from altershield.api.annotations import ROLLOUT
from kube_base.times import unix
from tests.e2e import ready_pods
from tests.e2e.held_releases import (
    RESTS,
    USER,
    apply,
    pods_by_version,
    policy,
    reach,
    request,
    rollout,
    state,
    without_template,
)
from tests.e2e.sleep import VERSION, release, sleep, suspend
from tests.support.kubectl import Json, Kubectl
from tests.support.polling import eventually


def test_release_goes_to_one_pod_then_thirty_percent_then_all(kubectl: Kubectl) -> None:
    own = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}
    base = release(kubectl, sleep(replicas=10, strategy=own))
    before = kubectl.json("deployment", "sleep")
    policy(kubectl, {"pods": [1, "30%"], "soakSeconds": 3})
    reached = []
    with ready_pods.watching(kubectl, 10) as ready:
        version = apply(kubectl, sleep(image="other", replicas=10, strategy=own))
        for step, pods in ((1, 1), (2, 3)):
            reach(kubectl, version, step, "Soaking")
            reached.append((pods_by_version(kubectl).get(version), state(kubectl, version)))
            assert pods_by_version(kubectl)[version] == pods
        kubectl.wait(f"changeworkload/sleep--x--{version}", "jsonpath={.status.status}=Success")
        assert ready.fewest >= 10
    assert reached == [(1, "Running"), (3, "Running")]
    eventually(lambda: pods_by_version(kubectl) == {version: 10}, "the new version everywhere")
    after = kubectl.json("deployment", "sleep", "--show-managed-fields")
    assert without_template(after) == without_template(before)
    assert ROLLOUT not in after["metadata"]["annotations"]
    ours = [each for each in after["metadata"]["managedFields"] if each["manager"] == "altershield"]
    assert "f:spec" not in json.dumps(ours)
    found = rollout(kubectl, version)
    assert (found["phase"], [each["pods"] for each in found["passedSteps"]]) == ("Done", [1, 3, 10])
    assert found["base"] == base


def test_failure_at_the_second_step_stays_at_its_pods(kubectl: Kubectl) -> None:
    base = release(kubectl, sleep(replicas=10))
    policy(kubectl, {"pods": [1, "30%"], "soakSeconds": 4})
    version = apply(kubectl, sleep(image="other", replicas=10))
    reach(kubectl, version, 2, "Soaking")
    suspend(kubectl, version, 2)
    reach(kubectl, version, 2, "Stopped")
    time.sleep(RESTS)
    assert pods_by_version(kubectl)[version] == 3
    assert state(kubectl, version) == "Suspend"
    request(kubectl, version, "Rollback")
    eventually(lambda: pods_by_version(kubectl) == {base: 10}, "the base everywhere")


def test_failure_is_taken_back_if_the_policy_says_so(kubectl: Kubectl) -> None:
    base = release(kubectl, sleep(replicas=10))
    before = kubectl.json("deployment", "sleep")
    policy(kubectl, {"pods": [1, "30%"], "soakSeconds": 600}, onFailure="rollback")
    version = apply(kubectl, sleep(image="other", replicas=10))
    reach(kubectl, version, 1, "Soaking")
    name = f"sleep--x--{version}--x--1"
    pod: Json = kubectl.json("changepod", name)["spec"]["podInfos"][0]
    patch = {"status": {"podResults": [{**pod, "verdict": "unpass", "message": "find error"}], "message": "PostFinish"}}
    kubectl("patch", "changepod", "--subresource=status", name, "-p", json.dumps(patch), "--type", "merge")
    eventually(lambda: pods_by_version(kubectl) == {base: 10}, "the base everywhere")
    after = kubectl.json("deployment", "sleep")
    assert without_template(after) == without_template(before)
    assert ROLLOUT not in after["metadata"]["annotations"]
    eventually(lambda: rollout(kubectl, version).get("phase") == "Aborted", "the end of its steps")


def test_pod_that_crashes_is_taken_back(kubectl: Kubectl) -> None:
    base = release(kubectl, sleep(replicas=10))
    policy(kubectl, {"pods": [1, "30%"], "soakSeconds": 600})
    version = apply(kubectl, sleep(image="crash:1", replicas=10))
    eventually(lambda: kubectl.labels("deployment", "sleep")[VERSION] == base, "the rollback")
    eventually(lambda: pods_by_version(kubectl) == {base: 10}, "the base everywhere")
    eventually(lambda: state(kubectl, version) == "Failed", "the end of the rollback")  # after its last pod


def test_third_version_keeps_the_base_and_replaces_the_pods_of_the_second_first(kubectl: Kubectl) -> None:
    base = release(kubectl, sleep(replicas=10))
    before = kubectl.json("deployment", "sleep")
    policy(kubectl, {"pods": [1, "30%"], "soakSeconds": 4})
    second = apply(kubectl, sleep(image="other", replicas=10))
    reach(kubectl, second, 2, "Soaking")
    third = apply(kubectl, sleep(image="third", replicas=10))
    reach(kubectl, third, 2, "Soaking")
    eventually(lambda: pods_by_version(kubectl) == {third: 3, base: 10}, "no pod of the second version")
    assert rollout(kubectl, third)["base"] == base
    assert rollout(kubectl, second)["phase"] == "Aborted"
    kubectl.wait(f"changeworkload/sleep--x--{third}", "jsonpath={.status.status}=Success")
    assert without_template(kubectl.json("deployment", "sleep")) == without_template(before)


def test_server_side_apply_every_two_seconds_has_no_conflict(kubectl: Kubectl) -> None:
    def applied(image: str) -> None:
        manifest = sleep(image=image, replicas=4, strategy={"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}})
        kubectl("apply", "--server-side", "-f", "-", stdin=manifest)

    applied("busybox")
    version = kubectl.labels("deployment", "sleep")[VERSION]
    kubectl.wait(f"changeworkload/sleep--x--{version}", "create")
    kubectl.wait(f"changeworkload/sleep--x--{version}", "jsonpath={.status.status}=Success")
    before = kubectl.json("deployment", "sleep")
    policy(kubectl, {"pods": [1, "50%"], "soakSeconds": 3})
    applied("other")
    version = kubectl.labels("deployment", "sleep")[VERSION]
    kubectl.wait(f"changeworkload/sleep--x--{version}", "create")

    def is_over() -> bool:
        applied("other")
        time.sleep(2)
        return state(kubectl, version) == "Success"

    eventually(is_over, "the release")
    applied("other")
    assert [each["pods"] for each in rollout(kubectl, version)["passedSteps"]] == [1, 2, 4]
    assert without_template(kubectl.json("deployment", "sleep")) == without_template(before)


def test_scaling_within_a_step_keeps_old_pods(kubectl: Kubectl) -> None:
    release(kubectl, sleep(replicas=10))
    policy(kubectl, {"pods": [1, "30%"], "soakSeconds": 4})
    version = apply(kubectl, sleep(image="other", replicas=10))
    reach(kubectl, version, 1, "Soaking")
    for replicas in (20, 5):
        kubectl("scale", "deployment/sleep", f"--replicas={replicas}")
        eventually(lambda replicas=replicas: sum(pods_by_version(kubectl).values()) >= replicas, "the pods")  # type: ignore[misc]
        assert pods_by_version(kubectl)[version] < replicas
    kubectl.wait(f"changeworkload/sleep--x--{version}", "jsonpath={.status.status}=Success")
    eventually(lambda: pods_by_version(kubectl) == {version: 5}, "the new version everywhere")


def test_scaled_to_zero_and_back_only_the_new_version_returns_and_is_verified(kubectl: Kubectl) -> None:
    release(kubectl, sleep(replicas=4))
    before = kubectl.json("deployment", "sleep")
    policy(kubectl, {"pods": [1], "soakSeconds": 600})
    version = apply(kubectl, sleep(image="other", replicas=4))
    reach(kubectl, version, 1, "Soaking")
    kubectl("scale", "deployment/sleep", "--replicas=0")
    eventually(lambda: not pods_by_version(kubectl), "no pods")
    kubectl("scale", "deployment/sleep", "--replicas=4")
    kubectl.wait(f"changeworkload/sleep--x--{version}", "jsonpath={.status.status}=Success")
    assert without_template(kubectl.json("deployment", "sleep")) == without_template(before)
    events = kubectl.json("events")["items"]
    assert "StepsEscaped" in {each["reason"] for each in events}


def test_own_pause_stops_the_clocks(kubectl: Kubectl) -> None:
    release(kubectl, sleep(replicas=4))
    policy(kubectl, {"pods": [1, "50%"], "soakSeconds": 3})
    version = apply(kubectl, sleep(image="other", replicas=4))
    reach(kubectl, version, 1, "Soaking")
    kubectl("rollout", "pause", "deployment/sleep")
    time.sleep(RESTS)
    assert pods_by_version(kubectl)[version] == 1
    eventually(lambda: rollout(kubectl, version).get("waitingFor") == ["paused"], "the wait")
    kubectl("rollout", "resume", "deployment/sleep")
    kubectl.wait(f"changeworkload/sleep--x--{version}", "jsonpath={.status.status}=Success")


def test_approval_waits_for_a_person(kubectl: Kubectl) -> None:
    release(kubectl, sleep(replicas=4))
    policy(kubectl, {"steps": [{"pods": 1, "soakSeconds": 0, "approval": True}]})
    version = apply(kubectl, sleep(image="other", replicas=4))
    reach(kubectl, version, 1, "WaitingForApproval")
    time.sleep(RESTS)
    assert pods_by_version(kubectl)[version] == 1
    request(kubectl, version, "Promote")
    kubectl.wait(f"changeworkload/sleep--x--{version}", "jsonpath={.status.status}=Success")
    assert rollout(kubectl, version)["passedSteps"][0]["promotedBy"] == USER


@pytest.mark.parametrize("image", ["other", "exits-once-after-4s"])
def test_soak_begins_anew_if_its_only_pod_restarted_or_was_replaced(kubectl: Kubectl, image: str) -> None:
    release(kubectl, sleep(replicas=4))
    policy(kubectl, {"steps": [{"pods": 1, "soakSeconds": 6, "approval": True}]})
    version = apply(kubectl, sleep(image=image, replicas=4))
    reach(kubectl, version, 1, "Soaking")
    if image == "other":
        began = rollout(kubectl, version)["phaseTimeUnix"]
        eventually(lambda: time.time() > began + 2, "a second after the begin")
        kubectl("delete", "pod", "-l", f"{VERSION}={version}", "--wait=false")
    reach(kubectl, version, 1, "WaitingForApproval")
    (pod,) = kubectl.json("pods", "-l", f"{VERSION}={version}")["items"]
    (ready,) = (each for each in pod["status"]["conditions"] if each["type"] == "Ready")
    assert rollout(kubectl, version)["soakEndTimeUnix"] - unix(ready["lastTransitionTime"]) >= 6
    said = [each["message"] for each in kubectl.json("events")["items"] if each["reason"] == "StepHeld"]
    assert any("no pod stayed ready for the whole soak" in each for each in said)


@pytest.mark.parametrize("replicas", [1, 2])
def test_few_replicas_have_few_steps(kubectl: Kubectl, replicas: int) -> None:
    release(kubectl, sleep(replicas=replicas))
    policy(kubectl, {"pods": [1, "5%", "10%"], "soakSeconds": 2})
    version = apply(kubectl, sleep(image="other", replicas=replicas))
    kubectl.wait(f"changeworkload/sleep--x--{version}", "create")
    kubectl.wait(f"changeworkload/sleep--x--{version}", "jsonpath={.status.status}=Success")
    assert [each["pods"] for each in rollout(kubectl, version)["passedSteps"]] == [1, replicas]


def test_step_whose_pod_finds_no_node_stops_at_its_deadline_and_says_why(kubectl: Kubectl) -> None:
    base = release(kubectl, sleep(replicas=2))
    before = kubectl.json("deployment", "sleep")
    policy(kubectl, {"pods": [1], "soakSeconds": 1, "stepDeadlineSeconds": 60})
    manifest = json.loads(sleep(image="other", replicas=2))
    manifest["spec"]["template"]["spec"]["nodeSelector"] = {"zone": "nowhere"}
    version = apply(kubectl, json.dumps(manifest))
    reach(kubectl, version, 1, "Stopped")
    found = kubectl.json("changeworkload", f"sleep--x--{version}")["status"]
    (verified,) = (each for each in found["conditions"] if each["type"] == "Verified")
    assert verified["reason"] == "StepDeadlineExceeded"
    assert "is not verified within 60 s: 0 of 1 pods passed, 0 are up; 1 of 1 pods are not up" in verified["message"]
    assert "node affinity/selector" in verified["message"]
    request(kubectl, version, "Rollback")
    eventually(lambda: pods_by_version(kubectl) == {base: 2}, "the base everywhere")
    after = kubectl.json("deployment", "sleep")
    assert without_template(after) == without_template(before)
