"""Which releases the metrics show, and that each end is counted once."""

from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from altershield.api import labels, names
from altershield.api.change_workload import ChangeWorkloadStatus, WorkloadState
from altershield.api.meta import Condition
from altershield.api.namespace import Namespace
from altershield.api.resources import CHANGE_PODS
from kube_base.access.client import Client
from kube_base.access.configuration import Configuration
from reconciler.cluster import release as projection
from reconciler.cluster.caches import Caches
from reconciler.releases.gauges import families
from reconciler.releases.metrics import ReleaseMetrics
from tests.fault.reconciler_cluster import running_cluster, version
from tests.support.workloads import BY_NAME, GROUP_KINDS
from tests.unit.altershield.releases.builders import NOW, V1, V2, release, workload

ENTERED = "altershield_release_entered_timestamp_seconds"
UNFINISHED = [state for state in WorkloadState if state not in (WorkloadState.SUCCESS, WorkloadState.FAILED)]
Labels = dict[str, str]


@pytest.fixture
async def caches() -> AsyncIterator[Caches]:
    """Caches of the empty governed namespace `default`."""
    async with Client(Configuration(host="https://127.0.0.1")) as client:
        caches = Caches(client, names.SYSTEM_NAMESPACE)
        governed = {"name": "default", "labels": {labels.GOVERNED: labels.GOVERNED_VALUE}, "resourceVersion": "1"}
        caches.namespaces.observe(msgspec.convert({"metadata": governed}, Namespace))
        yield caches


def put_release(
    caches: Caches, name: str, status: ChangeWorkloadStatus, present: str = V1, kind: str = "Deployment"
) -> None:
    """Put a workload at the version `present`, and the ChangeWorkload of its version V1."""
    caches.workloads[GROUP_KINDS[kind]].observe(workload(present, kind=kind, name=name))
    caches.releases.observe(projection.read(msgspec.json.encode(release(V1, status, kind=kind, name=name))))


def shown(caches: Caches, family: str = ENTERED) -> list[tuple[Labels, float]]:
    return [(s.labels, s.value) for metric in families(caches) for s in metric.samples if s.name == family]


def condition(type_: str, status: str, reason: str) -> tuple[Condition, ...]:
    return (Condition(type_, status, reason),)


@pytest.mark.parametrize("kind", sorted(BY_NAME))
@pytest.mark.parametrize("state", ["", *UNFINISHED])
async def test_unfinished_release_is_shown_with_its_state_and_the_time_it_entered_it(
    caches: Caches, state: str, kind: str
) -> None:
    status = ChangeWorkloadStatus(status=state, entry_time_unix=NOW + 5 if state else 0)
    put_release(caches, "sleep", status, kind=kind)

    expected = {
        "namespace": "default",
        "kind": kind.lower(),
        "workload": "sleep",
        "version": V1,
        "state": state or "Init",
        "by": "",
        "stalled": "",
    }
    assert shown(caches) == [(expected, NOW + 5 if state else NOW)]


async def test_rolled_back_version_is_shown_while_its_change_workload_exists(caches: Caches) -> None:
    rolled_back = condition("RolledBack", "True", "PodNotUp")
    put_release(caches, "sleep", ChangeWorkloadStatus(status="Failed", conditions=rolled_back), present=V2)

    assert [(series["state"], series["version"]) for series, _ in shown(caches)] == [("Failed", V1)]


@pytest.mark.parametrize(
    ("status", "present"),
    [
        (ChangeWorkloadStatus(status="Success"), V1),
        (ChangeWorkloadStatus(status="Suspend"), V2),  # a repair is under way
        (ChangeWorkloadStatus(status="Failed", conditions=condition("RolledBack", "False", "Superseded")), V2),
    ],
)
async def test_successful_replaced_and_superseded_releases_are_not_shown(
    caches: Caches, status: ChangeWorkloadStatus, present: str
) -> None:
    put_release(caches, "sleep", status, present)

    assert shown(caches) == []


async def test_releases_in_namespaces_that_are_not_governed_are_not_shown(caches: Caches) -> None:
    put_release(caches, "sleep", ChangeWorkloadStatus(status="Suspend"))
    assert shown(caches)
    no_longer = msgspec.convert({"metadata": {"name": "default", "resourceVersion": "2"}}, Namespace)
    caches.namespaces.observe(no_longer)

    assert shown(caches) == []


async def test_the_hundred_oldest_and_the_hundred_newest_releases_of_a_state_are_shown(caches: Caches) -> None:
    for number in range(230):
        put_release(caches, f"late-{number:03}", ChangeWorkloadStatus(status="Suspend", entry_time_unix=NOW - number))
    put_release(caches, "new", ChangeWorkloadStatus(status="Running", entry_time_unix=NOW))

    suspended = {series["workload"] for series, _ in shown(caches) if series["state"] == "Suspend"}
    assert suspended == {f"late-{number:03}" for number in (*range(100), *range(130, 230))}
    assert [series["workload"] for series, _ in shown(caches) if series["state"] == "Running"] == ["new"]
    counts = {series["state"]: value for series, value in shown(caches, "altershield_releases")}
    assert counts == {**dict.fromkeys(map(str, WorkloadState), 0), "Suspend": 230, "Running": 1}


