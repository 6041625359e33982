"""The placement of pods on nodes, and label selectors."""

from fractions import Fraction

import msgspec
import pytest

from kube_sandbox.cluster import selectors
from kube_sandbox.cluster.kinds import LabelSelector
from kube_sandbox.cluster.scheduler import placement
from support.objects import node, pod


def test_node_with_the_fewest_pods_is_chosen() -> None:
    loads = {"sandbox-1": {"pods": Fraction(2)}, "sandbox-2": {"pods": Fraction(1)}}
    assert placement.choose(pod(), [node("sandbox-1"), node("sandbox-2")], loads) == "sandbox-2"
    assert placement.choose(pod(), [node("sandbox-1"), node("sandbox-3")], loads) == "sandbox-3"
    assert placement.choose(pod(), [], {}) is None


def test_toleration_allows_a_tainted_node() -> None:
    tainted = node(taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}])
    assert placement.refusals(pod(), tainted, {}) == ["node(s) had untolerated taint(s)"]
    for toleration in ({"key": "k", "value": "v"}, {"key": "k", "operator": "Exists"}, {"operator": "Exists"}):
        assert placement.refusals(pod(tolerations=[toleration]), tainted, {}) == []
    assert placement.refusals(pod(tolerations=[{"key": "k", "value": "w"}]), tainted, {}) != []


def test_explanation_reads_as_from_kube_scheduler() -> None:
    """The expected texts are those of kube-scheduler 1.36 for the same three nodes."""
    nodes = [
        node("one"),
        node("two", unschedulable=True),
        node("three", taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}]),
    ]
    big = [{"name": "c", "resources": {"requests": {"cpu": "100", "memory": "999Gi"}}}]
    assert placement.explanation(pod(containers=big), nodes, {}) == (
        "0/3 nodes are available: 1 Insufficient cpu, 1 Insufficient memory, 1 node(s) had untolerated taint(s), "
        "1 node(s) were unschedulable. no new claims to deallocate, preemption: 0/3 nodes are available: "
        "3 Preemption is not helpful for scheduling."
    )
    assert placement.explanation(pod(nodeSelector={"a": "b"}), nodes[:1], {}) == (
        "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector. no new claims to deallocate, "
        "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    )
    assert placement.explanation(pod(), [], {}) == "no nodes available to schedule pods"


@pytest.mark.parametrize(
    ("operator", "bound", "expected"),
    [("Gt", "3", True), ("Gt", "4", False), ("Lt", "5", True), ("Lt", "4", False), ("Gt", "many", False)],
)
def test_node_affinity_compares_numbers(operator: str, bound: str, expected: bool) -> None:
    term = {"matchExpressions": [{"key": "cores", "operator": operator, "values": [bound]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    picky = pod(affinity={"nodeAffinity": required})
    assert placement.selected(picky.spec, node(labels={"cores": "4"})) is expected
    assert not placement.selected(picky.spec, node())


def test_full_node_refuses_pods() -> None:
    full = {"sandbox-1": {"pods": Fraction(10), "cpu": Fraction("3.5")}}
    assert placement.refusals(pod(), node(), full["sandbox-1"]) == ["Too many pods"]
    assert "1 No preemption victims found for incoming pod" in placement.explanation(pod(), [node()], full)


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ({}, True),
        ({"matchLabels": {"a": "1"}}, True),
        ({"matchLabels": {"a": "2"}}, False),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["1", "2"]}]}, True),
        ({"matchExpressions": [{"key": "b", "operator": "In", "values": ["1"]}]}, False),
        ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]}, False),
        ({"matchExpressions": [{"key": "b", "operator": "NotIn", "values": ["1"]}]}, True),
        ({"matchExpressions": [{"key": "a", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}, False),
        ({"matchLabels": {"a": "1"}, "matchExpressions": [{"key": "a", "operator": "What"}]}, False),
    ],
)
def test_selector_matches_labels(selector: dict[str, object], expected: bool) -> None:
    assert selectors.matches(msgspec.convert(selector, LabelSelector), {"a": "1"}) is expected
