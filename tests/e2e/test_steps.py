"""Releases in steps: what the gatekeeper stores when a release begins, and what others may change of it."""

import json
import time

from altershield.api.annotations import ROLLOUT
from altershield.workloads.held import NEVER_AVAILABLE, NO_DEADLINE
from tests.e2e.held_releases import pods_by_version, policy, without_template
from tests.e2e.sleep import VERSION, release, sleep
from tests.support.kubectl import Kubectl
from tests.support.polling import eventually

_RESTS = 3.0  # seconds in which a rollout that does not rest would go on


def test_release_rests_at_its_first_step_and_the_base_restores_the_fields(kubectl: Kubectl) -> None:
    base = release(kubectl, sleep(replicas=10))
    before = kubectl.json("deployment", "sleep")
    policy(kubectl, {"pods": [1, "30%"], "soakSeconds": 600})
    kubectl.apply(sleep(image="other", replicas=10))
    found = kubectl.json("deployment", "sleep")
    version = found["metadata"]["labels"][VERSION]
    known = json.loads(found["metadata"]["annotations"][ROLLOUT])
    assert (known["version"], known["base"], known["causes"][0]["pods"]) == (version, base, 1)
    assert known["policy"] == f"{kubectl.namespace}/steps@1"
    assert known["fields"]["/spec/strategy/rollingUpdate/maxSurge"] == "25%"
    spec = found["spec"]
    assert (spec["minReadySeconds"], spec["progressDeadlineSeconds"]) == (NEVER_AVAILABLE, NO_DEADLINE)
    assert spec["strategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}
    # what a mutating webhook writes has no field manager
    managed = kubectl.json("deployment", "sleep", "--show-managed-fields")["metadata"]["managedFields"]
    assert ROLLOUT not in json.dumps(managed)
    eventually(lambda: pods_by_version(kubectl) == {base: 10, version: 1}, "one new pod")
    time.sleep(_RESTS)
    assert pods_by_version(kubectl) == {base: 10, version: 1}

    kubectl.apply(sleep(image="other", replicas=10))
    assert kubectl.json("deployment", "sleep")["spec"] == spec, "applying it again changes nothing"
    kubectl("scale", "deployment/sleep", "--replicas=11")
    kubectl.apply(sleep(replicas=10))
    after = kubectl.json("deployment", "sleep")
    assert without_template(after) == without_template(before)
    assert ROLLOUT not in after["metadata"]["annotations"]
    eventually(lambda: pods_by_version(kubectl) == {base: 10}, "the base everywhere")


def test_annotation_and_fields_of_a_held_release_are_restored(kubectl: Kubectl) -> None:
    release(kubectl, sleep(replicas=4))
    policy(kubectl, {"pods": [1], "soakSeconds": 600})
    kubectl.apply(sleep(image="other", replicas=4))
    held = kubectl.json("deployment", "sleep")
    done = kubectl.run("annotate", "deployment/sleep", f"{ROLLOUT}-")
    assert "only AlterShield writes the annotation" in done.stderr
    surge = {"spec": {"strategy": {"rollingUpdate": {"maxSurge": 3}}}}
    done = kubectl.run("patch", "deployment/sleep", "-p", json.dumps(surge))
    assert "maxSurge takes effect when the release is over" in done.stderr
    found = kubectl.json("deployment", "sleep")
    assert found["spec"] == held["spec"]
    known = json.loads(found["metadata"]["annotations"][ROLLOUT])
    assert known["fields"]["/spec/strategy/rollingUpdate/maxSurge"] == 3
    known = held["spec"]["strategy"]["rollingUpdate"]["maxSurge"]
    kubectl.apply(sleep(image="other", replicas=4, strategy={"rollingUpdate": {"maxSurge": known}}))
    found = kubectl.json("deployment", "sleep")
    assert found["spec"] == held["spec"]
    own = json.loads(found["metadata"]["annotations"][ROLLOUT])["fields"]["/spec/strategy/rollingUpdate/maxSurge"]
    assert own == known, "the value that it has at the moment"
    kubectl("patch", "deployment/sleep", "-p", json.dumps(surge))
    done = kubectl.run("rollout", "undo", "deployment/sleep")
    assert done.returncode == 0, done.stderr
    after = kubectl.json("deployment", "sleep")
    assert ROLLOUT not in after["metadata"]["annotations"]
    assert after["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": 3, "maxUnavailable": "25%"}
