"""StatefulSets, DaemonSets, CloneSets and failing nodes, simulated on the sandbox's API."""

from collections.abc import Callable
from typing import Any

from kube_base.resources import (
    CLONE_SETS,
    CONTROLLER_REVISIONS,
    DAEMON_SETS,
    DEPLOYMENTS,
    EVENTS,
    NODES,
    PODS,
    STATEFUL_SETS,
    Resource,
)
from kube_sandbox.cluster.clone_sets import crd
from kube_sandbox.cluster.nodes.health import KUBELET
from support.cluster import SPACE, Cluster, Object
from support.objects import template

QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota")


async def create(cluster: Cluster, resource: Resource, image: str = "busybox", **spec: Any) -> None:
    body = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": {"app": "sleep"}}, "template": template(image), **spec},
    }
    await cluster.client.create(resource, body, SPACE)


async def change(cluster: Cluster, resource: Resource, image: str, **spec: Any) -> None:
    await cluster.client.patch(resource, {"spec": {"template": template(image), **spec}}, "web", SPACE)


def status(**wanted: object) -> Callable[[list[Object]], bool]:
    """Whether the status of the first object is current and has these values."""

    def met(items: list[Object]) -> bool:
        if not items:
            return False
        found = items[0].get("status") or {}
        seen = found.get("observedGeneration") == items[0]["metadata"]["generation"]
        return seen and all(found.get(name, 0) == value for name, value in wanted.items())

    return met


async def pods(cluster: Cluster) -> dict[str, Object]:
    listed: list[Object] = (await cluster.client.list(PODS, SPACE)).items
    return {pod["metadata"]["name"]: pod for pod in listed}


def conditions(pod: Object) -> dict[str, tuple[str, str]]:
    return {one["type"]: (one["status"], one.get("reason", "")) for one in pod["status"].get("conditions", ())}


async def test_stateful_set_becomes_ready_is_updated_and_keeps_its_revisions(cluster: Cluster) -> None:
    await create(cluster, STATEFUL_SETS, replicas=2, serviceName="web", revisionHistoryLimit=1)
    (first,) = await cluster.until(STATEFUL_SETS, status(readyReplicas=2, currentReplicas=2, updatedReplicas=2))
    assert sorted(await pods(cluster)) == ["web-0", "web-1"]
    for image in ("busybox:2", "busybox:3"):
        await change(cluster, STATEFUL_SETS, image)
        await cluster.until(STATEFUL_SETS, status(readyReplicas=2, currentReplicas=2, updatedReplicas=2))
    (last,) = await cluster.until(STATEFUL_SETS, status(readyReplicas=2))
    assert first["status"]["currentRevision"] != last["status"]["currentRevision"] == last["status"]["updateRevision"]
    revisions = await cluster.until(CONTROLLER_REVISIONS, lambda found: len(found) == 2)
    assert sorted(one["revision"] for one in revisions) == [2, 3]
    (pod, _) = (await pods(cluster)).values()
    assert pod["metadata"]["labels"]["controller-revision-hash"] == last["status"]["updateRevision"]


async def test_unready_stateful_set_pod_blocks_the_update_until_it_is_deleted(cluster: Cluster) -> None:
    await create(cluster, STATEFUL_SETS, replicas=2)
    await cluster.until(STATEFUL_SETS, status(readyReplicas=2, updatedReplicas=2))
    await change(cluster, STATEFUL_SETS, "never-ready")
    await cluster.until(STATEFUL_SETS, status(readyReplicas=1, updatedReplicas=1))
    await change(cluster, STATEFUL_SETS, "busybox")
    await cluster.until(STATEFUL_SETS, status(readyReplicas=1, updatedReplicas=1))
    broken = (await pods(cluster))["web-1"]
    assert broken["spec"]["containers"][0]["image"] == "never-ready"
    await cluster.delete(PODS, "web-1")
    await cluster.until(STATEFUL_SETS, status(readyReplicas=2, updatedReplicas=2))


async def test_foreground_delete_of_a_stateful_set_deletes_pods_and_revisions(cluster: Cluster) -> None:
    await create(cluster, STATEFUL_SETS, replicas=2)
    await cluster.until(STATEFUL_SETS, status(readyReplicas=2))
    await cluster.delete(STATEFUL_SETS, "web", "Foreground")
    for resource in (STATEFUL_SETS, PODS, CONTROLLER_REVISIONS):
        await cluster.until_gone(resource)


async def test_daemon_set_has_a_pod_on_each_added_or_remaining_node(fast_pod_gc: Cluster) -> None:
    await create(fast_pod_gc, DAEMON_SETS)
    await fast_pod_gc.until(DAEMON_SETS, status(desiredNumberScheduled=3, numberAvailable=3, updatedNumberScheduled=3))
    node = {"metadata": {"name": "extra", "annotations": {KUBELET: "up"}}}
    await fast_pod_gc.client.create(NODES, node)
    await fast_pod_gc.until(DAEMON_SETS, status(desiredNumberScheduled=4, numberAvailable=4))
    assert "extra" in {pod["spec"]["nodeName"] for pod in (await pods(fast_pod_gc)).values()}
    await fast_pod_gc.client.delete(NODES, "extra")
    await fast_pod_gc.until(DAEMON_SETS, status(desiredNumberScheduled=3, numberAvailable=3))
    await fast_pod_gc.until(PODS, lambda found: len(found) == 3)
    await change(fast_pod_gc, DAEMON_SETS, "busybox:2")
    (updated,) = await fast_pod_gc.until(DAEMON_SETS, status(updatedNumberScheduled=3, numberAvailable=3))
    assert updated["metadata"]["annotations"]["deprecated.daemonset.template.generation"] == "2"
    assert {pod["metadata"]["labels"]["pod-template-generation"] for pod in (await pods(fast_pod_gc)).values()} == {"2"}


