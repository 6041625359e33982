"""Releases in steps obey gates: before the first pod, and between two steps, on a cluster with a gatekeeper."""

import json

from tests.e2e.gates import freeze, override, uses
from tests.e2e.held_releases import apply, pods_by_version, policy, reach, rollout, without_template
from tests.e2e.sleep import VERSION, release, sleep, succeed
from tests.support.kubectl import Kubectl
from tests.support.polling import eventually


def test_a_release_waits_without_a_pod_until_the_gate_opens(kubectl: Kubectl) -> None:
    release(kubectl, sleep(replicas=2))
    kubectl.apply(freeze(whenClosed="Hold"))
    second = sleep(replicas=2, image="second")
    eventually(
        lambda: "it begins by itself" in kubectl.run("apply", "--dry-run=server", "-f", "-", stdin=second).stderr,
        "the gate",
    )
    before = without_template(kubectl.json("deployment", "sleep"))
    kubectl.apply(second)
    version = kubectl.labels("deployment", "sleep")[VERSION]
    reach(kubectl, version, 1, "Held")
    eventually(lambda: rollout(kubectl, version).get("waitingFor"), "what it waits for")  # stored after the phase
    found = rollout(kubectl, version)
    assert (found["waitingFor"], found["gates"]) == (["freeze"], [f"ReleaseFreeze {kubectl.namespace}/incident"])
    assert version not in pods_by_version(kubectl)
    kubectl("delete", "releasefreeze", "incident")
    succeed(kubectl, version)
    assert without_template(kubectl.json("deployment", "sleep")) == before
    assert pods_by_version(kubectl) == {version: 2}


def test_a_gate_that_closes_between_two_steps_holds_the_next_one(kubectl: Kubectl) -> None:
    release(kubectl, sleep(replicas=4))
    policy(kubectl, {"steps": [{"pods": 1, "soakSeconds": 2}, {"pods": 2, "soakSeconds": 0}]})
    version = apply(kubectl, sleep(replicas=4, image="second"))
    reach(kubectl, version, 1, "Soaking")
    kubectl.apply(freeze())
    reach(kubectl, version, 2, "Held")
    eventually(lambda: rollout(kubectl, version).get("waitingFor") == ["freeze"], "what it waits for")
    assert pods_by_version(kubectl)[version] == 1
    kubectl.apply(json.dumps(override(kubectl.namespace)))
    succeed(kubectl, version)
    (use,) = uses(kubectl)
    assert use["version"] == version


def test_a_gate_that_lets_running_releases_finish_holds_none(kubectl: Kubectl) -> None:
    release(kubectl, sleep(replicas=4))
    policy(kubectl, {"steps": [{"pods": 1, "soakSeconds": 2}]})
    version = apply(kubectl, sleep(replicas=4, image="second"))
    reach(kubectl, version, 1, "Soaking")
    kubectl.apply(freeze(running="Finish"))
    succeed(kubectl, version)
