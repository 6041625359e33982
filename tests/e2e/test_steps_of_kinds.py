"""Releases in steps of all kinds of workloads."""

import json
from collections.abc import Iterator

import pytest

from altershield.api.annotations import ROLLOUT
from tests.e2e.held_kinds import KINDS, apply, of_version, policy, promote, reach, steps, succeed
from tests.e2e.held_releases import USER, without_template
from tests.e2e.kinds import DAEMON_SET, ORDERED, PARALLEL, Kind
from tests.e2e.nodes import Nodes
from tests.e2e.ready_pods import watching
from tests.e2e.sleep import VERSION
from tests.support.kubectl import Json, Kubectl
from tests.support.polling import eventually


@pytest.mark.parametrize("kind", KINDS)
def test_release_goes_to_one_pod_then_to_all(kubectl: Kubectl, kind: Kind) -> None:
    succeed(kubectl, kind, apply(kubectl, kind, "busybox"))
    before = kubectl.json(kind.resource, "app")
    steps(kubectl, kind, 1)
    version = apply(kubectl, kind, "busybox:2")
    reach(kubectl, kind, version, "Soaking")
    assert len(of_version(kubectl, version)) == 1
    found = succeed(kubectl, kind, version)
    replicas = len(kubectl.json("pods")["items"])
    assert [each["pods"] for each in found["passedSteps"]] == [1, replicas]
    after = kubectl.json(kind.resource, "app")
    assert without_template(after) == without_template(before)
    assert ROLLOUT not in after["metadata"]["annotations"]


@pytest.mark.parametrize("kind", [ORDERED, PARALLEL], ids=lambda kind: kind.id)
def test_highest_ordinal_is_first_and_the_own_partition_stays(kubectl: Kubectl, kind: Kind) -> None:
    own: Json = {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}}
    succeed(kubectl, kind, apply(kubectl, kind, "busybox", 5, **own))
    before = kubectl.json("statefulset", "app")
    policy(kubectl, kind, {"steps": [{"pods": pods, "soakSeconds": 0, "approval": True} for pods in (1, "80%")]})
    version = apply(kubectl, kind, "busybox:2", 5, **own)
    reach(kubectl, kind, version, "WaitingForApproval")
    assert of_version(kubectl, version) == ["app-4"]
    promote(kubectl, kind, version)
    eventually(lambda: of_version(kubectl, version) == ["app-2", "app-3", "app-4"], "the pods above the own partition")
    reach(kubectl, kind, version, "WaitingForApproval")
    promote(kubectl, kind, version)
    succeed(kubectl, kind, version)
    assert of_version(kubectl, version) == ["app-2", "app-3", "app-4"]
    assert without_template(kubectl.json("statefulset", "app")) == without_template(before)


@pytest.mark.parametrize("kind", [ORDERED, DAEMON_SET], ids=lambda kind: kind.id)
def test_pod_that_does_not_come_up_is_taken_back(kubectl: Kubectl, kind: Kind) -> None:
    base = apply(kubectl, kind, "busybox")
    succeed(kubectl, kind, base)
    before = kubectl.json(kind.resource, "app")
    steps(kubectl, kind, 1, soak=600)
    apply(kubectl, kind, "crash:1")
    eventually(lambda: kubectl.labels(kind.resource, "app")[VERSION] == base, "the rollback")
    replicas = len(kubectl.json("pods")["items"])
    eventually(lambda: len(of_version(kubectl, base)) == replicas, "the base everywhere")
    assert without_template(kubectl.json(kind.resource, "app")) == without_template(before)


@pytest.fixture
def nodes(kubectl: Kubectl) -> Iterator[Nodes]:
    nodes = Nodes(kubectl)
    yield nodes
    nodes.delete()


def test_one_pod_of_a_daemonset_at_a_time_is_not_available(kubectl: Kubectl, nodes: Nodes) -> None:
    nodes.add(6)
    succeed(kubectl, DAEMON_SET, apply(kubectl, DAEMON_SET, "busybox", pod=nodes.pod))
    before = kubectl.json("daemonset", "app")
    steps(kubectl, DAEMON_SET, 1, "50%", soak=1)
    with watching(kubectl, 6) as ready:
        found = succeed(kubectl, DAEMON_SET, apply(kubectl, DAEMON_SET, "busybox:2", pod=nodes.pod))
    assert ready.fewest == 5
    assert [each["pods"] for each in found["passedSteps"]] == [1, 3, 6]
    assert without_template(kubectl.json("daemonset", "app")) == without_template(before)


def test_pod_of_a_daemonset_that_breaks_before_its_own_min_ready_seconds_stays_the_only_one(
    kubectl: Kubectl, nodes: Nodes
) -> None:
    nodes.add(4)
    base = apply(kubectl, DAEMON_SET, "busybox", pod=nodes.pod, minReadySeconds=6)
    succeed(kubectl, DAEMON_SET, base)
    steps(kubectl, DAEMON_SET, "75%", soak=600)
    with watching(kubectl, 4) as ready:
        version = apply(kubectl, DAEMON_SET, "unready-after-3s", pod=nodes.pod, minReadySeconds=6)
        name = DAEMON_SET.change_workload_name("app", version)
        kubectl.wait(f"changeworkload/{name}", "create")
        kubectl.wait(f"changeworkload/{name}", "jsonpath={.status.status}=Failed")
        assert ready.fewest == 3
    eventually(lambda: len(of_version(kubectl, base)) == 4, "the base everywhere")