async def test_clone_sets_are_simulated_while_their_crd_exists(cluster: Cluster) -> None:
    for _ in range(2):
        await crd.create(cluster.client)
        await cluster.until_served(CLONE_SETS)
        await create(cluster, CLONE_SETS, replicas=2)
        await cluster.until(CLONE_SETS, status(updatedReadyReplicas=2, updatedAvailableReplicas=2))
        await crd.delete(cluster.client)
        await cluster.client.request("DELETE", PODS.path(SPACE))  # no controller replaces them
        await cluster.until_gone(PODS)


async def test_clone_set_updates_pods_in_place_within_its_partition(cluster: Cluster) -> None:
    await crd.create(cluster.client)
    await cluster.until_served(CLONE_SETS)
    strategy = {"type": "InPlaceIfPossible", "partition": "50%", "maxUnavailable": 1}
    await create(cluster, CLONE_SETS, replicas=2, updateStrategy=strategy)
    await cluster.until(CLONE_SETS, status(updatedReadyReplicas=2))
    before = {name: pod["metadata"]["uid"] for name, pod in (await pods(cluster)).items()}
    await change(cluster, CLONE_SETS, "busybox:2")
    await cluster.until(CLONE_SETS, status(updatedReadyReplicas=1, readyReplicas=2, expectedUpdatedReplicas=1))
    await change(cluster, CLONE_SETS, "busybox:2", updateStrategy={**strategy, "partition": 0})
    await cluster.until(CLONE_SETS, status(updatedReadyReplicas=2, updatedReplicas=2))
    after = await pods(cluster)
    assert {name: pod["metadata"]["uid"] for name, pod in after.items()} == before
    assert {pod["status"]["containerStatuses"][0]["restartCount"] for pod in after.values()} == {1}
    assert {conditions(pod)["InPlaceUpdateReady"][0] for pod in after.values()} == {"True"}


async def test_pods_of_a_node_that_is_down_are_evicted_and_end_when_it_returns(cluster: Cluster) -> None:
    await cluster.release(3)
    await cluster.until_released()
    await cluster.client.patch(NODES, {"metadata": {"annotations": {KUBELET: "down"}}}, "sandbox-2")

    def lost(found: list[Object]) -> bool:
        leaving = [pod for pod in found if pod["metadata"].get("deletionTimestamp")]
        return len(leaving) == 1 and conditions(leaving[0])["Ready"] == ("False", "")

    (gone,) = [pod for pod in await cluster.until(PODS, lost) if pod["metadata"].get("deletionTimestamp")]
    assert gone["spec"]["nodeName"] == "sandbox-2"
    assert conditions(gone)["DisruptionTarget"] == ("True", "DeletionByTaintManager")
    node = await cluster.client.get(NODES, "sandbox-2")
    assert conditions(node)["Ready"] == ("Unknown", "NodeStatusUnknown")
    await cluster.until_released()
    await cluster.client.patch(NODES, {"metadata": {"annotations": {KUBELET: None}}}, "sandbox-2")
    await cluster.until(PODS, lambda found: len(found) == 3)
    await cluster.until(NODES, lambda found: not any(one["spec"].get("taints") for one in found), "")


async def test_node_that_returns_before_eviction_keeps_its_pods(slow_eviction: Cluster) -> None:
    await slow_eviction.release(3)
    await slow_eviction.until_released()
    await slow_eviction.client.patch(NODES, {"metadata": {"annotations": {KUBELET: "not-ready"}}}, "sandbox-1")
    await slow_eviction.until(DEPLOYMENTS, lambda found: found[0]["status"].get("readyReplicas") == 2)
    node = await slow_eviction.client.get(NODES, "sandbox-1")
    assert conditions(node)["Ready"] == ("False", "KubeletNotReady")
    await slow_eviction.client.patch(NODES, {"metadata": {"annotations": {KUBELET: None}}}, "sandbox-1")
    await slow_eviction.until_released()
    assert len(await pods(slow_eviction)) == 3


async def test_quota_blocks_pods_until_it_is_deleted(cluster: Cluster) -> None:
    quota = {"metadata": {"name": "few"}, "spec": {"hard": {"pods": "1"}}}
    await cluster.client.create(QUOTAS, quota, SPACE)
    await create(cluster, STATEFUL_SETS, replicas=2)
    refused = 'pods "web-1" is forbidden: exceeded quota: few, requested: pods=1, used: pods=1, limited: pods=1'
    text = f"create Pod web-1 in StatefulSet web failed error: {refused}"
    await cluster.until(
        EVENTS, lambda found: any(one["reason"] == "FailedCreate" and one["message"] == text for one in found)
    )
    await cluster.client.delete(QUOTAS, "few", SPACE)
    await cluster.until(STATEFUL_SETS, status(readyReplicas=2))


async def test_container_killed_for_memory_is_restarted(cluster: Cluster) -> None:
    await cluster.release(1, "app:oom-after-100ms")

    def restarted(found: list[Object]) -> bool:
        statuses = [one for pod in found for one in pod["status"].get("containerStatuses", ())]
        return any(one["restartCount"] >= 2 and one["ready"] for one in statuses)

    (pod,) = await cluster.until(PODS, restarted)
    ended = pod["status"]["containerStatuses"][0]["lastState"]["terminated"]
    assert (ended["reason"], ended["exitCode"]) == ("OOMKilled", 137)
