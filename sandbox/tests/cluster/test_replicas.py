"""The pods that a ReplicaSet deletes first, and its status."""

from typing import Any

import pytest

from kube_sandbox.cluster.kinds import Pod
from kube_sandbox.cluster.replica_sets import replicas
from support.objects import T0, pod, replica_set

YOUNG = {"metadata": {"creationTimestamp": "2025-12-31T23:59:59Z"}}
OLD = {"metadata": {"creationTimestamp": "2025-01-01T00:00:00Z"}}
READY = {"phase": "Running", "ready_since": "2025-12-31T00:00:00Z"}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"node": ""}, {}),
        ({}, {"phase": "Running"}),
        ({"phase": "Running"}, READY),
        (
            {**READY, "metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "-5"}}},
            READY,
        ),
        ({**READY, "node": "crowded"}, {**READY, "node": "calm"}),
        ({**READY, "ready_since": "2025-12-31T23:59:00Z"}, READY),
        ({"phase": "Running", "status": {"containerStatuses": [{"restartCount": 3}]}}, {"phase": "Running"}),
        (YOUNG, OLD),
    ],
    ids=["unscheduled", "pending", "not ready", "cheap", "crowded", "ready for a shorter time", "restarted", "young"],
)  # fmt: skip
def test_pod_with_the_lowest_rank_is_deleted_first(first: dict[str, Any], second: dict[str, Any]) -> None:
    one = pod("one", **first)
    two = pod("two", **second)
    related = [one, two, pod("neighbour", node="crowded")]
    for order in ([one, two], [two, one]):
        assert replicas.to_delete(order, related, 1, T0) == [one]


def status(pods: list[Pod], failure: str | None = None, **rs: Any) -> Any:
    return replicas.status(replica_set("rs", 3, **rs), pods, 0, failure, T0)


def test_status_counts_labeled_ready_and_available_pods() -> None:
    stray = pod("stray", metadata={"labels": {"app": "sleep"}})
    full = pod("full", metadata={"labels": {"app": "sleep", "pod-template-hash": "rs"}}, **READY)
    found = status([stray, full])
    assert (found.replicas, found.fully_labeled_replicas, found.ready_replicas, found.available_replicas) == (
        2, 1, 1, 1,
    )  # fmt: skip


@pytest.mark.parametrize(("min_ready", "available"), [(0, 1), (10, 1), (11, 0)])
def test_pod_is_available_after_min_ready_seconds(min_ready: int, available: int) -> None:
    young = pod(phase="Running", ready_since="2025-12-31T23:59:50Z")
    assert status([young], minReadySeconds=min_ready).available_replicas == available


def test_failed_create_sets_replica_failure_until_a_create_succeeds() -> None:
    failed = status([], "forbidden")
    assert [(one.type, one.reason, one.message) for one in failed.conditions] == [
        ("ReplicaFailure", "FailedCreate", "forbidden")
    ]
    old = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "first"}
    assert status([], "again", status={"conditions": [old]}).conditions[0].message == "first"
    assert status([], None, status={"conditions": [old]}).conditions == ()
