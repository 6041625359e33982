"""Which pods a budget covers, and its numbers."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from altershield.api.budgets import DisruptionRecord, Operation, PodUnavailableBudgetStatus
from altershield.budgets import pods, scaled
from altershield.budgets.numbers import Numbers, counted, desired, numbers
from altershield.budgets.pods import Pod
from altershield.workloads import ADAPTERS
from altershield.workloads.meta import Owner
from kube_base.resources import GroupKind
from tests.unit.altershield.budgets import builders
from tests.unit.altershield.budgets.builders import (
    DEPLOYMENT,
    LABELS,
    NAMESPACE,
    SET,
    Cluster,
    budget,
    groups,
    pod,
    web,
)

TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
ROLLOUT = Owner("argoproj.io/v1alpha1", "Rollout", "web", "rollout-web")


def found(
    given_pods: list[Pod], cluster: Cluster, status: PodUnavailableBudgetStatus | None = None, **spec: Any
) -> Numbers:
    made = budget(status, **(spec or {"maxUnavailable": 1}))
    return numbers(counted(made, groups(given_pods), cluster), made.status)


def several(count: int, **fields: Any) -> list[Pod]:
    return [pod(f"web-{number}", **fields) for number in range(count)]


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        ({"maxUnavailable": 0}, 10),
        ({"maxUnavailable": 3}, 7),
        ({"maxUnavailable": 11}, 0),
        ({"maxUnavailable": "0%"}, 10),
        ({"maxUnavailable": "25%"}, 7),
        ({"maxUnavailable": "21%"}, 7),
        ({"maxUnavailable": "100%"}, 0),
        ({"minAvailable": 0}, 0),
        ({"minAvailable": 11}, 10),
        ({"minAvailable": "75%"}, 8),
        ({"minAvailable": "100%"}, 10),
    ],
)
def test_desired_available_rounds_shares_up_and_stays_between_zero_and_the_total(spec: Any, wanted: int) -> None:
    assert desired(budget(**spec).spec, 10) == wanted


@given(
    total=st.integers(0, 1000), amount=st.integers(0, 2000) | st.integers(0, 100).map("{}%".format), least=st.booleans()
)
def test_desired_available_is_never_outside_zero_and_total(total: int, amount: int | str, least: bool) -> None:
    spec = budget(**{"minAvailable" if least else "maxUnavailable": amount}).spec
    assert 0 <= desired(spec, total) <= total


@pytest.mark.parametrize(
    ("fields", "available"),
    [
        ({}, True),
        ({"ready": False}, False),
        ({"phase": "Pending"}, False),
        ({"phase": "Succeeded"}, False),
        ({"deleting": True}, False),
        ({"labels": {**LABELS, "unavailable-pod.kruise.io/drain": ""}}, False),
        ({"labels": {**LABELS, "apps.kruise.io/specified-delete": "true"}}, False),
        ({"conditions": {"InPlaceUpdateReady": "False"}}, False),
        ({"conditions": {"InPlaceUpdateReady": "True"}}, True),
        ({"conditions": {"DisruptionTarget": "True"}}, True),
    ],
)
def test_pod_is_available_if_it_is_ready_and_nothing_takes_it_out_of_service(fields: Any, available: bool) -> None:
    assert found([pod(**fields)], web(2), maxUnavailable=1).current == int(available)


def test_records_make_pods_unavailable_and_surplus_pods_raise_what_is_allowed() -> None:
    record = DisruptionRecord("web-1", Operation.DELETE, "2027-01-15T08:00:00Z")
    status = PodUnavailableBudgetStatus(
        disrupted_pods={"uid-web-1": record, "uid-of-another-pod": record}, unavailable_pods={"uid-web-2": record}
    )
    assert found(several(5), web(5), status) == Numbers(5, 4, 3)
    assert found(several(7), web(5)).allowed == 3
    assert found(several(3), web(5)).allowed == 0


def test_total_is_that_of_the_deployment_not_of_its_replica_sets() -> None:
    cluster = web(4)
    old = Owner("apps/v1", "ReplicaSet", "web-old", "set-old")
    cluster.objects["set-old"] = builders.scaled(old, 3, above=DEPLOYMENT)
    cluster.objects["set-web"] = builders.scaled(SET, 2, above=DEPLOYMENT)
    assert found([*several(2), pod("old-1", owner=old)], cluster) == Numbers(4, 3, 3)


def test_total_of_an_unknown_kind_is_the_sum_of_its_sets_and_otherwise_the_number_of_pods() -> None:
    sets = Cluster(builders.scaled(SET, 4, above=ROLLOUT))
    assert found(several(3), sets).total == 4
    assert found(several(3, owner=ROLLOUT), Cluster()).total == 3
    assert found(several(3), Cluster(builders.scaled(SET, 0, above=ROLLOUT))) == Numbers(0, 0, 0)


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        ({"maxUnavailable": 1}, Numbers(0, 0, 0)),
        ({"minAvailable": "50%"}, Numbers(0, 0, 0)),
        ({"minAvailable": 2}, Numbers(3, 2, 3)),
        ({"maxUnavailable": 1, "protectTotalReplicas": 5}, Numbers(5, 4, 3)),
        ({"minAvailable": "50%", "protectTotalReplicas": 5}, Numbers(5, 3, 3)),
    ],
)
def test_pods_without_a_controller_count_only_if_the_budget_tells_how_many(spec: Any, wanted: Numbers) -> None:
    assert found(several(3, owner=None), Cluster(), **spec) == wanted


def test_total_of_a_workload_has_precedence_over_protect_total_replicas() -> None:
    assert found(several(3), web(4), maxUnavailable=1, protectTotalReplicas=50) == Numbers(4, 3, 3)


@pytest.mark.parametrize(
    ("spec", "total"), [({"minAvailable": 2}, 5), ({"maxUnavailable": 1, "protectTotalReplicas": 9}, 3)]
)
def test_pods_without_a_controller_beside_a_workload_raise_the_total_if_a_number_has_to_be_available(
    spec: Any, total: int
) -> None:
    bare = [pod(f"bare-{number}", owner=None) for number in range(2)]
    assert found([*several(3), *bare], web(3), **spec).total == total


def test_total_of_a_target_is_that_of_its_workload_if_it_has_pods() -> None:
    cluster = web(4)
    cluster.objects["set-web"] = builders.scaled(SET, 2, above=DEPLOYMENT)
    ref = {**TARGET, "kind": "ReplicaSet", "name": SET.name}
    assert found(several(2), cluster, targetRef=ref, maxUnavailable=1).total == 4


def test_pods_that_have_ended_do_not_count_into_the_total() -> None:
    ended = [pod(f"web-{number}", owner=ROLLOUT, phase="Succeeded") for number in range(2)]
    assert found([*ended, pod("web-3", owner=ROLLOUT)], Cluster()).total == 1


def test_change_in_place_alone_takes_its_pod_out() -> None:
    record = DisruptionRecord("web-1", Operation.RESTART, "2027-01-15T08:00:00Z")
    status = PodUnavailableBudgetStatus(unavailable_pods={"uid-web-1": record})
    assert found(several(3), web(3), status).current == 2


def test_api_group_is_the_part_before_the_version() -> None:
    assert [GroupKind.of(each, "Pod").group for each in ("v1", "apps/v1", "")] == ["", "apps", ""]


@pytest.mark.parametrize(
    "cluster",
    [
        web(0),
        web(5, deleting=True),
        Cluster(builders.scaled(SET, 3, above=DEPLOYMENT, deleting=True), builders.scaled(DEPLOYMENT, 3)),
        Cluster(builders.scaled(SET, 3, above=DEPLOYMENT), gone=["deployment-web"]),
        Cluster(gone=["set-web"]),
        Cluster(builders.scaled(SET, 0)),
    ],
)
def test_pods_of_a_workload_that_ends_do_not_count(cluster: Cluster) -> None:
    assert found(several(3), cluster, maxUnavailable=0, protectTotalReplicas=50).current == 0


def test_owner_that_is_not_cached_has_to_be_read_live() -> None:
    made = budget(maxUnavailable=1)
    assert counted(made, groups(several(2)), Cluster()).unread == (SET,)
    assert counted(made, groups(several(2)), Cluster(builders.scaled(SET, 1, above=DEPLOYMENT))).unread == (DEPLOYMENT,)
    targeted = budget(targetRef=TARGET, maxUnavailable=1)
    assert counted(targeted, groups(several(2)), Cluster()).unread == (SET,)


@pytest.mark.parametrize(
    "fields",
    [
        {"annotations": {"pub.kruise.io/no-protect": "t"}},
        {"labels": {**LABELS, "tier": "free"}},
        {"labels": {"app": "other"}},
    ],
)
def test_pods_that_opted_out_or_are_ignored_or_not_selected_do_not_count(fields: Any) -> None:
    spec = {"maxUnavailable": 1, "ignoredPodSelector": {"matchLabels": {"tier": "free"}}}
    assert found([*several(2), pod("other", **fields)], web(3), **spec) == Numbers(3, 2, 2)
    other = pod("other", annotations={"pub.kruise.io/no-protect": "yes"})
    assert found([*several(2), other], web(3), **spec).current == 3, "Go's ParseBool does not know `yes`"


def test_target_ref_covers_pods_by_their_owners_in_any_version_of_the_group() -> None:
    for ref in (TARGET, {**TARGET, "apiVersion": "apps/v1beta1"}, {**TARGET, "kind": "ReplicaSet", "name": "web-5d9"}):
        assert found(several(2), web(3), targetRef=ref, maxUnavailable=1) == Numbers(3, 2, 2)
    for ref in ({**TARGET, "apiVersion": "example.com/v1"}, {**TARGET, "name": "other"}):
        assert found(several(2), web(3), targetRef=ref, maxUnavailable=1).current == 0
    assert found([], web(3), targetRef=TARGET, maxUnavailable=1) == Numbers(3, 2, 0), "its pods are not there yet"


def test_projection_of_pods_shares_labels_and_names_and_is_small() -> None:
    one, two = pod("web-1"), pod("web-2")
    assert one.labels is two.labels
    assert one.owner is two.owner
    assert one.container_ids() == {"web": "0123456789ab"}
    assert (one.metadata.namespace, one.resource_version, one.uid) == (NAMESPACE, "1", "uid-web-1")


def test_number_of_pods_is_the_one_that_the_kind_of_workload_tells() -> None:
    for adapter in ADAPTERS:
        wire: dict[str, Any] = {
            "metadata": {"name": "agent", "namespace": NAMESPACE, "uid": "u", "resourceVersion": "7"},
            "spec": {"replicas": 9, "selector": {"matchLabels": LABELS}, "template": {"metadata": {}, "spec": {}}},
        }
        if adapter.resource.kind == "DaemonSet":
            del wire["spec"]["replicas"]
            wire["status"] = {"desiredNumberScheduled": 4}
        data = msgspec.json.encode(wire)
        read = scaled.Reader(adapter.resource)(data)
        assert read.replicas == adapter.read(data).replicas
    assert (read.replicas, read.uid, read.resource_version, read.selector.match_labels) == (9, "u", "7", LABELS)


def test_workload_that_names_no_number_of_pods_has_one_and_a_deletion_shows() -> None:
    metadata = {"name": "web", "namespace": NAMESPACE, "uid": "u", "resourceVersion": "7"}
    read = scaled.Reader(ADAPTERS[0].resource)
    found = read(msgspec.json.encode({"metadata": metadata}))
    assert (found.replicas, found.deleting) == (1, False)
    assert read(msgspec.json.encode({"metadata": metadata | {"deletionTimestamp": "2027-01-15T08:00:00Z"}})).deleting


def test_pod_without_optional_fields_is_read() -> None:
    read = pods.read(b'{"metadata": {"name": "a", "namespace": "b"}}')
    assert (read.available, read.judged, read.owner.uid, read.labels) == (False, True, "", {})
