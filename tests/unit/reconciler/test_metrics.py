"""What a reconciler shows of the releases, and that it counts each end once."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubernetes_asyncio.client import Configuration

from altershield.api import labels, names
from altershield.api.kinds import ChangePodStatus, ChangeWorkloadStatus, PodInfo, WorkloadState
from altershield.api.meta import Condition
from altershield.api.resources import CHANGE_PODS
from altershield.api.views import Namespace
from altershield.kube.client import Client
from altershield.kube.informer import Informer
from reconciler.caches import Caches
from reconciler.decisions.change_pods import Checked, Observed, decide
from reconciler.metrics import Metrics
from reconciler.release_metrics import releases
from tests.fault.reconciler_cluster import running_cluster, version

from .builders import NOW, V1, V2, change_pod, change_workload, deployment

ENTERED = "altershield_release_entered_timestamp_seconds"
UNFINISHED = [state for state in WorkloadState.ALL if state not in (WorkloadState.SUCCESS, WorkloadState.FAILED)]
Labels = dict[str, str]


@pytest.fixture
async def caches() -> AsyncIterator[Caches]:
    """Of the governed namespace `default`, which is empty."""
    async with Client(Configuration(host="https://127.0.0.1")) as client:
        caches = Caches(client, names.SYSTEM_NAMESPACE)
        governed = {"name": "default", "labels": {labels.GOVERNED: labels.GOVERNED_VALUE}}
        put(caches.namespaces, msgspec.convert({"metadata": governed}, Namespace))
        yield caches


def put(informer: Informer[Any], obj: Any, **metadata: Any) -> None:
    """Into the cache, as the answers to our own writes get there."""
    changed = msgspec.structs.replace(obj.metadata, resource_version="1", **metadata)
    informer.observe(msgspec.structs.replace(obj, metadata=changed))


def put_release(caches: Caches, name: str, status: ChangeWorkloadStatus, present: str = V1) -> None:
    """A Deployment at the version `present`, and the record of its version V1."""
    put(caches.deployments, deployment(present), name=name, uid=name)
    record = change_workload(V1, status)
    (owner,) = record.metadata.owner_references
    put(
        caches.change_workloads,
        record,
        name=names.change_workload_name(name, V1),
        owner_references=(msgspec.structs.replace(owner, name=name, uid=name),),
    )


def shown(caches: Caches, family: str = ENTERED) -> list[tuple[Labels, float]]:
    return [(s.labels, s.value) for metric in releases(caches) for s in metric.samples if s.name == family]


def condition(type_: str, status: str, reason: str) -> tuple[Condition, ...]:
    return (Condition(type_, status, reason),)


@pytest.mark.parametrize("state", ["", *UNFINISHED])
async def test_a_release_that_has_not_succeeded_is_shown_with_its_state_and_since_when(
    caches: Caches, state: str
) -> None:
    put_release(caches, "sleep", ChangeWorkloadStatus(status=state, entry_time_unix=NOW + 5 if state else 0))

    expected = {"namespace": "default", "deployment": "sleep", "version": V1, "state": state or "Init", "by": ""}
    assert shown(caches) == [(expected, NOW + 5 if state else NOW)]


async def test_a_version_that_was_rolled_back_is_shown_as_long_as_it_is_on_record(caches: Caches) -> None:
    rolled_back = condition("RolledBack", "True", "PodNotUp")
    put_release(caches, "sleep", ChangeWorkloadStatus(status="Failed", conditions=rolled_back), present=V2)

    assert [(series["state"], series["version"]) for series, _ in shown(caches)] == [("Failed", V1)]


@pytest.mark.parametrize(
    ("status", "present"),
    [
        (ChangeWorkloadStatus(status="Success"), V1),
        (ChangeWorkloadStatus(status="Suspend"), V2),  # the repair is on its way
        (ChangeWorkloadStatus(status="Failed", conditions=condition("RolledBack", "False", "Superseded")), V2),
    ],
)
async def test_what_wants_no_attention_is_not_shown(caches: Caches, status: ChangeWorkloadStatus, present: str) -> None:
    put_release(caches, "sleep", status, present)

    assert shown(caches) == []


async def test_releases_in_namespaces_that_are_not_governed_are_not_shown(caches: Caches) -> None:
    put_release(caches, "sleep", ChangeWorkloadStatus(status="Suspend"))
    assert shown(caches)
    no_longer = msgspec.convert({"metadata": {"name": "default", "resourceVersion": "2"}}, Namespace)
    caches.namespaces.observe(no_longer)

    assert shown(caches) == []


async def test_at_most_the_hundred_oldest_of_a_state_are_shown(caches: Caches) -> None:
    for number in range(130):
        put_release(caches, f"late-{number:03}", ChangeWorkloadStatus(status="Suspend", entry_time_unix=NOW - number))
    put_release(caches, "new", ChangeWorkloadStatus(status="Running", entry_time_unix=NOW))

    suspended = {series["deployment"] for series, _ in shown(caches) if series["state"] == "Suspend"}
    assert suspended == {f"late-{number:03}" for number in range(30, 130)}
    assert [series["deployment"] for series, _ in shown(caches) if series["state"] == "Running"] == ["new"]
    counts = {series["state"]: value for series, value in shown(caches, "altershield_releases")}
    assert counts == {**dict.fromkeys(WorkloadState.ALL, 0), "Suspend": 130, "Running": 1}


@pytest.mark.parametrize("state", ["Elsewhere", "success", "x" * 1000, "\n"])
async def test_no_state_that_somebody_wrote_makes_a_series(caches: Caches, state: str) -> None:
    put_release(caches, "sleep", ChangeWorkloadStatus(status=state))

    assert {series["state"] for series, _ in shown(caches, "altershield_releases")} == set(WorkloadState.ALL)
    assert [series["state"] for series, _ in shown(caches)] == ["Init"]


@pytest.mark.parametrize(
    ("reasons", "by"),
    [
        (["FailedByPerson"], "person"),
        (["FailedByServer"], "server"),
        (["FailedByServer", "FailedByPerson"], "person"),
        (["PodsPassed"], ""),
        (["anything else"], ""),
        ([], ""),
    ],
)
async def test_a_suspended_release_tells_whose_verdict_it_was(caches: Caches, reasons: list[str], by: str) -> None:
    pods = [f"pod-{number}" for number, _ in enumerate(reasons)]
    failed = tuple(PodInfo(pod, verdict="unpass") for pod in pods)
    put_release(caches, "sleep", ChangeWorkloadStatus(status="Suspend", defense_check_fail_pods=failed))
    put_batch(caches, 98, "another", "FailedByPerson")  # a pod that is no longer there
    for number, (pod, reason) in enumerate(zip(pods, reasons, strict=True), start=1):
        put_batch(caches, number, pod, reason)

    assert [series["by"] for series, _ in shown(caches)] == [by]


def put_batch(caches: Caches, number: int, pod: str, reason: str) -> None:
    """A ChangePod of the record that `put_release` makes."""
    record = change_pod(number, pod, status=ChangePodStatus(conditions=condition("Verified", "False", reason)))
    uid = change_workload(V1).metadata.uid
    owner = msgspec.structs.replace(change_workload(V1).metadata.owner_references[0], kind="ChangeWorkload", uid=uid)
    put(caches.change_pods, record, owner_references=(owner,))


Results = st.dictionaries(st.sampled_from("abc"), st.sampled_from(["pass", "unpass", "error", ""]))


@given(st.lists(Results, min_size=1, max_size=6), st.data())
def test_what_a_person_writes_is_never_taken_for_the_servers_verdict(written: list[dict[str, str]], data: Any) -> None:
    """A person writes verdicts, the reconciler looks whenever it likes, and the server never answers."""
    status = ChangePodStatus()
    for results in written:
        judged = tuple(PodInfo(pod, verdict=verdict) for pod, verdict in results.items())
        status = msgspec.structs.replace(status, pod_results=judged)
        if data.draw(st.booleans(), label="looks"):
            status = looked(status)
    reasons = {condition.reason for condition in looked(status).conditions}
    failed = any(verdict not in ("pass", "") for verdict in written[-1].values())
    assert ("FailedByPerson" in reasons) == failed
    assert "FailedByServer" not in reasons


def looked(status: ChangePodStatus, answer: Checked | None = None) -> ChangePodStatus:
    return decide(status, Observed(change_pod(1, *"abc", status=status), True, answer, 120, 120), NOW)[0]


def test_the_servers_verdict_is_told_as_its_own_however_often_it_is_looked_at() -> None:
    asked = ChangePodStatus(status="PreSubmitted", pre_submit_time_unix=NOW, pre_timeout_threshold=120)
    failed = looked(asked, Checked(False, "error rate 12 %"))
    assert [condition.reason for condition in failed.conditions] == ["FailedByServer"]
    assert looked(failed) == failed


def test_a_batch_that_a_person_failed_first_stays_theirs_when_the_server_fails_the_rest() -> None:
    asked = ChangePodStatus(status="PreSubmitted", pre_submit_time_unix=NOW, pre_timeout_threshold=120)
    judged = looked(msgspec.structs.replace(asked, pod_results=(PodInfo("a", verdict="unpass"),)))
    assert [condition.reason for condition in judged.conditions] == ["FailedByPerson"]
    both = looked(judged, Checked(False, "error rate 12 %"))
    assert len(both.pod_results) == 3
    assert [condition.reason for condition in both.conditions] == ["FailedByPerson"]


def value(metrics: Metrics, name: str, **labels: str) -> float:
    found = metrics.registry.get_sample_value(f"altershield_{name}", labels)
    assert found is not None, f"there is no series {name} {labels}"
    return found


async def test_the_figures_follow_releases_from_their_start_to_each_end(tmp_path: Path) -> None:
    async with running_cluster(tmp_path) as cluster:
        await cluster.go_to("shop")
        async with cluster.reconciler() as manager:
            metrics = manager.metrics
            await cluster.release(version("v1"))
            await cluster.until(lambda: ended(metrics, success=1), "the first release's end")

            await cluster.release(version("v2"), image="nosuch")
            await cluster.until(lambda: ended(metrics, rolled_back=1, success=2), "a rollback, and v1 again")
            assert value(metrics, "rollbacks_total", reason="PodNotUp") == 1
            await cluster.until_states(v1="Success", v2="Failed")

            await cluster.judge((await cluster.all(CHANGE_PODS))[0], "unpass")
            await cluster.until(lambda: ended(metrics, rolled_back=1, success=2, suspended=1), "a suspension")
            await cluster.until(lambda: suspended_by(metrics, "person"), "the verdict's author")
            await cluster.until(lambda: failed(metrics, 1), "the verdict to be counted")
            assert value(metrics, "leader") == 1
            assert value(metrics, "verifications_total", verdict="pass") == 2
            for controller in ("deployments", "change_workloads", "change_pods", "pods", "rollback"):
                turns = value(metrics, "reconcile_duration_seconds_count", controller=controller)
                waited = value(metrics, "queue_wait_seconds_count", controller=controller)
                assert 0 < turns <= waited


async def failed(metrics: Metrics, pods: int) -> bool:
    return value(metrics, "verifications_total", verdict="unpass") == pods


async def ended(metrics: Metrics, *, success: int = 0, suspended: int = 0, rolled_back: int = 0) -> bool:
    counts = [
        value(metrics, "release_duration_seconds_count", result=result)
        for result in ("success", "suspended", "rolled-back")
    ]
    return counts == [success, suspended, rolled_back]


async def suspended_by(metrics: Metrics, giver: str) -> bool:
    return any(
        (sample.labels["state"], sample.labels["by"]) == ("Suspend", giver)
        for metric in metrics.registry.collect()
        for sample in metric.samples
        if sample.name == ENTERED
    )
