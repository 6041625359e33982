"""The deletion of a broken pod for which a StatefulSet waits, on the sandbox."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from altershield.api.resources import DISRUPTION_BUDGETS, EVENTS, PODS
from tests.fault.reconciler_cluster import Cluster, Object, running_cluster, version

BUDGET: Object = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "db"},
    "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "db"}}},
}


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with running_cluster(tmp_path) as cluster:
        await cluster.go_to("shop")
        async with cluster.reconciler():
            yield cluster


async def until_event(cluster: Cluster, reason: str) -> str:
    """The message of the Event."""

    async def met() -> str:
        found = [each for each in await cluster.all(EVENTS) if each["reason"] == reason]
        return str(found[0]["message"]) if found else ""

    return await cluster.until(met, f"the Event {reason}")


async def only_pod(cluster: Cluster) -> Object:
    (pod,) = await cluster.all(PODS)
    return pod


async def test_broken_pod_is_deleted_and_the_event_names_it(cluster: Cluster) -> None:
    await cluster.release_in_order(version("v1"), "nosuch")
    await cluster.until_states(v1="Suspend")
    await cluster.release_in_order(version("v2"), "busybox:2", repair=True)
    await cluster.until_states(v2="Success")
    message = await until_event(cluster, "StuckPodDeleted")
    assert message.startswith("pod db-0 of an older version was deleted: ImagePullBackOff")


async def test_disruption_budget_keeps_the_broken_pod_until_it_is_gone(cluster: Cluster) -> None:
    await cluster.admin.create(DISRUPTION_BUDGETS, BUDGET, "shop")
    await cluster.release_in_order(version("v1"), "never-ready")
    await cluster.until_states(v1="Suspend")
    broken = await only_pod(cluster)
    await cluster.release_in_order(version("v2"), "busybox:2", repair=True)
    message = await until_event(cluster, "StuckPodNotDeleted")
    assert message.endswith("it is not deleted: PodDisruptionBudget db allows no disruption")
    assert (await only_pod(cluster))["metadata"]["uid"] == broken["metadata"]["uid"]
    await cluster.admin.delete(DISRUPTION_BUDGETS, "db", "shop")
    await cluster.until_states(v2="Success")
