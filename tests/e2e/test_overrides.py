"""ReleaseOverrides: one release passes closed gates, by whom and how often, on a cluster with a gatekeeper."""

import json

from altershield.api.names import SYSTEM_NAMESPACE
from command.gates.command import EXIT_CLOSED
from tests.e2e.gates import REASON, USER, freeze, known, override, uses
from tests.e2e.sleep import VERSION, release, sleep
from tests.support.kubectl import Json, Kubectl
from tests.support.polling import eventually
from tests.support.processes import Run


def test_an_override_lets_one_version_pass_and_says_so(kubectl: Kubectl, altershield: Run) -> None:
    release(kubectl, sleep(replicas=1))
    kubectl.apply(freeze())
    second, third = sleep(replicas=1, image="second"), sleep(replicas=1, image="third")
    known(kubectl, second)
    kubectl.apply(json.dumps(override(kubectl.namespace)))
    known(kubectl, second, closed=False)
    assert uses(kubectl) == [], "a dry run uses nothing"
    applied = kubectl.run("apply", "-f", "-", stdin=second)
    assert f"ReleaseOverride {kubectl.namespace}/fix lets this release pass ReleaseFreeze" in applied.stderr
    version = kubectl.labels("deployment", "sleep")[VERSION]
    (use,) = uses(kubectl)
    assert (use["version"], use["by"]) == (version, USER)
    assert use["gates"] == [f"ReleaseFreeze {kubectl.namespace}/incident"]
    known(kubectl, third)
    assert "may not be released now" in kubectl.run("apply", "-f", "-", stdin=third).stderr
    kubectl.apply(second)
    kubectl.wait("releaseoverride/fix", "condition=Usable=false")

    def told() -> bool:
        found = kubectl.json("events")["items"]
        return any(each["reason"] == "OverrideUsed" and version in each["message"] for each in found)

    eventually(told, "the Event")
    said = f"Override by {USER} ({REASON}): Done: ReleaseOverride {kubectl.namespace}/fix let it pass ReleaseFreeze"
    altershield("wait", "deploy/sleep")
    kubectl("delete", "releaseoverride", "fix")
    assert said in altershield("why", "deploy/sleep").stdout
    assert said in altershield("history", "deploy/sleep", "--version", version).stdout
    altershield("override", "deploy/sleep", "--reason", REASON, "--gates", "Freeze", "--ttl", "10m")
    known(kubectl, third, closed=False)
    kubectl.apply(third)
    altershield("gates", "deploy/sleep", code=EXIT_CLOSED)


def test_who_may_create_an_override_and_what_it_may_not_pass(kubectl: Kubectl) -> None:
    def refused(obj: Json, own: Kubectl = kubectl) -> str:
        return own.run("create", "-f", "-", stdin=json.dumps(obj)).stderr

    assert "spec.requestedBy has to be your user name" in refused(override(kubectl.namespace, requestedBy="eve"))
    assert "spec.reason" in refused(override(kubectl.namespace, reason="too short"))
    foreign = {"kind": "Deployment", "name": "sleep", "namespace": "other"}
    assert "spec.target.namespace has to be" in refused(override(kubectl.namespace, target=foreign))
    kubectl.apply(json.dumps(override(kubectl.namespace)))
    changed = kubectl.run("patch", "releaseoverride", "fix", "--type=merge", "-p", '{"spec":{"uses":9}}').stderr
    assert "a ReleaseOverride cannot be changed" in changed
    status = kubectl.run(
        "patch",
        "releaseoverride",
        "fix",
        "--subresource=status",
        "--type=merge",
        "-p",
        '{"status":{"used":0,"uses":[]}}',
    ).stderr
    assert status == "" or "only AlterShield writes the status" in status
    forged = '{"status":{"used":1,"uses":[{"version":"forged"}]}}'
    answer = kubectl.run("patch", "releaseoverride", "fix", "--subresource=status", "--type=merge", "-p", forged).stderr
    assert "only AlterShield writes the status of ReleaseOverrides" in answer

    kubectl(
        "create", "clusterrole", "creator", "--verb=create,get", "--resource=releaseoverrides.app.ops.cloud.alipay.com"
    )
    try:
        system = Kubectl(kubectl.kubeconfig, SYSTEM_NAMESPACE)
        system("create", "rolebinding", "eve", "--clusterrole=creator", "--user=eve")
        eve = Kubectl(kubectl.kubeconfig, SYSTEM_NAMESPACE, "--as=eve")
        own = override(SYSTEM_NAMESPACE, "eve", requestedBy="eve")
        eventually(lambda: "may not override gates of this namespace" in refused(own, eve), "the role to be in effect")
    finally:
        system("delete", "rolebinding", "eve", "--ignore-not-found")
        kubectl("delete", "clusterrole", "creator")