@pytest.mark.parametrize("state", ["Unknown", "success", "x" * 1000, "\n"])
async def test_unknown_state_creates_no_series(caches: Caches, state: str) -> None:
    put_release(caches, "sleep", ChangeWorkloadStatus(status=state))

    assert {series["state"] for series, _ in shown(caches, "altershield_releases")} == set(map(str, WorkloadState))
    assert [series["state"] for series, _ in shown(caches)] == ["Init"]


@pytest.mark.parametrize(
    ("reason", "by"),
    [("FailedByPerson", "person"), ("FailedByServer", "server"), ("FailedByHealth", "health"), ("anything else", "")],
)
async def test_suspended_release_shows_who_gave_the_verdict(caches: Caches, reason: str, by: str) -> None:
    failed = condition("Verified", "False", reason)
    put_release(caches, "sleep", ChangeWorkloadStatus(status="Suspend", conditions=failed))

    assert [series["by"] for series, _ in shown(caches)] == [by]


async def test_stalled_release_shows_the_reason(caches: Caches) -> None:
    stalled = condition("Stalled", "True", "Unschedulable")
    put_release(caches, "sleep", ChangeWorkloadStatus(status="Running", conditions=stalled))
    put_release(caches, "fine", ChangeWorkloadStatus(status="Running", conditions=condition("Stalled", "False", "x")))

    assert {series["workload"]: series["stalled"] for series, _ in shown(caches)} == {
        "sleep": "Unschedulable",
        "fine": "",
    }


async def test_change_workload_of_a_deleted_workload_of_the_same_name_is_not_shown(caches: Caches) -> None:
    put_release(caches, "sleep", ChangeWorkloadStatus(status="Suspend"))
    same_name = workload(V1)
    recreated = msgspec.structs.replace(same_name.metadata, packed_uid="another", packed_version=2)
    caches.workloads[GROUP_KINDS["Deployment"]].observe(msgspec.structs.replace(same_name, metadata=recreated))

    assert shown(caches) == []


async def test_rollbacks_of_at_most_a_hundred_namespaces_have_series_of_their_own() -> None:
    registry = CollectorRegistry()
    metrics = ReleaseMetrics(registry)
    for number in range(130):
        metrics.rolled_back(f"team-{number:03}", "PodNotUp")
    metrics.rolled_back("team-000", "PodNotUp")

    assert value(registry, "rollbacks_total", namespace="team-000", reason="PodNotUp") == 2
    assert value(registry, "rollbacks_total", namespace="(other)", reason="PodNotUp") == 30
    assert registry.get_sample_value("altershield_rollbacks_total", {"namespace": "team-129"}) is None


def value(registry: CollectorRegistry, name: str, **labels: str) -> float:
    found = registry.get_sample_value(f"altershield_{name}", labels)
    assert found is not None, f"there is no series {name} {labels}"
    return found


async def test_metrics_count_releases_rollbacks_suspensions_and_verdicts(tmp_path: Path) -> None:
    async with running_cluster(tmp_path) as cluster:
        await cluster.go_to("shop")
        async with cluster.reconciler() as manager:
            registry = manager.metrics.registry
            await cluster.release(version("v1"))
            await cluster.until(lambda: ended(registry, success=1), "the first release's end")

            await cluster.release(version("v2"), image="nosuch")
            await cluster.until(lambda: ended(registry, rolled_back=1, success=2), "a rollback, and v1 again")
            assert value(registry, "rollbacks_total", namespace="shop", reason="PodNotUp") == 1
            await cluster.until_states(v1="Success", v2="Failed")

            await cluster.judge((await cluster.all(CHANGE_PODS))[0], "unpass")
            await cluster.until(lambda: ended(registry, rolled_back=1, success=2, suspended=1), "a suspension")
            await cluster.until(lambda: suspended_by(registry, "person"), "the verdict's author")
            await cluster.until(lambda: failed(registry, 1), "the verdict to be counted")
            assert value(registry, "leader") == 1
            assert value(registry, "verifications_total", verdict="pass") == 2
            for controller in ("releases", "batches", "settings"):
                turns = value(registry, "reconcile_duration_seconds_count", controller=controller)
                waited = value(registry, "queue_wait_seconds_count", controller=controller)
                assert 0 < turns <= waited


async def failed(registry: CollectorRegistry, pods: int) -> bool:
    return value(registry, "verifications_total", verdict="unpass") == pods


async def ended(registry: CollectorRegistry, *, success: int = 0, suspended: int = 0, rolled_back: int = 0) -> bool:
    counts = [
        value(registry, "release_duration_seconds_count", result=result)
        for result in ("success", "suspended", "rolled-back")
    ]
    return counts == [success, suspended, rolled_back]


async def suspended_by(registry: CollectorRegistry, giver: str) -> bool:
    return any(
        (sample.labels["state"], sample.labels["by"]) == ("Suspend", giver)
        for metric in registry.collect()
        for sample in metric.samples
        if sample.name == ENTERED
    )
