"""Policies with steps that only observe."""

import json

from altershield.api.annotations import ROLLOUT
from altershield.api.resources import API_VERSION
from tests.e2e.sleep import VERSION, release, sleep
from tests.support.kubectl import Json, Kubectl
from tests.support.polling import eventually
from tests.support.processes import Run


def observe(kubectl: Kubectl) -> None:
    rollout = {"steps": [{"pods": 1, "soakSeconds": 600}, {"pods": "50%", "soakSeconds": 600}]}
    spec = {"mode": "observe", "rollout": rollout}
    kubectl.apply(
        json.dumps({"apiVersion": API_VERSION, "kind": "DefensePolicy", "metadata": {"name": "steps"}, "spec": spec})
    )
    kubectl.wait("defensepolicy/steps", "condition=Accepted")


def outcome(kubectl: Kubectl, version: str) -> Json:
    """The condition StepsObserved, when it is there."""
    name = f"changeworkload/sleep--x--{version}"
    kubectl.wait(name, "create")
    kubectl.wait(name, 'jsonpath={.status.conditions[?(@.type=="StepsObserved")].reason}')
    conditions = kubectl.json("changeworkload", f"sleep--x--{version}")["status"]["conditions"]
    return next(each for each in conditions if each["type"] == "StepsObserved")


def said(kubectl: Kubectl) -> list[str]:
    found = kubectl.json("events", "--field-selector", "reason=StepsObserved")["items"]
    return [each["message"] for each in found]


def test_release_that_fails_says_at_which_step_it_would_have_stopped(kubectl: Kubectl, altershield: Run) -> None:
    release(kubectl, sleep(replicas=4))
    before = kubectl.json("deployment", "sleep")["spec"]["strategy"]
    observe(kubectl)
    kubectl.apply(sleep(image="crash:1", replicas=4))
    held = kubectl.json("deployment", "sleep")
    assert held["spec"]["strategy"] == before
    assert ROLLOUT not in held["metadata"]["annotations"]
    version = held["metadata"]["labels"][VERSION]
    found = outcome(kubectl, version)
    assert (found["status"], found["reason"]) == ("False", "WouldStop")
    assert "would have stopped at step 1 of 3 (1 of 4 pods); 2 of 4 pods had the version" in found["message"]
    eventually(lambda: found["message"] in said(kubectl), "the Event")
    assert found["message"] in altershield("why", "deployment/sleep", code=3).stdout
    assert "only observes, so nothing is held" in altershield("status", "deployment/sleep", code=3).stdout


def test_release_that_succeeds_would_have_passed(kubectl: Kubectl, altershield: Run) -> None:
    release(kubectl, sleep(replicas=4))
    observe(kubectl)
    version = release(kubectl, sleep(image="other", replicas=4))
    found = outcome(kubectl, version)
    assert (found["status"], found["reason"]) == ("True", "WouldPass")
    assert found["message"].endswith("would have passed its 3 steps, first with 1, 2 of 4 pods")
    assert found["message"] in altershield("history", "deployment/sleep", "--version", version).stdout
