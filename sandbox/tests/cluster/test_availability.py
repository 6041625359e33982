"""Controllers notice when a pod becomes available, whatever the time between two readings of the clock."""

import asyncio

from kube_base.access.client import PatchType
from kube_base.access.events import EventRecorder
from kube_base.resources import PODS, REPLICA_SETS
from kube_base.times import rfc3339
from kube_sandbox.cluster.caches import Caches
from kube_sandbox.cluster.replica_sets.controller import ReplicaSets
from support.cluster import SPACE, Cluster, Object
from support.objects import template

READY_SINCE = 1_800_000_000.0
MIN_READY_SECONDS = 5


class LateClock:
    """Shows the pod's last 0.2 s before it is available, then its last millisecond once, then the time after that."""

    def __init__(self) -> None:
        self._begin = asyncio.get_running_loop().time()
        self._late = False

    def __call__(self) -> float:
        available = READY_SINCE + MIN_READY_SECONDS
        if asyncio.get_running_loop().time() < self._begin + 0.2:
            return available - 0.2
        if not self._late:
            self._late = True
            return available - 0.001
        return available


async def test_pod_that_becomes_available_while_the_status_is_written_is_counted(api_only: Cluster) -> None:
    client = api_only.client
    spec = {"replicas": 1, "minReadySeconds": MIN_READY_SECONDS, "selector": {"matchLabels": {"app": "sleep"}}}
    body = {"metadata": {"name": "web"}, "spec": {**spec, "template": template("busybox")}}
    rs: Object = await client.create(REPLICA_SETS, body, SPACE)
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": rs["metadata"]["uid"]}
    pod = {**template("busybox"), "metadata": {"name": "web-1", "labels": {"app": "sleep"}}}
    pod["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
    await client.create(PODS, pod, SPACE)
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": rfc3339(READY_SINCE)}
    status = {"status": {"phase": "Running", "conditions": [ready]}}
    await client.patch(PODS, status, "web-1", SPACE, subresource="status", type_=PatchType.STRATEGIC)

    caches = Caches(client, LateClock())
    controller = ReplicaSets(caches, EventRecorder(client, "replicaset-controller"))
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(caches.run()), group.create_task(controller.run())]
        async with asyncio.timeout(10):
            await api_only.until(REPLICA_SETS, lambda sets: sets[0].get("status", {}).get("availableReplicas") == 1)
        for task in tasks:
            task.cancel()
