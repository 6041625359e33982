"""Releases in steps of all kinds of workloads."""

import pytest

from altershield.api.annotations import ROLLOUT
from tests.e2e.held_kinds import KINDS, apply, of_version, steps, succeed
from tests.e2e.held_releases import without_template
from tests.e2e.kinds import DAEMON_SET, ORDERED, Kind
from tests.e2e.sleep import VERSION
from tests.support.kubectl import Kubectl
from tests.support.polling import eventually


@pytest.mark.parametrize("kind", KINDS)
def test_release_goes_to_one_pod_then_to_all(kubectl: Kubectl, kind: Kind) -> None:
    succeed(kubectl, kind, apply(kubectl, kind, "busybox"))
    before = kubectl.json(kind.resource, "app")
    steps(kubectl, kind, 1)
    version = apply(kubectl, kind, "busybox:2")
    name = kind.change_workload_name("app", version)
    eventually(lambda: kubectl.exists("changeworkload", name), name)
    kubectl.wait(f"changeworkload/{name}", "jsonpath={.status.rollout.phase}=Soaking")
    assert len(of_version(kubectl, version)) == 1
    found = succeed(kubectl, kind, version)
    replicas = len(kubectl.json("pods")["items"])
    assert [each["pods"] for each in found["passedSteps"]] == [1, replicas]
    after = kubectl.json(kind.resource, "app")
    assert without_template(after) == without_template(before)
    assert ROLLOUT not in after["metadata"]["annotations"]


def test_highest_ordinal_is_first_and_the_own_partition_stays(kubectl: Kubectl) -> None:
    own = {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}}
    succeed(kubectl, ORDERED, apply(kubectl, ORDERED, "busybox", **own))
    steps(kubectl, ORDERED, 1, 2, soak=3)
    version = apply(kubectl, ORDERED, "busybox:2", **own)
    name = ORDERED.change_workload_name("app", version)
    eventually(lambda: kubectl.exists("changeworkload", name), name)
    kubectl.wait(f"changeworkload/{name}", "jsonpath={.status.rollout.phase}=Soaking")
    assert of_version(kubectl, version) == ["app-2"]
    succeed(kubectl, ORDERED, version)
    assert of_version(kubectl, version) == ["app-1", "app-2"]
    assert kubectl.json("statefulset", "app")["spec"]["updateStrategy"]["rollingUpdate"] == {"partition": 1}


@pytest.mark.parametrize("kind", [ORDERED, DAEMON_SET], ids=lambda kind: kind.id)
def test_pod_that_does_not_come_up_is_taken_back(kubectl: Kubectl, kind: Kind) -> None:
    base = apply(kubectl, kind, "busybox")
    succeed(kubectl, kind, base)
    before = kubectl.json(kind.resource, "app")
    steps(kubectl, kind, 1, soak=600)
    apply(kubectl, kind, "crash:1")
    eventually(lambda: kubectl.labels(kind.resource, "app")[VERSION] == base, "the rollback")
    replicas = len(kubectl.json("pods")["items"])
    eventually(lambda: len(of_version(kubectl, base)) == replicas, "the base everywhere")
    assert without_template(kubectl.json(kind.resource, "app")) == without_template(before)
