"""The pods of other versions with which the new pods are compared."""

from collections.abc import AsyncIterator

import msgspec
import pytest

from altershield.api.change_workload import ChangeWorkload, ChangeWorkloadStatus, SourceRef
from altershield.api.check_specs import CheckSpec, Compare, HealthCheck, PrometheusCheck
from altershield.workloads.pods import Pod
from reconciler.batches.old_pods import needs_old_pods, old_pods
from reconciler.cluster.caches import Caches
from tests.unit.altershield.releases import builders
from tests.unit.altershield.releases.builders import V1, V2
from tests.unit.reconciler.filled import empty_caches, namespace, pod, put, replica_set


@pytest.fixture
async def caches() -> AsyncIterator[Caches]:
    async with empty_caches() as made:
        put(made, namespace())
        yield made


def release(kind: str = "Deployment") -> ChangeWorkload:
    status = ChangeWorkloadStatus(source=SourceRef("ReplicaSet", "sleep-1", "sleep-1"))
    return builders.release(V1, status, kind=kind)


def of(version: str, found: Pod) -> Pod:
    return msgspec.structs.replace(found, version=version)


async def test_replica_sets_with_pods_of_other_versions_give_the_names_of_a_deployment(caches: Caches) -> None:
    workload = builders.workload()
    uid = workload.metadata.uid
    sets = [replica_set(name=f"sleep-{number}", owner={"uid": uid}) for number in (1, 2, 3)]
    put(caches, workload, *sets, of(V1, pod(name="sleep-1-a")))
    assert old_pods(caches, release()) == ()
    put(caches, of(V2, pod(name="sleep-2-a", owner={"name": "sleep-2", "uid": "sleep-2"})))
    assert old_pods(caches, release()) == ("sleep-2-[a-z0-9]{5}",)


async def test_pods_of_other_versions_are_named_if_the_workload_controls_them_itself(caches: Caches) -> None:
    workload = builders.workload(kind="StatefulSet")
    owner = {"kind": "StatefulSet", "name": "sleep", "uid": workload.metadata.uid}
    put(caches, workload)
    for number, version in enumerate((V2, V2, V1)):
        put(caches, of(version, pod(name=f"sleep-{number}", owner=owner)))
    ended = msgspec.structs.replace(of(V2, pod(name="sleep-3", owner=owner)), ended=True)
    put(caches, ended)
    assert old_pods(caches, release("StatefulSet")) == ("sleep-0", "sleep-1")


async def test_workload_that_does_not_exist_has_no_old_pods(caches: Caches) -> None:
    assert old_pods(caches, release()) == ()


@pytest.mark.parametrize(
    ("spec", "needed"),
    [
        (CheckSpec("a", health=HealthCheck()), False),
        (CheckSpec("a", prometheus=PrometheusCheck("", "up")), False),
        (CheckSpec("a", prometheus=PrometheusCheck("", 'up{pod=~"$old_pods"}')), True),
        (CheckSpec("a", prometheus=PrometheusCheck("", compare=Compare("up"))), True),
    ],
)
def test_old_pods_are_looked_for_only_if_a_query_names_them(spec: CheckSpec, needed: bool) -> None:
    assert needs_old_pods(spec) == needed
