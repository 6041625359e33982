"""The projection of a pod, and the groups of pods of a namespace."""

import json

import pytest

from altershield.budgets import pods
from altershield.budgets.index import PodIndex
from kube_base.times import rfc3339
from tests.unit.altershield.budgets.builders import DEPLOYMENT, LABELS, NAMESPACE, NOW, SET, pod, wire


def names(index: PodIndex) -> list[list[str]]:
    """The pods of each group."""
    return sorted(sorted(each.name for each in group.pods.values()) for group in index.groups(NAMESPACE))


def test_owner_is_the_controller_and_no_other_owner() -> None:
    made = wire()
    other = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "x"}
    made["metadata"]["ownerReferences"].insert(0, other)
    assert pods.read(json.dumps(made).encode()).owner == SET
    made["metadata"]["ownerReferences"] = [other]
    assert pods.read(json.dumps(made).encode()).owner.uid == ""


def test_containers_that_restart_beside_the_others_have_their_ids_too() -> None:
    made = wire()
    made["status"]["initContainerStatuses"] = [{"name": "proxy", "containerID": "containerd://ffff"}]
    found = pods.read(json.dumps(made).encode())
    assert found.container_ids() == {"proxy": "ffff", "web": "0123456789ab"}


def test_pod_was_taken_at_its_disruption_or_else_when_it_was_not_ready_any_more() -> None:
    made = wire(phase="Failed", reason="Evicted", disruption="TerminationByKubelet", at=NOW)
    ready, disruption = made["status"]["conditions"]
    ready["lastTransitionTime"] = rfc3339(NOW - 60)
    assert pods.read(json.dumps(made).encode()).taken_at == NOW
    made["status"]["conditions"].remove(disruption)
    assert pods.read(json.dumps(made).encode()).taken_at == NOW - 60


def test_pod_that_is_not_stored_yet_has_no_version() -> None:
    found = pods.read(b'{"metadata": {"name": "web-1"}}')
    assert (found.packed_version, found.version) == ("", 0)


def test_equal_labels_are_shared_in_whatever_order_they_come() -> None:
    one, two = pod("web-1", labels={"app": "web", "tier": "x"}), pod("web-2", labels={"tier": "x", "app": "web"})
    assert one.labels is two.labels


def test_very_many_labels_are_not_all_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pods, "_labels", {})
    monkeypatch.setattr(pods, "_MAX_LABELS", 10)
    for number in range(25):
        pod(labels={"number": str(number)})
        assert len(pods._labels) <= 10


def test_changed_pod_is_in_one_group() -> None:
    old, new = pod("web-1"), pod("web-1", labels={**LABELS, "tier": "x"}, version=2)
    index = PodIndex([old, pod("web-2")])
    index.put(old, new)
    assert names(index) == [["web-1"], ["web-2"]]
    adopted = pod("web-1", labels={**LABELS, "tier": "x"}, owner=DEPLOYMENT, version=3)
    index.put(new, adopted)
    assert names(index) == [["web-1"], ["web-2"]]


def test_pod_that_replaces_another_one_of_its_name_takes_its_place() -> None:
    old, new = pod("web-1"), pod("web-1", uid="other", version=2)
    index = PodIndex([old])
    index.put(old, new)
    (group,) = index.groups(NAMESPACE)
    assert list(group.pods.values()) == [new]


def test_groups_of_deleted_pods_are_forgotten() -> None:
    one, two = pod("web-1"), pod("web-2", labels={"app": "other"})
    index = PodIndex([one, two])
    index.put(one, None)
    assert names(index) == [["web-2"]]
    index.put(two, None)
    assert not index.groups(NAMESPACE)
    assert not index._groups


def test_each_event_of_a_namespace_is_a_change_also_a_deletion() -> None:
    index = PodIndex([pod("web-1")])
    assert (index.changes(NAMESPACE), index.changes("other")) == (1, 0)
    index.put(pod("web-1"), None)
    assert index.changes(NAMESPACE) == 2
