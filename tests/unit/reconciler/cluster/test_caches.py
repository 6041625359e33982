"""Which objects the caches keep, and which object belongs to which."""

from collections.abc import AsyncIterator
from math import inf
from typing import Any

import msgspec
import pytest

from altershield.api import labels, names
from altershield.api.namespace import Namespace
from altershield.workloads import BY_KIND, nodes
from altershield.workloads.meta import Owner
from kube_base.meta import OwnerReference
from kube_base.resources import NAMESPACES, REPLICA_SETS
from kube_base.times import unix
from reconciler.cluster.caches import Caches
from reconciler.cluster.gates import FREEZES, OVERRIDES, WINDOWS
from reconciler.cluster.ownership import WorkloadKey, is_batch_of, is_controlled_by, workload_key
from reconciler.manager import SUBJECTS
from tests.support.stub_api import is_list, serving
from tests.support.workloads import BY_NAME, GROUP_KINDS
from tests.unit.altershield.releases import builders
from tests.unit.altershield.releases.builders import V1
from tests.unit.reconciler.filled import (
    GOVERNED,
    Object,
    change_pod,
    empty_caches,
    informer_of,
    namespace,
    newer,
    pod,
    put,
    release,
    remove,
    replica_set,
    setting,
)

SYSTEM = names.SYSTEM_NAMESPACE
DELETED = {"deletionTimestamp": "2026-08-21T07:29:49Z"}
GOVERNED_AT = "2026-08-21T07:29:50Z"


@pytest.fixture
async def caches() -> AsyncIterator[Caches]:
    async with empty_caches() as made:
        put(made, namespace(), namespace("shop"))
        yield made


# which objects are kept


@pytest.mark.parametrize("more", ["", "team in (a,b),!paused"])
async def test_only_governed_namespaces_that_match_the_selector_are_listed(more: str) -> None:
    async with serving() as (api, client):
        await api.put(NAMESPACES, {"metadata": {"name": "default", "labels": GOVERNED}})
        caches = Caches(client, SYSTEM, namespace_selector=more)
        await caches.namespaces._reflector._list()
        (listed,) = filter(is_list, api.requests)
        governed = f"{labels.GOVERNED}={labels.GOVERNED_VALUE}"
        assert listed.query["labelSelector"] == (f"{governed},{more}" if more else governed)


@pytest.mark.parametrize(
    ("found", "governed"),
    [
        (None, False),
        (namespace("lab"), True),
        (namespace("lab", governed=False), False),
        (namespace("lab", **DELETED), False),
        (namespace("kube-system"), False),
        (namespace(SYSTEM), False),
    ],
    ids=["unknown", "labelled", "not labelled", "being deleted", "kube-system", "AlterShield's own"],
)
async def test_namespace_is_governed_if_it_is_labelled_active_and_no_system_namespace(
    caches: Caches, found: Namespace | None, governed: bool
) -> None:
    if found is not None:
        put(caches, found)
    assert caches.governed(found.metadata.name if found is not None else "lab") is governed


def _in(namespace: str) -> list[Any]:
    """One object of each resource that is kept per namespace."""
    return [
        *(_moved(builders.workload(V1, kind=kind), namespace) for kind in sorted(BY_NAME)),
        replica_set(namespace=namespace),
        pod(namespace=namespace),
        _moved(release(), namespace),
        _moved(change_pod(), namespace),
    ]


def _moved(obj: Any, namespace: str) -> Any:
    if obj.metadata is obj:
        return msgspec.structs.replace(obj, namespace=namespace)
    return msgspec.structs.replace(obj, metadata=msgspec.structs.replace(obj.metadata, namespace=namespace))


async def test_objects_of_governed_namespaces_are_kept(caches: Caches) -> None:
    for obj in _in("shop"):
        put(caches, obj)
        assert len(informer_of(caches, obj)) == 1, obj


