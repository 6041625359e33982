"""The steps and the status of a StatefulSet."""

import pytest

from kube_sandbox.cluster.history import Revisions
from kube_sandbox.cluster.kinds import Pod
from kube_sandbox.cluster.stateful_sets import pods as stateful_pods
from kube_sandbox.cluster.stateful_sets import rollout
from kube_sandbox.cluster.workload_kinds import StatefulSet
from support.objects import T0, template
from support.workloads import member, stateful_set

REVISIONS = Revisions("old", "new")
NOW = T0 + 60


def steps(set_: StatefulSet, *pods: Pod, now: float = NOW) -> tuple[list[int], list[str]]:
    plan = rollout.plan(set_, pods, REVISIONS, now)
    return plan.create, [pod.metadata.name for pod in plan.delete]


def test_pods_are_created_one_after_the_other() -> None:
    assert steps(stateful_set(3)) == ([0], [])
    assert steps(stateful_set(3), member(0, up=False)) == ([], [])
    assert steps(stateful_set(3), member(0)) == ([1], [])


def test_next_pod_is_created_when_the_previous_one_is_available() -> None:
    assert steps(stateful_set(3, minReadySeconds=90), member(0)) == ([], [])
    assert steps(stateful_set(3, minReadySeconds=90), member(0), now=T0 + 90) == ([1], [])


def test_policy_parallel_creates_and_deletes_all_pods_at_once() -> None:
    assert steps(stateful_set(3, parallel=True)) == ([0, 1, 2], [])
    pods = [member(number, "new") for number in range(4)]
    assert steps(stateful_set(1, parallel=True), *pods) == ([], ["web-3", "web-2", "web-1"])


def test_scale_down_deletes_the_highest_ordinal_first() -> None:
    assert steps(stateful_set(1), *(member(number, "new") for number in range(3))) == ([], ["web-2"])


def test_ordinals_start_at_spec_ordinals_start() -> None:
    set_ = stateful_set(2, ordinals={"start": 5})
    assert steps(set_) == ([5], [])
    assert steps(set_, member(5, "new"), member(6, "new"), member(0, "new")) == ([], ["web-0"])


def test_update_starts_at_the_highest_ordinal_and_waits_for_each_pod() -> None:
    set_ = stateful_set(3)
    assert steps(set_, member(0), member(1), member(2)) == ([], ["web-2"])
    assert steps(set_, member(0), member(1), member(2, leaving=True)) == ([], [])
    assert steps(set_, member(0), member(1), member(2, "new", up=False)) == ([], [])
    assert steps(set_, member(0), member(1), member(2, "new")) == ([], ["web-1"])


def test_pods_below_the_partition_keep_the_old_template() -> None:
    set_ = stateful_set(3, partition=2)
    assert steps(set_, member(0), member(1), member(2)) == ([], ["web-2"])
    assert steps(set_, member(0), member(1), member(2, "new")) == ([], [])
    assert [rollout.is_of_current(set_, number) for number in range(3)] == [True, True, False]


def test_strategy_on_delete_updates_no_pod() -> None:
    set_ = stateful_set(2, updateStrategy={"type": "OnDelete"})
    assert steps(set_, member(0), member(1)) == ([], [])
    assert steps(set_, member(0)) == ([1], [])
    assert not rollout.is_of_current(set_, 1)


@pytest.mark.parametrize("parallel", [False, True], ids=["ordered", "parallel"])
def test_unready_pod_blocks_an_ordered_update_even_with_a_corrected_template(parallel: bool) -> None:
    """The unready pod has neither the current nor the update revision."""
    set_ = stateful_set(3, parallel=parallel)
    stuck = [member(0, "new"), member(1, "new"), member(2, "broken", up=False)]
    assert steps(set_, *stuck) == ([], ["web-2"] if parallel else [])
    assert steps(set_, *stuck[:2]) == ([2], [])


def test_ended_pod_is_deleted() -> None:
    ended = member(1, "new", up=False, phase="Failed")
    assert steps(stateful_set(2), member(0, "new"), ended) == ([], ["web-1"])


@pytest.mark.parametrize(
    ("wanted", "expected"), [(1, ["web-3"]), (2, ["web-3", "web-2"]), ("50%", ["web-3", "web-2"]), ("1%", ["web-3"])]
)
def test_max_unavailable_updates_several_pods_at_once(wanted: int | str, expected: list[str]) -> None:
    set_ = stateful_set(4, max_unavailable=wanted)
    assert steps(set_, *(member(number) for number in range(4))) == ([], expected)


def test_unavailable_old_pods_do_not_count_against_max_unavailable_in_parallel() -> None:
    set_ = stateful_set(3, max_unavailable=1, parallel=True)
    assert steps(set_, member(0, "new"), member(1, "new"), member(2, up=False)) == ([], ["web-2"])
    assert steps(set_, member(0), member(1), member(2, "new", up=False)) == ([], [])


def test_pod_without_identity_labels_is_labelled() -> None:
    bare = member(0, "new")
    del bare.metadata.labels[stateful_pods.INDEX_LABEL]
    plan = rollout.plan(stateful_set(1), [bare], REVISIONS, NOW)
    assert [pod.metadata.name for pod in plan.label] == ["web-0"]


def test_status_counts_pods_by_revision() -> None:
    pods = [member(0), member(1, "new", up=False), member(2, "new", leaving=True)]
    status = rollout.status(stateful_set(3), pods, REVISIONS, 0, NOW)
    assert (status.replicas, status.ready_replicas, status.available_replicas) == (3, 2, 2)
    assert (status.current_replicas, status.updated_replicas) == (1, 1)
    assert (status.current_revision, status.update_revision) == REVISIONS


def test_complete_update_makes_its_revision_the_current_one() -> None:
    pods = [member(number, "new") for number in range(3)]
    status = rollout.status(stateful_set(3), pods, REVISIONS, 0, NOW)
    assert (status.current_revision, status.current_replicas) == ("new", 3)
    partial = rollout.status(stateful_set(4), pods, REVISIONS, 0, NOW)
    assert partial.current_revision == "old"


def test_pod_has_its_own_name_labels_and_volume_claims() -> None:
    claim = {"metadata": {"name": "data", "labels": {"a": "b"}}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    set_ = stateful_set(1, serviceName="web", volumeClaimTemplates=[claim])
    made = stateful_pods.body(set_, 2, template(), "web-123")
    assert made["metadata"]["name"] == made["spec"]["hostname"] == "web-2"
    assert made["metadata"]["labels"] == {
        "app": "sleep",
        "apps.kubernetes.io/pod-index": "2",
        "statefulset.kubernetes.io/pod-name": "web-2",
        "controller-revision-hash": "web-123",
    }
    assert made["spec"]["subdomain"] == "web"
    assert made["spec"]["volumes"] == [{"name": "data", "persistentVolumeClaim": {"claimName": "data-web-2"}}]
    (kept,) = stateful_pods.claims(set_, 2)
    assert kept["metadata"]["name"] == "data-web-2"
    assert kept["metadata"]["labels"] == {"a": "b", "app": "sleep"}
