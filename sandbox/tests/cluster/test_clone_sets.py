"""The steps and the status of a CloneSet, and updates in place."""

from typing import Any

import pytest
from msgspec.structs import replace

from kube_sandbox.cluster.clone_sets import pods as clone_pods
from kube_sandbox.cluster.clone_sets import progress, rollout
from kube_sandbox.cluster.clone_sets.rollout import Plan
from kube_sandbox.cluster.history import Revisions
from kube_sandbox.cluster.kinds import Pod
from kube_sandbox.cluster.workload_kinds import CloneSet
from support.objects import T0, pod, template
from support.workloads import clone_set, replica

REVISIONS = Revisions("web-old", "web-new")
NOW = T0 + 60


def some(count: int, revision: str = "web-old", *, up: bool = True, **labels: str) -> list[Pod]:
    return [
        replica(f"{revision}-{number}{'' if up else '-down'}", revision, up=up, labels=labels)
        for number in range(count)
    ]


def plan(subject: CloneSet, *pods: Pod) -> Plan:
    return rollout.plan(subject, pods, REVISIONS, NOW)


def names(pods: Any) -> list[str]:
    return sorted(pod.metadata.name for pod in pods)


def test_missing_pods_are_created_from_the_old_revision_up_to_the_partition() -> None:
    assert plan(clone_set(5, partition=2))[:2] == (2, 3)
    assert plan(clone_set(5, partition=2), *some(2))[:2] == (0, 3)
    assert plan(clone_set(5), *some(1, "web-new"))[:2] == (0, 4)


@pytest.mark.parametrize(
    ("partition", "replicas", "kept"),
    [(0, 5, 0), (2, 5, 2), (9, 5, 5), ("40%", 5, 2), ("41%", 5, 3), ("99%", 5, 4), ("100%", 5, 5), ("1%", 1, 1)],
)
def test_partition_gives_the_number_of_pods_that_keep_the_old_template(
    partition: int | str, replicas: int, kept: int
) -> None:
    assert rollout.partition(clone_set(replicas, partition=partition)) == kept


def test_update_stays_within_partition_and_max_unavailable() -> None:
    assert len(plan(clone_set(5, maxUnavailable=2), *some(5)).update) == 2
    assert len(plan(clone_set(5, maxUnavailable=2, partition=4), *some(5)).update) == 1
    assert not plan(clone_set(5, partition=5), *some(5)).update
    assert not plan(clone_set(5, paused=True), *some(5)).update
    assert len(plan(clone_set(5), *some(5)).update) == 1  # 20%


def test_unavailable_new_pod_stops_the_update() -> None:
    assert not plan(clone_set(5, maxUnavailable=1), *some(4), *some(1, "web-new", up=False)).update


def test_unavailable_old_pods_are_updated_first() -> None:
    going = plan(clone_set(3, maxUnavailable=1), *some(2), *some(1, up=False)).update
    assert names(going) == ["web-old-0-down"]


def test_max_surge_creates_new_pods_before_old_ones_are_deleted() -> None:
    subject = clone_set(3, maxSurge=1, maxUnavailable=0)
    assert plan(subject, *some(3))[:2] == (0, 1)
    marked = some(1, **{clone_pods.SPECIFIED_DELETE: "true"})
    three = some(3)[1:]
    assert names(plan(subject, *marked, *three, *some(1, "web-new")).delete) == ["web-old-0"]


def test_pods_to_delete_are_deleted_and_replaced() -> None:
    subject = clone_set(3, scale={"podsToDelete": ["web-new-1"]}, maxUnavailable=1)
    assert names(plan(subject, *some(3, "web-new")).delete) == ["web-new-1"]
    assert plan(subject, *some(1, "web-new"), *some(3, "web-new")[2:])[:2] == (0, 1)
    assert rollout.leftover_names(subject, some(1, "web-new")) == []
    assert rollout.leftover_names(subject, some(3, "web-new")) is None


def test_scale_down_deletes_pods_within_max_unavailable() -> None:
    assert len(plan(clone_set(2, maxUnavailable=5), *some(5, "web-new")).delete) == 3
    assert names(plan(clone_set(2), *some(2, "web-new"), *some(1, "web-new", up=False)).delete) == ["web-new-0-down"]