async def test_objects_of_other_namespaces_are_not_kept(caches: Caches) -> None:
    for obj in _in("lab"):
        put(caches, obj)
        assert len(informer_of(caches, obj)) == 0, obj


@pytest.mark.parametrize(
    ("owner", "kept"),
    [
        ({}, True),
        ({"apiVersion": "apps/v1", "kind": "StatefulSet"}, True),
        ({"apiVersion": "example.com/v1", "kind": "StatefulSet"}, False),
        ({"apiVersion": "apps/v1beta1", "kind": "StatefulSet"}, False),
        ({"apiVersion": "apps/v1beta1"}, False),
        ({"apiVersion": "example.com/v1"}, False),
        ({"apiVersion": "batch/v1", "kind": "Job"}, False),
        ({"controller": False}, False),
    ],
)
async def test_only_pods_of_workloads_and_replica_sets_are_kept(caches: Caches, owner: Object, kept: bool) -> None:
    put(caches, pod(owner=owner))
    assert len(caches.pods) == kept


@pytest.mark.parametrize(
    ("owner", "kept"), [({}, True), ({"kind": "Rollout"}, False), ({"apiVersion": "example.com/v1"}, False)]
)
async def test_only_replica_sets_of_deployments_are_kept(caches: Caches, owner: Object, kept: bool) -> None:
    put_there = caches.sets[REPLICA_SETS.group_kind]
    put_there.observe(replica_set(owner=owner))
    assert len(put_there) == kept


async def test_workloads_of_a_namespace_are_read_last(caches: Caches) -> None:
    """When the cache has a workload, it already has all objects of the workload."""
    define(caches)
    filled = caches.namespaced
    assert filled[-len(caches.workloads) :] == tuple(caches.workloads.values())
    assert set(filled) == {
        caches.policies,
        *caches.budgets.governed,
        *(caches[each] for subject in SUBJECTS for each in subject.watches if each.scope.follows_namespaces),
        caches.batches,
        caches.releases,
        caches.pods,
        *caches.sets.values(),
        *caches.workloads.values(),
        caches[WINDOWS],
        caches[FREEZES],
        caches[OVERRIDES],
    }


async def test_kind_that_the_cluster_does_not_have_any_more_is_not_read(caches: Caches) -> None:
    """Its list fails, and releases do not begin before all lists of their namespace are complete."""
    assert caches.workloads[GROUP_KINDS["CloneSet"]] not in caches.namespaced
    assert caches.workloads[GROUP_KINDS["Deployment"]] in caches.namespaced


async def test_kind_with_a_crd_is_defined_once_the_crd_exists(caches: Caches) -> None:
    assert caches.defined(GROUP_KINDS["Deployment"])
    assert not caches.defined(GROUP_KINDS["CloneSet"])
    define(caches)
    assert caches.defined(GROUP_KINDS["CloneSet"])


def define(caches: Caches) -> None:
    """Create the CustomResourceDefinitions of all kinds."""
    for kind, definitions in caches.definitions.items():
        body = {"metadata": {"name": BY_KIND[kind].crd, "resourceVersion": "1"}}
        definitions.observe(definitions.read(msgspec.json.encode(body)))


# since when a namespace is governed, and settings


def _labelled(at: str, **metadata: Any) -> Namespace:
    fields = {"f:metadata": {"f:labels": {f"f:{labels.GOVERNED}": {}}}}
    return namespace("lab", managedFields=[{"time": at, "fieldsV1": fields}], **metadata)


async def test_namespace_is_governed_since_its_label_and_the_first_setting_are_there(caches: Caches) -> None:
    installed = setting().metadata.creation_timestamp
    assert installed is not None
    put(caches, setting())
    put(caches, _labelled(GOVERNED_AT))
    assert caches.governed_since("lab") == unix(GOVERNED_AT) == unix(installed) + 1
    put(caches, newer(_labelled("2020-01-01T00:00:00Z")))
    assert caches.governed_since("lab") == unix(installed)


