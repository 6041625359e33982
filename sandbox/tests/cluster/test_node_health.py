"""Nodes whose kubelet fails, and their pods."""

from typing import Any

import msgspec
import pytest

from kube_sandbox.cluster.kinds import Node, Taint
from kube_sandbox.cluster.nodes import health
from support.objects import CREATED, T0, pod

UNREACHABLE = Taint("node.kubernetes.io/unreachable", "NoExecute", "", CREATED)


def node(ready: str, **spec: Any) -> Node:
    conditions = [{"type": "Ready", "status": ready}, {"type": "DiskPressure", "status": "False"}]
    return msgspec.convert(
        {"metadata": {"name": "sandbox-1"}, "spec": spec, "status": {"conditions": conditions}}, Node
    )


@pytest.mark.parametrize(
    ("ready", "expected"),
    [
        ("True", set()),
        ("Unknown", {("node.kubernetes.io/unreachable", effect) for effect in ("NoSchedule", "NoExecute")}),
        ("False", {("node.kubernetes.io/not-ready", effect) for effect in ("NoSchedule", "NoExecute")}),
    ],
)
def test_node_that_is_not_ready_gets_the_taints_of_its_condition(ready: str, expected: set[tuple[str, str]]) -> None:
    mine = {"key": "mine", "effect": "NoSchedule"}
    taints = health.taints(node(ready, taints=[mine, {"key": UNREACHABLE.key, "effect": "NoExecute"}]), T0)
    assert {(one.key, one.effect) for one in taints} == expected | {("mine", "NoSchedule")}


def test_cordoned_node_gets_the_taint_unschedulable() -> None:
    (taint,) = health.taints(node("True", unschedulable=True), T0)
    assert (taint.key, taint.effect) == ("node.kubernetes.io/unschedulable", "NoSchedule")


def test_existing_taint_keeps_its_time() -> None:
    taints = health.taints(node("Unknown", taints=[msgspec.to_builtins(UNREACHABLE)]), T0 + 50)
    assert UNREACHABLE in taints


def test_silent_kubelet_makes_all_conditions_unknown() -> None:
    conditions = health.silent_conditions(node("True"), T0)
    assert {one["type"]: one["status"] for one in conditions} == {"Ready": "Unknown", "DiskPressure": "Unknown"}
    assert conditions[0]["reason"] == "NodeStatusUnknown"


def test_ready_pods_on_a_failed_node_are_marked_unready() -> None:
    up, down = pod("up", ready_since=CREATED), pod("down")
    assert health.to_mark([up, down]) == [up]
    (condition,) = health.unready_patch(up, T0)["status"]["conditions"]
    assert (condition["type"], condition["status"], condition.get("reason")) == ("Ready", "False", None)


@pytest.mark.parametrize(
    ("toleration", "seconds"),
    [
        (None, 0),
        ({"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30}, 30),
        ({"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}, 100),
        ({"operator": "Exists", "effect": "NoExecute"}, None),
    ],
)
def test_pods_are_evicted_after_their_toleration_seconds(
    toleration: dict[str, Any] | None, seconds: int | None
) -> None:
    tainted = node("Unknown", taints=[msgspec.to_builtins(UNREACHABLE)])
    tolerations = [{"key": UNREACHABLE.key, **toleration}] if toleration else []
    found = health.evictions(tainted, [pod(tolerations=tolerations)], 100)
    assert [eviction.at - T0 for eviction in found] == ([] if seconds is None else [seconds])
