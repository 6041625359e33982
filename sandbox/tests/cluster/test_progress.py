"""The status and conditions of a Deployment."""

from typing import Any

import pytest

from kube_sandbox.cluster.deployments import progress
from kube_sandbox.cluster.kinds import Condition, DeploymentStatus, find
from support.objects import T0, deployment, replica_set


def condition(reason: str, status: str = "True", seconds_ago: int = 0) -> dict[str, Any]:
    at = progress.rfc3339(T0 - seconds_ago)
    return {
        "type": "Progressing",
        "status": status,
        "reason": reason,
        "message": "before",
        "lastUpdateTime": at,
        "lastTransitionTime": at,
    }


def progressing(status: DeploymentStatus) -> Condition:
    found = find(status.conditions, "Progressing")
    assert found is not None
    return found


def test_status_counts_are_the_sums_of_the_replica_sets() -> None:
    status = progress.counted(
        deployment(5), (), replica_set("new", 3, available=1), [replica_set("old", 4, available=4)], T0
    )
    assert (status.replicas, status.updated_replicas, status.ready_replicas) == (7, 3, 5)
    assert (status.available_replicas, status.unavailable_replicas) == (5, 2)
    assert status.observed_generation == 1


@pytest.mark.parametrize(("available", "verdict"), [(4, "True"), (3, "False")])
def test_available_is_true_if_all_but_max_unavailable_pods_are_available(available: int, verdict: str) -> None:
    status = progress.counted(deployment(5), (), replica_set("new", 5, available=available), [], T0)
    found = find(status.conditions, "Available")
    assert found is not None
    assert found.status == verdict


def test_complete_release_sets_new_replica_set_available_and_keeps_it() -> None:
    present = deployment(5, status={"conditions": [condition("ReplicaSetUpdated")]})
    new = replica_set("sleep-abc", 5)
    status = progress.progressed(present, present.status.conditions, new, [], T0)
    assert progressing(status).reason == "NewReplicaSetAvailable"
    assert progressing(status).message == 'ReplicaSet "sleep-abc" has successfully progressed.'
    later = deployment(5, status={"conditions": [condition("NewReplicaSetAvailable", seconds_ago=100)]})
    status = progress.progressed(later, later.status.conditions, replica_set("sleep-abc", 5, available=2), [], T0)
    assert progressing(status) == find(later.status.conditions, "Progressing")


def test_progress_renews_the_update_time_but_not_the_transition_time() -> None:
    present = deployment(5, status={"conditions": [condition("ReplicaSetUpdated", seconds_ago=30)]})
    status = progress.progressed(present, present.status.conditions, replica_set("new", 2), [], T0)
    assert progressing(status).last_update_time == progress.rfc3339(T0)
    assert progressing(status).last_transition_time == progress.rfc3339(T0 - 30)


@pytest.mark.parametrize(
    ("seconds_ago", "reason", "status"),
    [(9, "ReplicaSetUpdated", "True"), (11, "ProgressDeadlineExceeded", "False")],
)
def test_release_without_progress_exceeds_its_deadline(seconds_ago: int, reason: str, status: str) -> None:
    present = deployment(
        5,
        progressDeadlineSeconds=10,
        status={
            "replicas": 2,
            "updatedReplicas": 2,
            "conditions": [condition("ReplicaSetUpdated", seconds_ago=seconds_ago)],
        },
    )
    stuck = replica_set("sleep-abc", 2, available=0)
    found = progressing(progress.progressed(present, present.status.conditions, stuck, [], T0))
    assert (found.reason, found.status) == (reason, status)
    if status == "False":
        assert found.message == 'ReplicaSet "sleep-abc" has timed out progressing.'


def test_next_check_is_a_second_after_the_deadline() -> None:
    present = deployment(5, progressDeadlineSeconds=10)
    status = deployment(5, status={"conditions": [condition("ReplicaSetUpdated", seconds_ago=4)]}).status
    assert progress.next_check(present, status, T0) == 7
    done = deployment(5, status={"conditions": [condition("NewReplicaSetAvailable")]}).status
    assert progress.next_check(present, done, T0) is None


def test_status_without_deadline_has_no_condition_progressing() -> None:
    present = deployment(5, progressDeadlineSeconds=2**31 - 1, status={"conditions": [condition("ReplicaSetUpdated")]})
    status = progress.progressed(present, present.status.conditions, replica_set("new", 1), [], T0)
    assert find(status.conditions, "Progressing") is None


def test_pause_and_resume_set_the_reason_of_progressing() -> None:
    paused = deployment(5, paused=True, status={"conditions": [condition("ReplicaSetUpdated")]})
    status = progress.with_pause(paused, paused.status, T0)
    assert (progressing(status).reason, progressing(status).status) == ("DeploymentPaused", "Unknown")
    status = progress.with_pause(deployment(5), status, T0)
    assert progressing(status).reason == "DeploymentResumed"


def test_pause_keeps_an_exceeded_deadline() -> None:
    paused = deployment(5, paused=True, status={"conditions": [condition("ProgressDeadlineExceeded", "False")]})
    assert progress.with_pause(paused, paused.status, T0) == paused.status


def test_replica_failure_follows_the_replica_sets() -> None:
    failure = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "forbidden"}
    present = deployment(5)
    status = progress.progressed(present, (), replica_set("new", 0, status={"conditions": [failure]}), [], T0)
    found = find(status.conditions, "ReplicaFailure")
    assert found is not None
    assert (found.reason, found.message) == ("FailedCreate", "forbidden")
    status = progress.progressed(present, status.conditions, replica_set("new", 0), [], T0)
    assert find(status.conditions, "ReplicaFailure") is None
