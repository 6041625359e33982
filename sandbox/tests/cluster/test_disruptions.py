"""The status of PodDisruptionBudgets."""

import dataclasses

import msgspec
import pytest

from kube_base.resources import DISRUPTION_BUDGETS, JOBS, PODS
from kube_base.times import rfc3339
from kube_sandbox.cluster.disruptions.budgets import Sync, failed, patch, sync
from kube_sandbox.cluster.disruptions.kinds import Budget
from kube_sandbox.cluster.kinds import Object, Pod
from support.cluster import SETTINGS, SPACE, Cluster
from support.objects import pod, template

NOW = 1_700_000_000.0
READY = rfc3339(NOW - 60)
BUDGET = {
    "metadata": {"name": "sleep"},
    "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "sleep"}}},
}


def budget(status: Object | None = None, **spec: int | str) -> Budget:
    body = {
        "metadata": {"name": "web", "namespace": "default", "generation": 3, "resourceVersion": "7"},
        "spec": {"selector": {"matchLabels": {"app": "sleep"}}, **spec},
        "status": status or {},
    }
    return msgspec.convert(body, Budget)


def pods(ready: int, unready: int = 0, terminating: int = 0) -> list[Pod]:
    leaving = {"deletionTimestamp": READY}
    return [
        *(pod(f"ready-{number}", ready_since=READY) for number in range(ready)),
        *(pod(f"unready-{number}") for number in range(unready)),
        *(pod(f"leaving-{number}", ready_since=READY, metadata=leaving) for number in range(terminating)),
    ]


def numbers(found: Sync) -> tuple[int, int, int, int]:
    status = found.status
    return status.expected_pods, status.desired_healthy, status.current_healthy, status.disruptions_allowed


@pytest.mark.parametrize(
    ("spec", "scale", "expected"),
    [
        ({"minAvailable": 2}, 99, (7, 2, 4, 2)),
        ({"minAvailable": 5}, 99, (7, 5, 4, 0)),
        ({"minAvailable": "50%"}, 5, (5, 3, 4, 1)),
        ({"maxUnavailable": 2}, 5, (5, 3, 4, 1)),
        ({"maxUnavailable": "10%"}, 5, (5, 4, 4, 0)),
        ({"maxUnavailable": 9}, 5, (5, 0, 4, 4)),
        ({"maxUnavailable": 9}, 0, (0, 0, 4, 0)),
    ],
)
def test_numbers_follow_from_spec_pods_and_scale(spec: Object, scale: int, expected: tuple[int, int, int, int]) -> None:
    assert numbers(sync(budget(**spec), pods(4, unready=2, terminating=1), scale, NOW)) == expected


def test_evicted_pod_is_not_healthy_until_it_is_gone_or_two_minutes_have_passed() -> None:
    evicted = {"ready-0": rfc3339(NOW - 30), "ready-1": rfc3339(NOW - 121), "gone": READY, "leaving-0": READY}
    found = sync(budget({"disruptedPods": evicted}, minAvailable=1), pods(3, terminating=1), 0, NOW)
    assert found.status.disrupted_pods == {"ready-0": rfc3339(NOW - 30)}
    assert found.status.current_healthy == 2
    assert [one.metadata.name for one in found.overdue] == ["ready-1"]
    assert found.recheck == 90


def test_condition_follows_the_allowance_and_keeps_its_time() -> None:
    first = sync(budget(minAvailable=2), pods(3), 0, NOW).status
    assert [(one["status"], one["reason"]) for one in first.conditions] == [("True", "SufficientPods")]
    same = sync(budget(msgspec.to_builtins(first), minAvailable=1), pods(3), 0, NOW + 9).status
    assert same.conditions == first.conditions
    less = sync(budget(msgspec.to_builtins(first), minAvailable=3), pods(3), 0, NOW + 9).status
    (condition,) = less.conditions
    assert (condition["status"], condition["lastTransitionTime"]) == ("False", rfc3339(NOW + 9))
    error = failed(budget(msgspec.to_builtins(first), minAvailable=1), "no scale", NOW)
    assert (error.disruptions_allowed, error.conditions[0]["reason"]) == (0, "SyncFailed")


def test_patch_names_the_version_that_was_read_and_is_empty_without_a_change() -> None:
    wanted = sync(budget(minAvailable=1), pods(3), 0, NOW).status
    assert patch(budget(minAvailable=1), wanted)["metadata"]["resourceVersion"] == "7"
    assert patch(budget(msgspec.to_builtins(wanted), minAvailable=1), wanted) == {}


async def status(cluster: Cluster, expected: tuple[int, int, int, int]) -> Object:
    keys = ("expectedPods", "desiredHealthy", "currentHealthy", "disruptionsAllowed")
    found = await cluster.until(
        DISRUPTION_BUDGETS, lambda items: tuple(items[0]["status"].get(key) for key in keys) == expected
    )
    read: Object = found[0]["status"]
    return read


async def evict(cluster: Cluster, name: str) -> None:
    await cluster.client.create(PODS, {"metadata": {"name": name}}, SPACE, name=name, subresource="eviction")


async def test_budget_counts_the_replicas_of_the_workload_and_each_eviction(api_only: Cluster) -> None:
    """The pods end only after the test, so that the entries of evicted pods can be seen."""
    async with api_only.simulation(dataclasses.replace(SETTINGS, termination=60)):
        await api_only.release(4)
        await api_only.until_released()
        await api_only.client.create(DISRUPTION_BUDGETS, BUDGET, SPACE)
        await status(api_only, (4, 3, 4, 1))
        found = await api_only.client.list(PODS, SPACE)
        name = found.items[0]["metadata"]["name"]
        await evict(api_only, name)
        evicted = await api_only.client.get(PODS, name, SPACE)
        assert evicted["metadata"]["deletionTimestamp"]
        assert "EvictionByEvictionAPI" in {one.get("reason") for one in evicted["status"]["conditions"]}
        await status(api_only, (4, 3, 4, 1))  # with the replacement


async def test_budget_of_pods_whose_owner_has_no_scale_allows_nothing(cluster: Cluster) -> None:
    spec = {**template()["spec"], "restartPolicy": "Never"}
    job = {"metadata": {"name": "sleep"}, "spec": {"template": {**template(), "spec": spec}}}
    await cluster.client.create(JOBS, job, SPACE)
    await cluster.until(PODS, lambda items: items and items[0]["status"]["phase"] == "Running")
    await cluster.client.create(DISRUPTION_BUDGETS, BUDGET, SPACE)
    (found,) = await cluster.until(DISRUPTION_BUDGETS, lambda items: items[0]["status"].get("conditions"))
    (condition,) = found["status"]["conditions"]
    assert condition["reason"] == "SyncFailed"
    assert condition["message"] == "jobs.batch does not implement the scale subresource"