def test_scale_up_is_limited_by_max_unavailable() -> None:
    limited = plan(clone_set(5, scale={"maxUnavailable": 2}))
    assert (limited.create_update, limited.limited) == (2, 2)


def test_status_counts_updated_pods_separately() -> None:
    pods = [*some(2), *some(1, "web-new"), *some(1, "web-new", up=False)]
    status = rollout.status(clone_set(4, partition="25%"), pods, REVISIONS, 0, None, NOW)
    assert (status.replicas, status.ready_replicas, status.available_replicas) == (4, 3, 3)
    assert (status.updated_replicas, status.updated_ready_replicas, status.updated_available_replicas) == (2, 1, 1)
    assert (status.expected_updated_replicas, status.label_selector) == (3, "app=sleep")
    assert status.current_revision == "web-old"
    complete = rollout.status(clone_set(1), some(1, "web-new", up=False), REVISIONS, 0, None, NOW)
    assert complete.current_revision == "web-new"


def test_images_labels_and_annotations_change_in_place_and_other_fields_do_not() -> None:
    old, new = template("app:1", version="1"), template("app:2", version="2")
    change = clone_pods.in_place_update(old, new)
    assert change is not None
    assert (change.images, change.labels) == ({"sleep": "app:2"}, {"version": "2"})
    new["spec"]["containers"][0]["env"] = [{"name": "A", "value": "1"}]
    assert clone_pods.in_place_update(old, new) is None
    assert clone_pods.in_place_update(None, new) is None


def test_pod_updated_in_place_becomes_ready_after_its_containers_run_the_new_image() -> None:
    gate = [{"conditionType": clone_pods.UPDATE_READY}]
    running = [{"name": "sleep", "image": "docker.io/library/app:1", "imageID": "one", "ready": True}]
    subject = pod(image="app:1", readinessGates=gate, status={"containerStatuses": running})
    change = clone_pods.in_place_update(template("app:1"), template("app:2"))
    assert change is not None
    patch = clone_pods.update_patch(subject, change, "web-new", NOW)
    assert patch["metadata"]["labels"] == {
        "controller-revision-hash": "web-new",
        "pod-template-hash": "new",
        clone_pods.LIFECYCLE_LABEL: "Updating",
    }
    metadata = {"annotations": patch["metadata"]["annotations"]}
    changed = pod(image="app:2", readinessGates=gate, metadata=metadata, status={"containerStatuses": running})
    assert clone_pods.finish_patch(changed, NOW) is None
    renewed = [{**running[0], "image": "docker.io/library/app:2", "imageID": "two"}]
    done = pod(image="app:2", readinessGates=gate, metadata=metadata, status={"containerStatuses": renewed})
    finish = clone_pods.finish_patch(done, NOW)
    assert finish is not None
    assert finish["status"]["conditions"][0]["status"] == "True"


@pytest.mark.parametrize(
    ("subject", "pods", "seconds", "reason"),
    [
        ({}, some(2, "web-new"), 0, progress.AVAILABLE),
        ({"paused": True}, some(2), 0, progress.PAUSED),
        ({"partition": 1}, [*some(1), *some(1, "web-new")], 0, progress.PARTITION_AVAILABLE),
        ({}, some(2), 29, progress.UPDATED),
        ({}, some(2), 31, progress.TIMED_OUT),
    ],
)
def test_condition_progressing_exists_only_with_a_progress_deadline(
    subject: dict[str, Any], pods: list[Pod], seconds: int, reason: str
) -> None:
    without_deadline = clone_set(2, **subject)
    assert not rollout.status(without_deadline, pods, REVISIONS, 0, None, NOW).conditions
    spec = replace(without_deadline.spec, progress_deadline_seconds=30)
    with_deadline = replace(without_deadline, spec=spec)
    first = rollout.status(with_deadline, pods, REVISIONS, 0, None, NOW)
    then = rollout.status(replace(with_deadline, status=first), pods, REVISIONS, 0, None, NOW + seconds)
    (condition,) = then.conditions
    assert (condition.reason, condition.status) == (reason, "False" if reason == progress.TIMED_OUT else "True")
