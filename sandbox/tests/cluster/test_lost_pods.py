"""Pods that end without a request of their owner: evictions by taints and by nodes, and pods of deleted nodes."""

import asyncio
import contextlib

from kube_base.access.errors import ConflictError
from kube_base.resources import NODES, PODS
from kube_sandbox.cluster.kubelet.pressure import EVICT
from support.cluster import SPACE, Cluster, Object

TAINTED = {"spec": {"taints": [{"key": "example.com/out", "effect": "NoExecute"}]}}


def target(pod: Object) -> tuple[str, str]:
    found = [one for one in pod["status"].get("conditions") or () if one["type"] == "DisruptionTarget"]
    return (found[0]["reason"], found[0]["message"]) if found else ("", "")


async def pod_on_node(cluster: Cluster, **metadata: object) -> Object:
    body = {"metadata": {"name": "web", **metadata}, "spec": {"containers": [{"name": "main", "image": "busybox"}]}}
    await cluster.client.create(PODS, body, SPACE)
    (pod,) = await cluster.until(PODS, lambda pods: pods[0]["status"]["phase"] == "Running")
    return pod


async def test_refused_deletion_by_a_taint_is_not_repeated_until_the_taints_change(
    cluster: Cluster, refused: set[str]
) -> None:
    pod = await pod_on_node(cluster)
    refused.add("DELETE web")
    await cluster.client.patch(NODES, TAINTED, pod["spec"]["nodeName"])
    (marked,) = await cluster.until(PODS, lambda pods: target(pods[0])[0])
    assert target(marked) == ("DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint")
    await asyncio.sleep(0.3)  # the five attempts take 0.05 s
    refused.clear()
    await asyncio.sleep(0.3)
    assert not (await cluster.client.get(PODS, "web", SPACE))["metadata"].get("deletionTimestamp")
    other = {"spec": {"taints": [*TAINTED["spec"]["taints"], {"key": "example.com/too", "effect": "NoExecute"}]}}
    await cluster.client.patch(NODES, other, pod["spec"]["nodeName"])
    await cluster.until_gone(PODS)


async def test_pod_of_a_deleted_node_is_marked_as_failed_before_it_is_deleted(fast_pod_gc: Cluster) -> None:
    await fast_pod_gc.client.create(NODES, {"metadata": {"name": "extra"}})
    body = {
        "metadata": {"name": "web", "finalizers": ["example.com/held"]},
        "spec": {"nodeName": "extra", "containers": [{"name": "main", "image": "busybox"}]},
    }
    await fast_pod_gc.client.create(PODS, body, SPACE)
    await fast_pod_gc.client.delete(NODES, "extra")
    (pod,) = await fast_pod_gc.until(PODS, lambda pods: pods[0]["metadata"].get("deletionTimestamp"))
    assert pod["status"]["phase"] == "Failed"
    assert target(pod) == ("DeletionByPodGC", "PodGC: node no longer exists")
    await fast_pod_gc.client.patch(PODS, {"metadata": {"finalizers": None}}, "web", SPACE)
    await fast_pod_gc.until_gone(PODS)


async def test_pod_that_its_node_evicts_stays_as_failed_and_is_replaced(cluster: Cluster) -> None:
    await cluster.release(1)
    await cluster.until_released()
    name = (await cluster.client.list(PODS, SPACE)).items[0]["metadata"]["name"]
    await cluster.client.patch(PODS, {"metadata": {"annotations": {EVICT: "memory"}}}, name, SPACE)
    found = await cluster.until(PODS, lambda pods: len(pods) == 2)
    await cluster.until_released()
    (evicted,) = [pod for pod in found if pod["metadata"]["name"] == name]
    status = evicted["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "Evicted")
    assert status["message"] == "The node was low on resource: memory. "
    assert target(evicted) == ("TerminationByKubelet", "The node was low on resource: memory. ")
    assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 137
    assert "deletionTimestamp" not in evicted["metadata"]


async def test_pod_that_another_writer_ends_stays_ended_while_its_kubelet_starts_it(cluster: Cluster) -> None:
    """A kubelet that does not know the end yet would write that the pod runs."""
    for number in range(20):
        spec = {"containers": [{"name": "main", "image": f"busybox:{number}"}]}
        await cluster.client.create(PODS, {"metadata": {"name": f"web-{number}"}, "spec": spec}, SPACE)
    ended: set[str] = set()

    async def end(pod: Object) -> None:
        at = {"resourceVersion": pod["metadata"]["resourceVersion"]}
        with contextlib.suppress(ConflictError):
            body, name = {"metadata": at, "status": {"phase": "Failed"}}, pod["metadata"]["name"]
            await cluster.client.patch(PODS, body, name, SPACE, subresource="status")
            ended.add(name)

    while len(ended) < 20:
        pods = (await cluster.client.list(PODS, SPACE)).items
        starting = [pod for pod in pods if pod["spec"].get("nodeName") and pod["metadata"]["name"] not in ended]
        await asyncio.gather(*map(end, starting))
    await asyncio.sleep(0.5)
    phases = {pod["status"]["phase"] for pod in (await cluster.client.list(PODS, SPACE)).items}
    assert phases == {"Failed"}