async def test_namespace_is_governed_since_infinity_without_label_setting_or_time(caches: Caches) -> None:
    put(caches, _labelled(GOVERNED_AT))
    assert caches.governed_since("lab") == inf  # no setting
    put(caches, setting())
    assert caches.governed_since("default") == inf  # the time of the label is unknown
    assert caches.governed_since("unknown") == inf
    put(caches, newer(_labelled(GOVERNED_AT, **DELETED)))
    assert caches.governed_since("lab") == inf


async def test_setting_is_in_effect_while_the_cache_has_it(caches: Caches) -> None:
    assert caches.in_effect().blocking
    put(caches, setting(enable=False))
    assert not caches.in_effect().blocking
    remove(caches, setting())
    assert caches.in_effect().blocking


# nodes


def _put_node(caches: Caches, ready: str) -> None:
    condition = {"type": "Ready", "status": ready, "lastTransitionTime": "2023-11-14T22:13:20Z"}
    metadata = {"name": "node-1", "resourceVersion": "1", "labels": {"pool": "canary"}}
    body = {"metadata": metadata, "status": {"conditions": [condition]}}
    caches.nodes.observe(nodes.read(msgspec.json.encode(body)))


async def test_unknown_node_is_both_ready_and_lost(caches: Caches) -> None:
    found = caches.node_ready("node-1"), caches.node_lost("node-1"), caches.node_ready_at("node-1")
    assert found == (True, True, 0.0)


@pytest.mark.parametrize(
    ("ready", "expected"), [("True", (True, False, 1_700_000_000.0)), ("Unknown", (False, True, 0.0))]
)
async def test_node_is_ready_according_to_its_ready_condition(
    caches: Caches, ready: str, expected: tuple[bool, bool, float]
) -> None:
    _put_node(caches, ready)
    found = caches.node_ready("node-1"), caches.node_lost("node-1"), caches.node_ready_at("node-1")
    assert found == expected


async def test_nodes_have_their_labels(caches: Caches) -> None:
    _put_node(caches, "True")
    assert caches.node_labels() == {"node-1": {"pool": "canary"}}


# which object belongs to which


async def test_pods_of_a_deployment_are_those_of_its_replica_sets(caches: Caches) -> None:
    deployment = builders.workload(V1)
    put(caches, replica_set(), replica_set(name="other-1", workload="other"))
    put(caches, pod(), _pod_of("other-1"), _moved(pod(), "shop"))
    assert [each.metadata.name for each in caches.pods_of(deployment)] == ["sleep-1-a"]
    assert [each.metadata.name for each in caches.sets_of(deployment)] == ["sleep-1"]
    assert [caches.owns(deployment, each) for each in (pod(), _pod_of("other-1"), _moved(pod(), "shop"))] == [
        True,
        False,
        False,
    ]


def _pod_of(owner: str) -> Any:
    return msgspec.structs.replace(pod(name=f"{owner}-a"), owner=Owner("apps/v1", "ReplicaSet", owner, owner))


async def test_replica_set_in_another_namespace_does_not_belong_to_the_deployment(caches: Caches) -> None:
    put(caches, replica_set(), replica_set(name="forged", namespace="shop"))
    assert [each.metadata.name for each in caches.sets_of(builders.workload(V1))] == ["sleep-1"]


async def test_pods_of_a_stateful_set_are_in_its_namespace_and_have_its_uid_as_owner(caches: Caches) -> None:
    stateful_set = builders.workload(V1, kind="StatefulSet")
    own = {"kind": "StatefulSet", "name": "sleep", "uid": "sleep"}
    mine, forged = pod(name="sleep-0", owner=own), pod(name="forged", namespace="shop", owner=own)
    namesake = pod(name="sleep-1", owner={**own, "uid": "deleted"})
    put(caches, mine, forged, namesake)
    assert [each.metadata.name for each in caches.pods_of(stateful_set)] == ["sleep-0"]
    assert [caches.owns(stateful_set, each) for each in (mine, forged, namesake)] == [True, False, False]
    assert caches.sets_of(stateful_set) == []
    assert caches.workload_of(mine) == WorkloadKey(GROUP_KINDS["StatefulSet"], "default", "sleep")


