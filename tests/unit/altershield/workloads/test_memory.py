"""The projections that caches keep by the hundred thousand: what they share and pack, and that nothing is lost."""

from typing import Any

import msgspec
import pytest

from altershield.api import labels
from altershield.workloads import sets
from altershield.workloads.sets import Set

from .objects import pod

UID, LABEL = "0f1c9a52-0d4e-4a43-8a30-1f6f3a1f0c11", "0a" * 16


def replica_set(uid: str, version: str, label: str | None) -> Set:
    own: dict[str, Any] = {labels.VERSION: label} if label is not None else {}
    metadata = {"name": "web-1", "namespace": "shop", "uid": uid, "resourceVersion": version, "labels": own}
    return sets.read(msgspec.json.encode({"metadata": metadata}))


@pytest.mark.parametrize("uid", [UID, "00000000-0000-0000-0000-000000000000", UID.upper(), "web", ""])
@pytest.mark.parametrize("version", ["1", "4711", str(2**64 - 1), str(2**64), "007", "x1", ""])
@pytest.mark.parametrize("label", [LABEL, "0" * 32, "f" * 32, LABEL.upper(), "1", "", None])
def test_replica_set_has_the_texts_that_were_read(uid: str, version: str, label: str | None) -> None:
    found = replica_set(uid, version, label)
    assert (found.uid, found.resource_version, found.version) == (uid, version, label or "")
    assert found.metadata is found


def test_replica_set_of_a_usual_cluster_is_packed() -> None:
    for label in (LABEL, None):
        assert isinstance(replica_set(UID, "4711", label).identity, int)


@pytest.mark.parametrize(
    "ip", ["10.0.9.196", "0.0.0.1", "255.255.255.255", "10.1", "010.0.0.1", "fd00::1", "x\x00", ""]
)
def test_pod_has_the_address_that_was_read(ip: str) -> None:
    assert pod(status={"podIP": ip}).ip == ip


def test_address_of_ipv4_is_packed() -> None:
    assert isinstance(pod(status={"podIP": "10.0.9.196"}).packed_ip, int)


def test_pods_of_one_workload_share_equal_times() -> None:
    at = "2026-08-21T07:29:51Z"
    conditions = [{"type": kind, "status": "True", "lastTransitionTime": at} for kind in ("Ready", "PodScheduled")]
    first, second = (
        pod(
            name=name,
            creationTimestamp="2026-08-21T07:29:50Z",
            labels={labels.OPERATE_FINISHED: "1787297391"},
            status={"phase": "Running", "conditions": conditions},
        )
        for name in ("web-1-a", "web-1-b")
    )
    assert first.ready_at == first.scheduled_at == first.metadata.created + 1
    assert first.ready_at is first.scheduled_at is second.ready_at
    assert first.metadata.created is second.metadata.created
    assert first.finished is second.finished
