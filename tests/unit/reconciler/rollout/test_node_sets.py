"""The nodes that the steps of a release select."""

from collections.abc import Collection

from altershield.api.rollout import Step
from altershield.workloads.pods import Pod
from reconciler.rollout.node_sets import NodeSet, node_sets
from tests.unit.altershield.workloads import objects

CANARY, ZONE, ANY = Step(node_selector={"pool": "canary"}), Step(node_selector={"zone": "a"}), Step("30%")
NODES = {
    "n1": {"pool": "canary"}, "n2": {"pool": "canary", "zone": "a"}, "n3": {"zone": "a"}, "n4": {}, "n5": {},
}  # fmt: skip


def on(node: str) -> Pod:
    return objects.pod(name=f"pod-{node}", uid=node, spec={"nodeName": node})


def sets(
    *steps: Step,
    updated: Collection[str] = (),
    older: Collection[str] = (),
    lost: Collection[str] = (),
    replicas: int = 5,
) -> list[tuple[int, int, int]]:
    found = node_sets(
        steps, replicas, updated=map(on, updated), older=map(on, older), nodes=NODES,
        on_ready_node=lambda pod: pod.node not in lost,
    )  # fmt: skip
    return [(each.pods, each.updated, each.own) for each in found]


def test_set_has_the_nodes_with_a_pod_of_the_workload() -> None:
    assert sets(CANARY, older=["n1", "n2", "n3", "n4", "n5"]) == [(2, 0, 2)]
    assert sets(CANARY, older=["n1", "n3"], replicas=2) == [(1, 0, 1)]
    assert sets(CANARY, older=["n2", "n3"], updated=["n1"], replicas=3) == [(2, 1, 2)]
    assert sets(CANARY, older=["n3", "n4"], replicas=2) == [(0, 0, 0)]


def test_later_step_has_the_nodes_of_the_earlier_ones_too() -> None:
    (canary, both) = node_sets(
        (CANARY, ZONE), 5, updated=map(on, ("n1", "n2")), older=map(on, ("n3", "n4", "n5")), nodes=NODES,
        on_ready_node=lambda pod: True,
    )  # fmt: skip
    assert canary == NodeSet(frozenset({"n1", "n2"}), 2, 2, 2)
    assert both == NodeSet(frozenset({"n1", "n2", "n3"}), 3, 2, 2)
    assert sets(CANARY, ANY, updated=["n1", "n2"], older=["n3", "n4", "n5"]) == [(2, 2, 2), (2, 2, 0)]


def test_node_whose_pod_was_evicted_stays_in_the_set_until_the_next_pod_is_there() -> None:
    assert sets(CANARY, older=["n2", "n3", "n4", "n5"]) == [(2, 0, 2)]
    assert sets(CANARY, older=["n2", "n3", "n4", "n5"], replicas=4) == [(1, 0, 1)], "its node left"


def test_node_that_is_not_ready_counts_if_it_has_a_pod_of_the_version() -> None:
    assert sets(CANARY, older=["n1", "n2", "n3", "n4", "n5"], lost=["n1"]) == [(1, 0, 1)]
    assert sets(CANARY, updated=["n1"], older=["n2", "n3", "n4", "n5"], lost=["n1"]) == [(2, 1, 2)]


def test_pod_that_is_not_scheduled_yet_is_one_that_a_selected_node_lacks() -> None:
    assert sets(CANARY, updated=[""], older=["n1", "n3", "n4", "n5"]) == [(2, 0, 2)]
    assert sets(CANARY, updated=["n1", "n2", ""], older=["n3", "n4"]) == [(2, 2, 2)]
    assert sets(CANARY, updated=["n1"], older=["n3", "n4", "n5", ""]) == [(2, 1, 2)]