def test_node_that_is_not_ready_keeps_its_pod_and_one_that_joins_gets_the_version(
    kubectl: Kubectl, nodes: Nodes
) -> None:
    own: Json = {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}}}
    nodes.add(4)
    succeed(kubectl, DAEMON_SET, apply(kubectl, DAEMON_SET, "busybox", pod=nodes.pod, **own))
    before = kubectl.json("daemonset", "app")
    broken = nodes.names[0]
    (kept,) = on_node(kubectl, broken)
    nodes.break_(broken)
    policy(kubectl, DAEMON_SET, {"steps": [{"pods": 3, "soakSeconds": 0, "approval": True}]})
    version = apply(kubectl, DAEMON_SET, "busybox:2", pod=nodes.pod, **own)
    reach(kubectl, DAEMON_SET, version, "WaitingForApproval")
    assert len(of_version(kubectl, version)) == 3
    assert on_node(kubectl, broken) == [kept]
    nodes.repair(broken)
    nodes.add()
    name = DAEMON_SET.change_workload_name("app", version)
    eventually(
        lambda: kubectl.json("changeworkload", name)["status"]["rollout"]["passed"] == 4, "the new node's pod to pass"
    )
    assert on_node(kubectl, broken) == [kept]
    promote(kubectl, DAEMON_SET, version)
    succeed(kubectl, DAEMON_SET, version)
    assert len(of_version(kubectl, version)) == 5
    assert without_template(kubectl.json("daemonset", "app")) == without_template(before)


def test_step_waits_for_the_node_of_its_pod_if_it_is_lost(kubectl: Kubectl, nodes: Nodes) -> None:
    nodes.add(2)
    succeed(kubectl, DAEMON_SET, apply(kubectl, DAEMON_SET, "busybox", pod=nodes.pod))
    steps(kubectl, DAEMON_SET, 1, soak=600)
    version = apply(kubectl, DAEMON_SET, "busybox:2", pod=nodes.pod)
    reach(kubectl, DAEMON_SET, version, "Soaking")
    (node,) = nodes_of_version(kubectl, version)
    nodes.lose(node)
    name = f"changeworkload/{DAEMON_SET.change_workload_name('app', version)}"
    kubectl.wait(name, "jsonpath={.status.rollout.waitingFor[0]}=node")
    said = kubectl.json("events", "--field-selector", "reason=StepHeld")["items"]
    assert any(each["message"].endswith(f"({node})") for each in said)
    nodes.repair(node)

    def is_verified() -> bool:
        found = kubectl.json(name)["status"]["rollout"]
        return (found.get("waitingFor"), found.get("passed")) == (None, 1)

    eventually(is_verified, "the node and its pod")
    assert nodes_of_version(kubectl, version) == [node]
    promote(kubectl, DAEMON_SET, version)
    succeed(kubectl, DAEMON_SET, version)


def on_node(kubectl: Kubectl, node: str) -> list[str]:
    """The names of the pods on a node that are not terminating."""
    found = kubectl.json("pods", "--field-selector", f"spec.nodeName={node}")["items"]
    return [each["metadata"]["name"] for each in found if not each["metadata"].get("deletionTimestamp")]


CANARY = {"pool": "canary"}


@pytest.mark.parametrize("kind", [ORDERED, DAEMON_SET], ids=lambda kind: kind.id)
def test_step_waits_for_the_end_of_the_pod_in_its_place(kubectl: Kubectl, kind: Kind) -> None:
    """A finalizer keeps it. The new version has no pod yet, so the step is not overdue."""
    succeed(kubectl, kind, apply(kubectl, kind, "busybox"))
    kept = [each["metadata"]["name"] for each in kubectl.json("pods")["items"]]
    _set_finalizers(kubectl, kept, ["test.example.com/kept"])
    policy(kubectl, kind, {"pods": [1], "soakSeconds": 1, "stepDeadlineSeconds": 60})
    version = apply(kubectl, kind, "busybox:2")
    name = f"changeworkload/{kind.change_workload_name('app', version)}"
    kubectl.wait(name, "create")
    kubectl.wait(name, "jsonpath={.status.rollout.waitingFor[0]}=termination")
    (ending,) = (each for each in kubectl.json("pods")["items"] if "deletionTimestamp" in each["metadata"])
    stalled = kubectl.json(name)["status"]["conditions"]
    (message,) = (each["message"] for each in stalled if each["reason"] == "PodTerminating")
    assert f"waits for the end of pod {ending['metadata']['name']}" in message
    assert of_version(kubectl, version) == []
    _set_finalizers(kubectl, kept, None)
    succeed(kubectl, kind, version)
    assert "waitingFor" not in kubectl.json(name)["status"]["rollout"]


