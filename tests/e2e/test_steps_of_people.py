"""What people do with kubectl to a Deployment that is held in steps: what they are told, and how it ends."""

import json
import time
from typing import Any

import pytest

from altershield.api.annotations import ROLLOUT, START_TIMEOUT
from tests.e2e.gates import freeze
from tests.e2e.held_releases import (
    RESTS,
    apply,
    pods_by_version,
    policy,
    reach,
    request,
    rollout,
    without_template,
)
from tests.e2e.sleep import VERSION, release, sleep, succeed, suspend
from tests.support.kubectl import Json, Kubectl
from tests.support.polling import eventually

SLOW: Json = {"metadata": {"name": "sleep", "annotations": {START_TIMEOUT: "600"}}}


def held(kubectl: Kubectl, phase: str, **own: Any) -> tuple[str, Json, str]:
    """A release of four pods in this phase of its first step. Returns the base, the workload of before, and the
    version."""
    base = release(kubectl, sleep(replicas=4, **own))
    before = kubectl.json("deployment", "sleep")
    policy(
        kubectl, {"steps": [{"pods": 1, "soakSeconds": 0 if phase == "WaitingForApproval" else 600, "approval": True}]}
    )
    image = "never-ready" if phase == "Verifying" else "other"
    version = apply(kubectl, sleep(image=image, replicas=4, **own))
    reach(kubectl, version, 1, "Soaking" if phase == "Stopped" else phase)
    if phase == "Stopped":
        suspend(kubectl, version)
        reach(kubectl, version, 1, phase)
    return base, before, version


def run(kubectl: Kubectl, *command: str) -> tuple[bool, str]:
    """Whether `kubectl rollout` succeeds, and what it prints."""
    done = kubectl.run("rollout", *command, "deployment/sleep")
    return done.returncode == 0, (done.stdout + done.stderr).strip()


def assert_ended(kubectl: Kubectl, before: Json, version: str) -> None:
    """All pods have this version, and the fields are those of before."""
    eventually(lambda: pods_by_version(kubectl) == {version: 4}, "the version everywhere")
    eventually(
        lambda: ROLLOUT not in kubectl.json("deployment", "sleep")["metadata"]["annotations"], "the end of the hold"
    )
    assert without_template(kubectl.json("deployment", "sleep")) == without_template(before)


@pytest.mark.parametrize("phase", ["Verifying", "Soaking", "WaitingForApproval", "Stopped"])
def test_rollout_commands(kubectl: Kubectl, phase: str) -> None:
    base, before, version = held(kubectl, phase, **SLOW)
    pods = {base: 4, version: 1}
    assert run(kubectl, "pause") == (True, "deployment.apps/sleep paused")
    assert run(kubectl, "pause") == (False, 'error: deployments.apps "sleep" is already paused')
    if phase != "Stopped":
        eventually(lambda: rollout(kubectl, version).get("waitingFor") == ["paused"], "the wait")
    assert run(kubectl, "resume") == (True, "deployment.apps/sleep resumed")
    assert run(kubectl, "resume") == (False, 'error: deployments.apps "sleep" is not paused')
    eventually(lambda: "waitingFor" not in rollout(kubectl, version), "the end of the wait")
    assert (rollout(kubectl, version)["phase"], pods_by_version(kubectl)) == (phase, pods)
    if phase == "Stopped":
        for command in (("restart",), ("undo",)):
            refused, text = run(kubectl, *command)
            assert (refused, "denied the request: deployment sleep is suspended" in text) == (False, True)
            way_back = f"altershield rollback -n {kubectl.namespace} deployment/sleep"
            assert f"Warning: to go back to the version before, run: {way_back}" in text
        request(kubectl, version, "Rollback")
    else:
        assert run(kubectl, "restart") == (True, "deployment.apps/sleep restarted")
        third = kubectl.labels("deployment", "sleep")[VERSION]
        eventually(lambda: pods_by_version(kubectl) == {base: 4, third: 1}, "the third version in place of the second")
        eventually(lambda: rollout(kubectl, version)["phase"] == "Aborted", "the end of the steps of the second")
        eventually(lambda: rollout(kubectl, third).get("base") == base, "the base")
        assert run(kubectl, "undo", "--to-revision=1") == (True, "deployment.apps/sleep rolled back")
    assert_ended(kubectl, before, base)


