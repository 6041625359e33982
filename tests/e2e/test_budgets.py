"""PodUnavailableBudgets with gatekeeper, reconciler and controllers: what is refused, and what comes back."""

import json
from pathlib import Path
from typing import Any

from altershield.api.resources import API_VERSION
from tests.e2e import kinds
from tests.e2e.conftest import govern
from tests.e2e.ready_pods import is_ready, watching
from tests.support import workloads
from tests.support.kubectl import Kubectl
from tests.support.polling import eventually

BREAK_GLASS = ("--as=ann", "--as-group=altershield:break-glass", "--as-group=system:masters")


def budget(kubectl: Kubectl, name: str = "web", **spec: Any) -> None:
    spec.setdefault("selector", {"matchLabels": {"app": "web"}})
    obj = {"apiVersion": API_VERSION, "kind": "PodUnavailableBudget", "metadata": {"name": name}, "spec": spec}
    kubectl.apply(json.dumps(obj))


def status(kubectl: Kubectl) -> dict[str, Any]:
    found: dict[str, Any] = kubectl.json("pub", "web").get("status", {})
    return found


def pods(kubectl: Kubectl) -> list[str]:
    """The names of the ready pods."""
    return [each["metadata"]["name"] for each in kubectl.json("pods")["items"] if is_ready(each)]


def application(kubectl: Kubectl, replicas: int) -> None:
    kubectl.apply(json.dumps(workloads.manifest("Deployment", "web", "busybox", replicas=replicas)))
    eventually(lambda: len(pods(kubectl)) == replicas, "the pods to be ready")


def settled(kubectl: Kubectl, allowed: int) -> None:
    def is_settled() -> bool:
        found = status(kubectl)
        records = found.get("disruptedPods", {}) | found.get("unavailablePods", {})
        return found.get("unavailableAllowed", 0) == allowed and found.get("observedGeneration", 0) > 0 and not records

    eventually(is_settled, "the slots to come back")


def test_frozen_budget_refuses_people_and_wedges_no_controller(kubectl: Kubectl, installed: Path) -> None:
    application(kubectl, 3)
    budget(kubectl, maxUnavailable=0, protectOperations=["DELETE", "EVICT", "UPDATE", "RESIZE"])
    settled(kubectl, 0)
    web = pods(kubectl)[0]
    text = "PodUnavailableBudget web: 3 of 3 pods are available and 3 must be (maxUnavailable 0)"

    deleted = kubectl.run("delete", "pod", web, "--wait=false")
    assert deleted.returncode == 1
    assert f'Error from server (Forbidden): admission webhook "vpod.kb.io" denied the request: {text}' in deleted.stderr
    assert "add pods, or raise maxUnavailable or lower minAvailable" in deleted.stderr
    dry = kubectl.run("delete", "pod", web, "--wait=false", "--dry-run=server")
    assert text in dry.stderr

    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": web, "namespace": kubectl.namespace},
    }
    path = f"/api/v1/namespaces/{kubectl.namespace}/pods/{web}/eviction"
    evicted = kubectl.run("create", "--raw", path, "-f", "-", stdin=json.dumps(eviction))
    assert "(TooManyRequests)" in evicted.stderr
    assert text in evicted.stderr

    changed = kubectl.run("set", "image", f"pod/{web}", "main=busybox:2")
    assert text in changed.stderr
    kubectl("annotate", "pod", web, "note=1")
    kubectl("label", "pod", web, "tier=1")
    moved = kubectl.run("label", "pod", web, "app=other", "--overwrite")
    assert text in moved.stderr
    assert web in pods(kubectl)

    passed = kubectl.run("delete", "pod", web, "--wait=false", *BREAK_GLASS)
    assert passed.returncode == 0, passed.stderr
    assert "passed by break glass, and recorded" in passed.stderr
    settled(kubectl, 0)
    used = ("events", "--field-selector", "reason=BreakGlassUsed")
    eventually(lambda: kubectl.json(*used)["items"], "the Event")
    (event,) = kubectl.json(*used)["items"]
    assert event["message"] == f"ann passed this budget by break glass: DELETE of the pod {web}"
    assert event["involvedObject"]["kind"] == "PodUnavailableBudget"

    eventually(lambda: len(pods(kubectl)) == 3, "the pod to be replaced")
    kubectl("rollout", "restart", "deployment/web")  # a surge of pods makes room
    kubectl("rollout", "status", "deployment/web")
    kubectl("scale", "deployment/web", "--replicas=1")
    eventually(lambda: len(pods(kubectl)) == 1, "the scale-down")
    kubectl("scale", "deployment/web", "--replicas=2")
    eventually(lambda: len(pods(kubectl)) == 2, "the scale-up")
    kubectl("delete", "deployment", "web")  # garbage collection
    eventually(lambda: kubectl.json("pods")["items"] == [], "the garbage collector to delete the pods")

    other = Kubectl(installed, f"{kubectl.namespace}-other")
    govern(installed, [other.namespace])
    application(other, 2)
    budget(other, maxUnavailable=0)
    other("delete", "namespace", other.namespace)


