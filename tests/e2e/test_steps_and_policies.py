"""Which policy and which workload a release in steps belongs to."""

import json

from altershield.api.annotations import ROLLOUT
from altershield.api.resources import API_VERSION
from tests.e2e.held_releases import apply, pods_by_version, policy, reach, request, without_template
from tests.e2e.sleep import VERSION, release, sleep, succeed
from tests.support.kubectl import Json, Kubectl
from tests.support.polling import eventually


def hold(kubectl: Kubectl, name: str = "sleep") -> Json:
    found: Json = json.loads(kubectl.json("deployment", name)["metadata"]["annotations"][ROLLOUT])
    return found


def test_policy_with_the_highest_priority_applies_and_the_release_keeps_its_steps(kubectl: Kubectl) -> None:
    base = release(kubectl, sleep(replicas=4))
    policy(kubectl, {"pods": [2], "soakSeconds": 600}, priority=5, selector={"matchLabels": {"app": "sleep"}})
    other = {"rollout": {"pods": [1], "soakSeconds": 600}, "priority": 1}
    made = {"apiVersion": API_VERSION, "kind": "DefensePolicy", "metadata": {"name": "another"}, "spec": other}
    kubectl.apply(json.dumps(made))
    kubectl("wait", "defensepolicy/another", "--for=condition=Accepted")
    version = apply(kubectl, sleep(image="other", replicas=4))
    assert hold(kubectl)["policy"] == f"{kubectl.namespace}/steps@1"
    reach(kubectl, version, 1, "Soaking")
    assert pods_by_version(kubectl)[version] == 2
    # edited, and the record of the release lost: the annotation has the steps
    edit: Json = {"spec": {"rollout": {"pods": [4], "soakSeconds": 0}}}
    kubectl("patch", "defensepolicy", "steps", "--type=merge", "-p", json.dumps(edit))
    name = f"sleep--x--{version}"
    uid = kubectl.json("changeworkload", name)["metadata"]["uid"]
    kubectl("delete", "changeworkload", name)
    eventually(
        lambda: (
            kubectl.exists("changeworkload", name) and kubectl.json("changeworkload", name)["metadata"]["uid"] != uid
        ),
        "a new record",
    )
    reach(kubectl, version, 1, "Soaking")
    found = kubectl.json("changeworkload", name)
    assert found["spec"]["policy"]["rollout"]["pods"] == [2]
    assert (found["status"]["rollout"]["base"], pods_by_version(kubectl)[version]) == (base, 2)
    request(kubectl, version, "Promote")
    succeed(kubectl, version)


def test_workloads_that_share_the_labels_of_their_pods_have_steps_of_their_own(kubectl: Kubectl) -> None:
    shared = {"matchLabels": {"app": "sleep"}}

    def twin(image: str) -> str:
        found = json.loads(sleep("twin", image=image, replicas=2, selector=shared))
        found["spec"]["template"]["metadata"]["labels"]["app"] = "sleep"
        return json.dumps(found)

    base = release(kubectl, sleep(replicas=4))
    kubectl.apply(twin("twin"))
    twin_base = kubectl.labels("deployment", "twin")[VERSION]
    kubectl.wait(f"changeworkload/twin--x--{twin_base}", "create")
    kubectl.wait(f"changeworkload/twin--x--{twin_base}", "jsonpath={.status.status}=Success")
    before = kubectl.json("deployment", "sleep")
    policy(kubectl, {"steps": [{"pods": 1, "soakSeconds": 0, "approval": True}]})
    version = apply(kubectl, sleep(image="other", replicas=4))
    kubectl.apply(twin("twin:2"))
    twin_version = kubectl.labels("deployment", "twin")[VERSION]
    reach(kubectl, version, 1, "WaitingForApproval")
    name = f"changeworkload/twin--x--{twin_version}"
    kubectl.wait(name, "create")
    kubectl.wait(name, "jsonpath={.status.rollout.phase}=WaitingForApproval")
    assert pods_by_version(kubectl) == {base: 4, version: 1, twin_base: 2, twin_version: 1}
    request(kubectl, version, "Promote")
    succeed(kubectl, version)
    eventually(
        lambda: pods_by_version(kubectl) == {version: 4, twin_base: 2, twin_version: 1}, "the end of one of them"
    )
    assert without_template(kubectl.json("deployment", "sleep")) == without_template(before)


def test_workload_that_is_renamed_is_a_new_one(kubectl: Kubectl) -> None:
    release(kubectl, sleep(replicas=2))
    policy(kubectl, {"pods": [1], "soakSeconds": 600})
    version = apply(kubectl, sleep(image="other", replicas=2))
    reach(kubectl, version, 1, "Soaking")
    renamed = json.loads(sleep(image="other", replicas=2))
    renamed["metadata"]["name"] = "renamed"
    kubectl.apply(json.dumps(renamed))
    kubectl("delete", "deployment", "sleep")
    assert kubectl.labels("deployment", "renamed")[VERSION] == version
    name = f"changeworkload/renamed--x--{version}"
    kubectl.wait(name, "create")
    kubectl.wait(name, "jsonpath={.status.status}=Success")
    found = kubectl.json("changeworkload", f"renamed--x--{version}")["status"]
    assert not found.get("rollout")
    (progressing,) = (each for each in found["conditions"] if each["type"] == "Progressing")
    assert progressing["reason"] == "StepsNotPossible"
    assert progressing["message"] == f"version {version} is released without steps: it is created"
    eventually(lambda: not kubectl.exists("changeworkload", f"sleep--x--{version}"), "the garbage collector")
    assert pods_by_version(kubectl) == {version: 2}