def test_rollout_commands_before_the_first_pod(kubectl: Kubectl) -> None:
    base = release(kubectl, sleep(replicas=4))
    before = kubectl.json("deployment", "sleep")
    kubectl.apply(freeze(whenClosed="Hold"))
    other = sleep(image="other", replicas=4)
    eventually(
        lambda: "it begins by itself" in kubectl.run("apply", "--dry-run=server", "-f", "-", stdin=other).stderr,
        "the gatekeepers to know the freeze",
    )
    version = apply(kubectl, other)
    reach(kubectl, version, 1, "Held")
    for command, text in {
        "pause": 'error: deployments.apps "sleep" is already paused',
        "restart": 'error: deployments.apps "sleep" can\'t restart paused deployment (run rollout resume first)',
        "undo": 'error: no rollout history found for deployment "sleep"',
    }.items():
        refused, said = run(kubectl, command)
        assert (refused, said) == (False, text)
    resumed, said = run(kubectl, "resume")
    assert resumed
    assert f"waits before its first pod: altershield why -n {kubectl.namespace} deployment/sleep says for what" in said
    assert f"altershield rollback -n {kubectl.namespace} deployment/sleep" in said
    time.sleep(RESTS)
    assert (rollout(kubectl, version)["phase"], pods_by_version(kubectl)) == ("Held", {base: 4})
    request(kubectl, version, "Rollback")
    assert_ended(kubectl, before, base)


def test_strategy_that_becomes_recreate_deletes_no_old_pod_while_held(kubectl: Kubectl) -> None:
    base, before, version = held(kubectl, "WaitingForApproval")
    strategy = {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}
    done = kubectl.run("patch", "deployment", "sleep", "-p", json.dumps(strategy))
    assert "spec.strategy.type" in done.stderr
    assert "takes effect when the release is over" in done.stderr
    time.sleep(RESTS)
    assert pods_by_version(kubectl) == {base: 4, version: 1}
    request(kubectl, version, "Promote")
    succeed(kubectl, version)
    after = without_template(kubectl.json("deployment", "sleep"))
    assert after == {**without_template(before), "strategy": {"type": "Recreate"}}
    fourth = apply_image(kubectl, "fourth")
    succeed(kubectl, fourth)
    eventually(lambda: "its strategy is Recreate" in json.dumps(kubectl.json("events")), "the Event")


def apply_image(kubectl: Kubectl, image: str) -> str:
    kubectl("set", "image", "deployment/sleep", f"sleep={image}")
    return kubectl.labels("deployment", "sleep")[VERSION]


def manifest(kubectl: Kubectl, **metadata: str) -> Json:
    """What `kubectl get -o json` prints of the held Deployment, with other metadata."""
    found = json.loads(kubectl("get", "deployment", "sleep", "-o", "json"))
    return {**found, "metadata": {**found["metadata"], **metadata}}


def test_deployment_that_is_made_anew_or_copied_while_held_has_the_own_fields(kubectl: Kubectl) -> None:
    _, before, version = held(kubectl, "Soaking")
    own = without_template(before)
    # a copy of another name
    labels = {"matchLabels": {"app": "copy"}}
    copy = manifest(kubectl, name="copy")
    copy["spec"] = {**copy["spec"], "selector": labels, "replicas": 1}
    copy["spec"]["template"]["metadata"]["labels"]["app"] = "copy"
    done = kubectl.run("create", "-f", "-", stdin=json.dumps(copy))
    assert f"only AlterShield writes the annotation {ROLLOUT}: it was removed" in done.stderr
    found = kubectl.json("deployment", "copy")
    assert without_template(found) == {**own, "selector": labels, "replicas": 1}
    assert ROLLOUT not in found["metadata"]["annotations"]
    # the old pods stay, and the new Deployment takes them over
    kubectl("delete", "deployment", "sleep", "--cascade=orphan")
    kubectl.apply(sleep(image="other", replicas=4))
    succeed(kubectl, version)
    assert_ended(kubectl, before, version)
    # deleted and made anew from what is held
    third = apply(kubectl, sleep(image="third", replicas=4))
    reach(kubectl, third, 1, "Soaking")
    kubectl("replace", "--force", "-f", "-", stdin=json.dumps(manifest(kubectl)))
    succeed(kubectl, third)
    assert_ended(kubectl, before, third)