async def test_recreated_replica_set_of_the_same_name_does_not_own_the_pod(caches: Caches) -> None:
    put(caches, replica_set(uid="another"))
    assert caches.set_of(pod()) is None
    assert caches.workload_of(pod()) is None
    put(caches, replica_set(2))
    assert caches.set_of(pod()) == replica_set(2)
    assert caches.workload_of(pod()) == WorkloadKey(GROUP_KINDS["Deployment"], "default", "sleep")


async def test_batches_are_found_by_namespace_and_name_of_their_change_workload(caches: Caches) -> None:
    put(caches, change_pod(), _moved(change_pod(), "shop"))
    assert caches.batches_of(release()) == [change_pod()]


async def test_releases_are_found_by_kind_namespace_and_name_of_the_workload(caches: Caches) -> None:
    put(caches, namespace("defaults"))
    same_letters = _moved(release(name="leep"), "defaults")
    put(caches, release(), release(name="other"), release(kind="StatefulSet"), _moved(release(), "shop"), same_letters)
    assert caches.releases_of(builders.workload(V1)) == [release()]


def _release(*owners: OwnerReference, **spec: Any) -> Any:
    made = builders.release(V1)
    return msgspec.structs.replace(
        made,
        metadata=msgspec.structs.replace(made.metadata, owner_references=owners),
        spec=msgspec.structs.replace(made.spec, **spec),
    )


def test_change_workload_without_a_workload_ref_belongs_to_its_owner() -> None:
    no_reference = {"workload_ref": msgspec.structs.replace(builders.release(V1).spec.workload_ref, kind="", name="")}
    stateful = OwnerReference("StatefulSet", "sleep", "sleep", "apps/v1", controller=True)
    of_stateful = WorkloadKey(GROUP_KINDS["StatefulSet"], "default", "sleep")
    assert workload_key(_release(stateful, **no_reference)) == of_stateful
    assert workload_key(_release(**no_reference)) == WorkloadKey(GROUP_KINDS["Deployment"], "default", "sleep")
    assert workload_key(builders.release(V1)) == WorkloadKey(GROUP_KINDS["Deployment"], "default", "sleep")


@pytest.mark.parametrize(
    ("owner", "expected"),
    [
        (OwnerReference("Deployment", "sleep", "sleep", "apps/v1", controller=True), True),
        (OwnerReference("Deployment", "sleep", "another", "apps/v1", controller=True), False),
        (OwnerReference("StatefulSet", "sleep", "sleep", "apps/v1", controller=True), False),
        (OwnerReference("Deployment", "sleep", "sleep", "example.com/v1", controller=True), False),
        (OwnerReference("Deployment", "sleep", "sleep", "apps/v1"), False),
    ],
)
def test_release_belongs_to_the_workload_that_controls_it(owner: OwnerReference, expected: bool) -> None:
    assert is_controlled_by(_release(owner), builders.workload(V1)) is expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [({}, True), ({"uid": "another"}, False), ({"kind": "Job"}, False), ({"api_version": "batch/v1"}, False)],
)
def test_batch_belongs_to_the_release_that_controls_it(changes: dict[str, str], expected: bool) -> None:
    batch = change_pod()
    changed = msgspec.structs.replace(batch, owner=msgspec.structs.replace(batch.owner, **changes))
    assert is_batch_of(changed, release()) is expected


def test_filling_that_begins_during_another_one_is_not_over_with_the_first(caches: Caches) -> None:
    assert caches.filling("shop") is None
    caches.begin_filling("shop")
    first = caches.filling("shop")
    caches.begin_filling("shop")
    caches.end_filling("shop", first)
    second = caches.filling("shop")
    assert second is not None
    caches.end_filling("shop", second)
    assert caches.filling("shop") is None