def _set_finalizers(kubectl: Kubectl, pods: list[str], finalizers: list[str] | None) -> None:
    for each in pods:
        kubectl("patch", "pod", each, "--type=merge", "-p", json.dumps({"metadata": {"finalizers": finalizers}}))


def test_pods_on_selected_nodes_are_first_whatever_their_number(kubectl: Kubectl, nodes: Nodes) -> None:
    nodes.add(2)
    nodes.add(2, CANARY)
    succeed(kubectl, DAEMON_SET, apply(kubectl, DAEMON_SET, "busybox", pod=nodes.pod))
    before = kubectl.json("daemonset", "app")
    selected = {"nodeSelector": CANARY, "soakSeconds": 0, "approval": True}
    policy(kubectl, DAEMON_SET, {"steps": [selected, {"pods": "75%", "soakSeconds": 0}]})
    with watching(kubectl, 4) as ready:
        version = apply(kubectl, DAEMON_SET, "busybox:2", pod=nodes.pod)
        reach(kubectl, DAEMON_SET, version, "WaitingForApproval")
        assert nodes_of_version(kubectl, version) == nodes.names[2:]
        joined = nodes.add()
        nodes.label(nodes.names[0], CANARY)
        eventually(lambda: joined[0] in nodes_of_version(kubectl, version), "the new node's pod")
        eventually(lambda: nodes.names[0] in nodes_of_version(kubectl, version), "the relabelled node's pod")
        assert nodes.names[1] not in nodes_of_version(kubectl, version)
        reach(kubectl, DAEMON_SET, version, "WaitingForApproval")
        promote(kubectl, DAEMON_SET, version)
        found = succeed(kubectl, DAEMON_SET, version)
    assert ready.fewest == 3
    assert [each["pods"] for each in found["passedSteps"]] == [3, 4, 5]
    assert without_template(kubectl.json("daemonset", "app")) == without_template(before)


def test_step_whose_labels_no_node_has_waits_until_one_has_them_or_a_person_promotes(
    kubectl: Kubectl, nodes: Nodes
) -> None:
    nodes.add(2)
    succeed(kubectl, DAEMON_SET, apply(kubectl, DAEMON_SET, "busybox", pod=nodes.pod))
    selected = {"nodeSelector": {"pool": nodes.names[0]}, "soakSeconds": 0, "approval": True}
    policy(kubectl, DAEMON_SET, {"steps": [selected]})
    version = apply(kubectl, DAEMON_SET, "busybox:2", pod=nodes.pod)
    name = f"changeworkload/{DAEMON_SET.change_workload_name('app', version)}"
    eventually(lambda: kubectl.run("get", name).returncode == 0, name)
    kubectl.wait(name, "jsonpath={.status.rollout.waitingFor[0]}=nodeSelector")
    assert of_version(kubectl, version) == []
    nodes.label(nodes.names[1], {"pool": nodes.names[0]})
    reach(kubectl, DAEMON_SET, version, "WaitingForApproval")
    assert nodes_of_version(kubectl, version) == [nodes.names[1]]
    second = apply(kubectl, DAEMON_SET, "busybox:3", pod=nodes.pod)
    nodes.label(nodes.names[1], {"pool": "other"})
    name = f"changeworkload/{DAEMON_SET.change_workload_name('app', second)}"
    eventually(lambda: kubectl.run("get", name).returncode == 0, name)
    kubectl.wait(name, "jsonpath={.status.rollout.waitingFor[0]}=nodeSelector")
    promote(kubectl, DAEMON_SET, second)
    found = succeed(kubectl, DAEMON_SET, second)
    assert found["passedSteps"][0].get("promotedBy") == USER


def test_release_that_another_controller_makes_says_which_one(kubectl: Kubectl) -> None:
    succeed(kubectl, DAEMON_SET, apply(kubectl, DAEMON_SET, "busybox"))
    steps(kubectl, DAEMON_SET, 1)
    kubectl("annotate", "daemonset", "app", "flagger.app/config-tracking=1")
    version = apply(kubectl, DAEMON_SET, "busybox:2")
    assert succeed(kubectl, DAEMON_SET, version) == {}
    found = kubectl.json("changeworkload", DAEMON_SET.change_workload_name("app", version))["status"]["conditions"]
    assert any(each["message"].endswith("is released without steps: Flagger releases it") for each in found)
    said = kubectl.json("events", "--field-selector", "reason=StepsNotPossible")["items"]
    assert said[-1]["message"].endswith("Flagger releases it")


def nodes_of_version(kubectl: Kubectl, version: str) -> list[str]:
    """The nodes with a pod of this version, sorted."""
    found = kubectl.json("pods", "-l", f"{VERSION}={version}")["items"]
    there = (each for each in found if not each["metadata"].get("deletionTimestamp"))
    return sorted(node for each in there if (node := each["spec"].get("nodeName")))
