"""The graph of owners and dependents."""

from typing import Any

import msgspec

from kube_base.resources import DEPLOYMENTS, NODES, PODS, REPLICA_SETS, Resource
from kube_sandbox.cluster.garbage.graph import Graph, Item, OwnerState
from kube_sandbox.cluster.kinds import Meta


def item(resource: Resource, name: str, *owners: Item, **metadata: Any) -> Item:
    references = [
        {
            "kind": owner.resource.kind,
            "name": owner.metadata.name,
            "uid": owner.metadata.uid,
            "blockOwnerDeletion": True,
        }
        for owner in owners
    ]
    wire = {"name": name, "namespace": "default", "uid": f"uid of {name}", "ownerReferences": references, **metadata}
    return Item(resource, msgspec.convert(wire, Meta))


def graph(*items: Item) -> Graph:
    made = Graph()
    for one in items:
        made.put(one)
    return made


DEPLOYMENT = item(DEPLOYMENTS, "sleep")
RS = item(REPLICA_SETS, "rs", DEPLOYMENT)
POD = item(PODS, "pod", RS)


def owner_state(made: Graph, one: Item) -> OwnerState | None:
    return made.owner_state(one, one.metadata.owner_references[0])


def test_dependents_are_found_in_any_order_of_arrival() -> None:
    for order in ([POD, RS, DEPLOYMENT], [DEPLOYMENT, RS, POD]):
        made = graph(*order)
        assert [one.metadata.name for one in made.dependents("uid of rs")] == ["pod"]
        assert owner_state(made, POD) is OwnerState.PRESENT
    made.drop("uid of pod")
    assert list(made.dependents("uid of rs")) == []


def test_owner_that_is_not_in_the_graph_is_unknown() -> None:
    assert owner_state(graph(POD), POD) is None


def test_owner_in_another_namespace_counts_as_absent() -> None:
    elsewhere = item(REPLICA_SETS, "rs", namespace="elsewhere")
    assert owner_state(graph(elsewhere, POD), POD) is OwnerState.ABSENT


def test_cluster_scoped_owner_is_found() -> None:
    machine = item(NODES, "node", namespace="")
    dependent = item(PODS, "static", machine)
    assert owner_state(graph(machine, dependent), dependent) is OwnerState.PRESENT


def test_owner_with_the_same_uid_and_another_name_counts_as_absent() -> None:
    renamed = item(REPLICA_SETS, "other", uid="uid of rs")
    assert owner_state(graph(renamed, POD), POD) is OwnerState.ABSENT


def test_owner_deleted_in_the_foreground_waits_for_blocking_dependents() -> None:
    leaving = item(REPLICA_SETS, "rs", deletionTimestamp="2026-01-01T00:00:00Z", finalizers=["foregroundDeletion"])
    made = graph(leaving, POD)
    assert owner_state(made, POD) is OwnerState.WAITING
    assert made.blocking("uid of rs") == [POD]


def test_finalizers_give_the_propagation_policy() -> None:
    assert RS.propagation == "Background"
    assert item(PODS, "a", finalizers=["foregroundDeletion"]).propagation == "Foreground"
    assert item(PODS, "a", finalizers=["orphan"]).propagation == "Orphan"
