"""The deletion of a broken pod for which a StatefulSet waits, on the sandbox."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from kube_base.resources import DISRUPTION_BUDGETS, EVENTS, PODS
from tests.fault.reconciler_cluster import Cluster, GoOn, Object, running_cluster, version

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
    assert message.startswith("pod db-0 of an older version was deleted: container main: ImagePullBackOff")


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


async def repaired(cluster: Cluster) -> None:
    """The first release never came up, and the repair is released."""
    await cluster.release_in_order(version("v1"), "nosuch")
    await cluster.until_states(v1="Suspend")
    await cluster.release_in_order(version("v2"), "busybox:2", repair=True)


async def test_pod_that_has_changed_since_it_was_read_is_not_deleted(cluster: Cluster) -> None:
    """It may have become ready. The next attempt reads it again."""
    answers = list[int]()

    async def fault(request: web.Request, go_on: GoOn) -> web.StreamResponse:
        if not is_deletion_of_a_pod(request):
            return await go_on()
        if not answers:
            await cluster.admin.patch(PODS, {"metadata": {"annotations": {"changed": "yes"}}}, "db-0", "shop")
        answers.append(200)
        try:
            answer = await go_on()
        except web.HTTPException as error:
            answers[-1] = error.status
            raise
        answers[-1] = answer.status
        return answer

    cluster.set_fault(fault)
    await repaired(cluster)
    await cluster.until_states(v2="Success")
    assert answers[-1] == 200
    assert {*answers[:-1]} == {409}, "on a busy machine, its kubelet may change it once more meanwhile"


async def test_refused_deletion_is_reported_and_tried_again_while_verification_goes_on(cluster: Cluster) -> None:
    refused = True

    async def fault(request: web.Request, go_on: GoOn) -> web.StreamResponse:
        if refused and is_deletion_of_a_pod(request):
            body = {"kind": "Status", "status": "Failure", "message": "a budget", "reason": "Forbidden", "code": 403}
            return web.json_response(body, status=403)
        return await go_on()

    cluster.set_fault(fault)
    await repaired(cluster)
    assert (await until_event(cluster, "StuckPodNotDeleted")).endswith("it is not deleted: a budget")
    await cluster.until_states(v1="Suspend", v2="Running")
    refused = False
    await cluster.until_states(v2="Success")


def is_deletion_of_a_pod(request: web.Request) -> bool:
    return request.method == "DELETE" and "pods" in request.path.split("/")