def test_pod_that_a_kubelet_evicts_is_reported_once_by_its_budget_and_its_flow_control(kubectl: Kubectl) -> None:
    application(kubectl, 3)
    budget(kubectl, maxUnavailable=1)
    of_namespace = {"matchLabels": {"kubernetes.io/metadata.name": kubectl.namespace}}
    limits = {"limitRules": [{"interval": "1h", "limit": 100}], "namespaceSelector": of_namespace}
    guard = {"apiVersion": API_VERSION, "kind": "PodDeletionFlowControl", "metadata": {"name": "evictions"}}
    kubectl.apply(json.dumps({**guard, "spec": limits}))
    try:
        settled(kubectl, 1)
        web = pods(kubectl)[0]
        uid = kubectl.json("pod", web)["metadata"]["uid"]
        kubectl("annotate", "pod", web, "sandbox.altershield.io/evict=memory")
        eventually(lambda: kubectl.json("pod", web)["status"]["phase"] == "Failed", "the eviction")

        def lost(*found: str) -> bool:
            return uid in kubectl.json(*found).get("status", {}).get("ungatedPods", {})

        eventually(lambda: lost("pub", "web"), "the budget to report the loss")
        eventually(lambda: lost("poddeletionflowcontrol", "evictions"), "the flow control to count the loss")
        eventually(lambda: len(pods(kubectl)) == 3, "another pod in its place")
        kubectl("annotate", "pub", "web", "note=1")
        settled(kubectl, 1)
        ((window,), counted) = (
            kubectl.json("poddeletionflowcontrol", "evictions")["status"][key] for key in ("windows", "ungatedPods")
        )
        assert (window["used"], list(counted)) == (1, [uid])

        def events() -> list[str]:
            found = kubectl.json("events")["items"]
            return [each["message"] for each in found if each["reason"] == "UngatedDeletion"]

        eventually(lambda: events() != [], "the Event")
        assert events() == [f"no gatekeeper was asked before these pods were deleted or evicted: {web}"]
    finally:
        kubectl("delete", "poddeletionflowcontrol", "evictions")


def test_slots_come_back_once_pods_are_replaced_or_restarted_in_place(kubectl: Kubectl) -> None:
    application(kubectl, 4)
    budget(kubectl, maxUnavailable="25%")
    settled(kubectl, 1)
    assert (status(kubectl)["totalReplicas"], status(kubectl)["desiredAvailable"]) == (4, 3)
    first = pods(kubectl)[0]
    kubectl("delete", "pod", first, "--wait=false")
    settled(kubectl, 1)
    eventually(lambda: len(pods(kubectl)) == 4, "the pod to be replaced")
    settled(kubectl, 1)
    kubectl("set", "image", f"pod/{pods(kubectl)[1]}", "main=busybox:2")
    settled(kubectl, 1)


def test_failed_release_and_its_rollback_keep_to_the_budget(kubectl: Kubectl) -> None:
    """The strategy would replace all pods at once."""
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "100%", "maxSurge": 0}}
    kubectl.apply(json.dumps(workloads.manifest("Deployment", "web", "busybox", replicas=4, strategy=strategy)))
    eventually(
        lambda: (
            [each.get("status", {}).get("status") for each in kubectl.json("changeworkloads")["items"]] == ["Success"]
        ),
        "the first release to succeed",
    )
    budget(kubectl, maxUnavailable=1)
    settled(kubectl, 1)
    with watching(kubectl, 4) as ready:

        def is_rolled_back() -> bool:
            (container,) = kubectl.json("deployment", "web")["spec"]["template"]["spec"]["containers"]
            return len(ready.names) == 4 and container["image"] == "busybox" and ready.fewest < 4

        kubectl("set", "image", "deployment/web", "main=busybo")
        eventually(is_rolled_back, "the release to be rolled back")
    assert ready.fewest == 3
    refused = kubectl.json("events", "--field-selector", "reason=FailedDelete")["items"]
    assert any(
        "PodUnavailableBudget web: 3 of 4 pods are available and 3 must be" in each["message"] for each in refused
    )


def test_clone_set_replaces_pods_at_the_pace_of_the_budget(kubectl: Kubectl) -> None:
    """Its controller marks a pod with a label, and then deletes it."""
    strategy = {"maxUnavailable": "100%"}
    kubectl.apply(json.dumps(kinds.CLONE_SET.manifest("web", "busybox:1", replicas=4, updateStrategy=strategy)))
    eventually(lambda: len(pods(kubectl)) == 4, "the pods to be ready")
    budget(kubectl, maxUnavailable=0)
    settled(kubectl, 0)
    before = sorted(pods(kubectl))
    text = "PodUnavailableBudget web: 4 of 4 pods are available and 4 must be (maxUnavailable 0)"
    marked = kubectl.run("label", "pod", before[0], "apps.kruise.io/specified-delete=true")
    assert text in marked.stderr

    kubectl.apply(json.dumps(kinds.CLONE_SET.manifest("web", "busybox:2", replicas=4, updateStrategy=strategy)))

    def is_refused() -> bool:
        conditions = kubectl.json("cloneset", "web")["status"].get("conditions", [])
        return any(text in each.get("message", "") for each in conditions)

    eventually(is_refused, "the update to be refused")
    assert sorted(pods(kubectl)) == before
    with watching(kubectl, 4) as ready:
        budget(kubectl, maxUnavailable=1)
        eventually(lambda: len(ready.names - set(before)) == 4, "the pods to be replaced")
    assert ready.fewest == 3
